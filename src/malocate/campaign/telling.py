"""Telling: answers that are checked before they are recorded, and what became of them in words."""

from __future__ import annotations

from typing import Any

from malocate.campaign.checks import checked_number
from malocate.campaign.tickets import Stub, Ticket, id_of
from malocate.design import Design
from malocate.errors import Conflict, InvalidInput, NotFound
from malocate.problem.checks import LARGEST
from malocate.store import Answer, Outcome


def answer_of(design: Design, stub: Stub, ticket: str | Ticket, value: Any) -> Answer:
    """Give an answer to a ticket; refuse what is no number, or not on the segment's scale."""
    segment = design.segments[stub.segment]
    number = checked_number(value, f"The answer to ticket {id_of(ticket)}")
    low, high = segment.scale or (-LARGEST, LARGEST)
    if not low <= number <= high:
        raise InvalidInput(
            f"The answer to ticket {id_of(ticket)} is {value!r}; answers of segment "
            f"{segment.name!r} go from {low:g} to {high:g}."
        )
    return Answer(stub.draw, stub.attempt, number)


def check_recorded(outcome: Outcome, ticket: str | Ticket, value: float) -> None:
    """Say why an answer was not recorded; nothing where it was."""
    if outcome == "gone":
        raise NotFound(
            f"The question of ticket {id_of(ticket)} has been erased; there is nothing to answer."
        )
    if outcome == "conflict":
        raise Conflict(
            f"Ticket {id_of(ticket)} has been answered otherwise, and now {value!r}. The first "
            "answer stands; use `correct` to change it."
        )
