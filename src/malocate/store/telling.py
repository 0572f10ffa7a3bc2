"""What becomes of an answer: it settles a draw, comes late, says the same again, or contradicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from sqlalchemy import Connection, bindparam, select

from malocate.store import log
from malocate.store.bulk import Given, write_answers
from malocate.store.draws import keep_extra
from malocate.store.schema import draws

Outcome = Literal["answered", "late", "same", "extra", "conflict", "gone"]
"""`extra`: the draw had been answered on another ticket, so this answer is kept and not counted;
`gone`: the draw was erased, or there is none."""


@dataclass(frozen=True)
class Answer:
    """A value for the draw of a ticket: its number, and which lending of it the ticket was."""

    draw: int
    attempt: int
    value: float


class Standing(NamedTuple):
    """A draw as far as an answer to it is concerned."""

    id: int
    state: str
    attempt: int
    who: str | None
    deadline: float | None
    value: float | None
    told_attempt: int | None


_these = (
    select(*(draws.c[name] for name in Standing._fields))
    .where(
        draws.c.campaign == bindparam("of"),
        draws.c.id.in_(bindparam("ids", expanding=True)),
    )
    .order_by(draws.c.id)
    .with_for_update()
)


def tell(
    connection: Connection, campaign: int, answers: Sequence[Answer], now: float
) -> list[Outcome]:
    """Record answers, and say of each what became of it; what changes nothing is not written."""
    ids = sorted({answer.draw for answer in answers})
    found = connection.execute(_these, {"of": campaign, "ids": ids})
    standing = {row[0]: Standing(*row) for row in found}
    outcomes: list[Outcome] = []
    written: list[Given] = []
    for answer in answers:
        outcome = _outcome(connection, campaign, answer, standing.get(answer.draw), now)
        outcomes.append(outcome)
        if outcome in ("answered", "late"):
            written.append(Given(answer.draw, answer.attempt, answer.value, outcome == "late"))
            standing[answer.draw] = standing[answer.draw]._replace(
                state="answered", value=answer.value, told_attempt=answer.attempt
            )
    if written:
        write_answers(connection, campaign, now, written)
    for kind in ("told", "extra", "conflict"):
        pairs = zip(answers, outcomes, strict=True)
        bodies = [
            _body(each, got, standing[each.draw]) for each, got in pairs if _kind(got) == kind
        ]
        log.append(connection, campaign, now, kind, *bodies)
    return outcomes


def _outcome(
    connection: Connection, campaign: int, answer: Answer, drawn: Standing | None, now: float
) -> Outcome:
    if drawn is None or drawn.state == "erased" or not 0 < answer.attempt <= drawn.attempt:
        return "gone"
    if drawn.state != "answered":
        out = drawn.state == "lent" and drawn.attempt == answer.attempt
        in_time = out and drawn.deadline is not None and now <= drawn.deadline
        return "answered" if in_time else "late"
    if drawn.told_attempt == answer.attempt:
        return "same" if drawn.value == answer.value else "conflict"
    before = keep_extra(connection, campaign, answer.draw, answer.attempt, answer.value)
    if before is None:
        return "extra"
    return "same" if before == answer.value else "conflict"


def _kind(outcome: Outcome) -> str:
    return "told" if outcome in ("answered", "late") else outcome


def _body(answer: Answer, outcome: Outcome, drawn: Standing) -> dict[str, Any]:
    body: dict[str, Any] = {"draw": answer.draw, "try": answer.attempt, "value": answer.value}
    if drawn.who is not None and drawn.attempt == answer.attempt:
        body["who"] = drawn.who
    return body | ({"late": True} if outcome == "late" else {})
