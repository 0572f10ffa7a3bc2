"""Small campaigns for tests: two towns, answers that are a function of the question."""

from __future__ import annotations

import numpy as np

from malocate import Design, Segment, SoftImpute

PEOPLE = [f"p{number}" for number in range(10)]
WINES = [f"w{number}" for number in range(8)]


def town(name: str, **settings) -> Segment:
    return Segment(name, labels=(PEOPLE, WINES), scale=(1, 5), **settings)


def small_design(budget: float = 260, **settings) -> Design:
    segments = (town("north"), town("south"))
    return Design(segments, budget=budget, estimator=SoftImpute(2.0), **settings)


def value_of(ticket) -> float:
    """What everybody answers: it depends on the question and, a little, on the draw."""
    row, column = (int(str(label)[1:]) for label in (ticket.row, ticket.column))
    taste = 2 + (row * column) % 3 if ticket.segment == "north" else 1 + (row + column) % 5
    return float(min(5, max(1, taste + (ticket.draw % 7 == 0))))


def live(campaign, n: int = 30, who: str = "w", most: int = 10_000) -> int:
    """Ask and tell until nothing is left to ask, or so often; count the answers."""
    count = 0
    for _ in range(most):
        tickets = campaign.ask(n, who=who)
        if not tickets:
            break
        campaign.tell_many([(ticket, value_of(ticket)) for ticket in tickets])
        count += len(tickets)
    return count


def decisions(campaign) -> list[str]:
    """What was decided, as it was written."""
    return [body for _, _, body in campaign.store.rounds(campaign.id)]


class Recorded:
    """The answers to one segment of a campaign, given again by their draws."""

    shape, truth = (len(PEOPLE), len(WINES)), None

    def __init__(self, answers) -> None:
        self._by_draw = dict(zip(answers["draw"], answers["value"], strict=True))

    def answer(self, asked, *_) -> np.ndarray:
        return np.array([self._by_draw[draw] for draw in asked.draws])


def recorded(campaign) -> dict[str, Recorded]:
    """Give the segments of a campaign as sources that answer as its people did."""
    rows = campaign.export("answers")
    return {name: Recorded(part) for name, part in rows.groupby("segment")}
