"""Small campaigns for tests of pages and servers."""

from __future__ import annotations

from pathlib import Path

from malocate import Campaign, Design, Segment, SoftImpute
from malocate.server.access import new_token
from malocate.store import Store, Tokens

PEOPLE = ("Ada", "Ben", "Cleo", "Dan", "Eve", "Finn")
WINES = ("Riesling", "Merlot", "Syrah <old>", "Gamay")


def tasting(path: Path, *, rounds: int = 2, budget: float = 400, **settings) -> str:
    """Make a campaign of two segments, of which so many rounds are answered; give its address."""
    segments = [
        Segment(name, labels=(PEOPLE, WINES), scale=(1, 5)) for name in ("north", "south & sea")
    ]
    design = Design(segments, budget=budget, estimator=SoftImpute(1.0), seed=1, **settings)
    url = f"sqlite:///{path}/tasting.db"
    with Campaign.create(url, design, name="tasting") as campaign:
        for _ in range(rounds):
            tickets = campaign.ask(1_000, who="field")
            campaign.tell_many((each, answer_of(each.row, each.column)) for each in tickets)
        campaign.plan()
    return url


def answer_of(row: str, column: str) -> int:
    return 1 + (PEOPLE.index(row) * 2 + WINES.index(column) * 3) % 5


def token_of(url: str, role: str, campaign: int = 0) -> str:
    store = Store.open(url)
    try:
        return new_token(Tokens(store.database), campaign, f"the {role}", role)
    finally:
        store.close()
