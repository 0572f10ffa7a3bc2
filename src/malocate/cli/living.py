"""`malocate demo --serve`: a campaign that lives, with made-up people who answer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from malocate.errors import MalocateError

if TYPE_CHECKING:
    from malocate.campaign import Campaign, Ticket
    from malocate.design import Design
    from malocate.sources import Synthetic

TOWNS = {"Brest": ((24, 16), 1), "Lyon": ((36, 20), 4), "Nice": ((30, 18), 2)}
"""Towns: people × wines, and the rank of the tastes."""

BUDGET, EVERY, AT_ONCE = 4_000, 0.25, 8
"""Answers, and how many come together, so many seconds apart."""

WINES = (
    "Albana", "Barbera", "Chenin", "Dolcetto", "Encruzado", "Furmint", "Gamay", "Hárslevelű",
    "Inzolia", "Kerner", "Lagrein", "Malbec", "Nebbiolo", "Ortega", "Picpoul", "Riesling",
    "Syrah", "Tannat", "Verdejo", "Zweigelt",
)  # fmt: skip


def live_here(port: int) -> None:
    """Serve a living campaign on this machine until Ctrl-C."""
    from malocate.cli.serve import serve

    with TemporaryDirectory(prefix="malocate-demo-") as folder:
        url = str(Path(folder) / "demo.db")
        with _answering(url):
            serve(url, port=port, open_to_all=True, host="127.0.0.1", planner=True)


@contextmanager
def _answering(url: str) -> Iterator[None]:
    """Let people answer from a thread of its own."""
    from malocate import Campaign

    sources = people()
    campaign = Campaign.create(url, design_of(sources), name="wines")
    over = threading.Event()
    crowd = threading.Thread(target=_answer, args=(campaign, sources, over), daemon=True)
    crowd.start()
    try:
        yield
    finally:
        over.set()
        crowd.join()
        campaign.close()


def people() -> dict[str, Synthetic]:
    """Make the towns."""
    from malocate import Synthetic

    return {
        town: Synthetic.ratings(shape, rank, rng=seed)
        for seed, (town, (shape, rank)) in enumerate(TOWNS.items())
    }


def design_of(sources: dict[str, Synthetic]) -> Design:
    """Give the design of the survey."""
    from malocate import Design, Loss, Segment

    segments = []
    for town, source in sources.items():
        rows = [f"{town} {number + 1}" for number in range(source.shape[0])]
        labels = (rows, WINES[: source.shape[1]])
        segments.append(Segment(town, labels=labels, scale=source.scale))
    return Design(tuple(segments), budget=BUDGET, loss=Loss(weights="per_entry"), rmse=1.0)


def _answer(campaign: Campaign, sources: dict[str, Synthetic], over: threading.Event) -> None:
    """Answer a few questions at a time until there are none, or it is over."""
    while not over.wait(EVERY):
        try:
            tickets = campaign.ask(AT_ONCE, who="the town", plan=False)
            campaign.tell_many([(each, _rating(sources, each)) for each in tickets])
        except MalocateError:
            continue  # such as a database that is busy; the next turn tries again


def _rating(sources: dict[str, Synthetic], ticket: Ticket) -> float:
    """Give what the person says: their taste and a mood, on the scale."""
    import numpy as np

    source = sources[ticket.segment]
    row = int(str(ticket.row).rsplit(" ", 1)[1]) - 1
    taste = source.truth[row, WINES.index(str(ticket.column))]
    mood = np.random.default_rng([ticket.draw, row]).normal(0, 0.5)
    return float(np.clip(round(taste + mood), 1, 5))
