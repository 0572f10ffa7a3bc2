"""What becomes of an answer: it settles a draw, comes late, says the same again, or contradicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Connection

from malocate.store import log
from malocate.store.bulk import Given, Standing, standings, write_answers
from malocate.store.draws import keep_extra

Outcome = Literal["answered", "late", "reversed", "same", "extra", "conflict", "gone"]
"""`reversed`: the ticket had been refused, and is answered after all; `extra`: the draw had been
answered on another ticket, so this answer is kept and not counted; `gone`: the draw was erased, or
there is none."""


@dataclass(frozen=True)
class Answer:
    """A value for the draw of a ticket: its number, and which lending of it the ticket was."""

    draw: int
    attempt: int
    value: float


def tell(
    connection: Connection, campaign: int, answers: Sequence[Answer], now: float
) -> list[Outcome]:
    """Record answers, and say of each what became of it; what changes nothing is not written."""
    standing = standings(connection, campaign, {answer.draw for answer in answers})
    first: dict[int, Given] = {}
    outcomes: list[Outcome] = []
    bodies: dict[str, list[dict[str, Any]]] = {"told": [], "extra": [], "conflict": []}
    for answer in answers:
        drawn = standing.get(answer.draw)
        before = first.get(answer.draw)
        outcome = _outcome(connection, campaign, answer, drawn, before, now)
        outcomes.append(outcome)
        if outcome in COUNTED:
            late = outcome == "late"
            first[answer.draw] = Given(answer.draw, answer.attempt, answer.value, late)
        if drawn is not None and (kind := _KINDS.get(outcome)) is not None:
            bodies[kind].append(_body(answer, outcome, drawn))
    if first:
        write_answers(connection, campaign, now, list(first.values()))
    for kind, said in bodies.items():
        log.append(connection, campaign, now, kind, *said)
    return outcomes


COUNTED = ("answered", "late", "reversed")
"""What becomes of an answer that counts."""
_KINDS = dict.fromkeys(COUNTED, "told") | {"extra": "extra", "conflict": "conflict"}


def _outcome(
    connection: Connection,
    campaign: int,
    answer: Answer,
    drawn: Standing | None,
    first: Given | None,
    now: float,
) -> Outcome:
    """Say what becomes of an answer; `first` is one to the same draw that came just before it."""
    if drawn is None or drawn.state == "erased" or not 0 < answer.attempt <= drawn.attempt:
        return "gone"
    if first is None and drawn.state != "answered":
        return _first(answer, drawn, now)
    ticket, value = (
        (drawn.told_attempt, drawn.value) if first is None else (first.attempt, first.value)
    )
    if ticket == answer.attempt:
        return "same" if value == answer.value else "conflict"
    before = keep_extra(connection, campaign, answer.draw, answer.attempt, answer.value)
    if before is None:
        return "extra"
    return "same" if before == answer.value else "conflict"


def _first(answer: Answer, drawn: Standing, now: float) -> Outcome:
    """Say what becomes of the first answer to a draw: whenever it comes, it counts."""
    own = drawn.attempt == answer.attempt
    if own and drawn.state == "refused":
        return "reversed"
    out = own and drawn.state == "lent"
    in_time = out and drawn.deadline is not None and now <= drawn.deadline
    return "answered" if in_time else "late"


def _body(answer: Answer, outcome: Outcome, drawn: Standing) -> dict[str, Any]:
    body: dict[str, Any] = {"draw": answer.draw, "try": answer.attempt, "value": answer.value}
    if drawn.who is not None and drawn.attempt == answer.attempt:
        body["who"] = drawn.who
    if outcome == "late":
        body["late"] = True
    return body
