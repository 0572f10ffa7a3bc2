"""What becomes of an answer: it settles a draw, comes late, says the same again, or contradicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from sqlalchemy import Connection, bindparam, select, update
from sqlalchemy import null as sql_null

from malocate.store import log
from malocate.store.draws import Drawn, keep_extra
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


_these = (
    select(*(draws.c[name] for name in Drawn.__dataclass_fields__))
    .where(
        draws.c.campaign == bindparam("of"),
        draws.c.id.in_(bindparam("ids", expanding=True)),
    )
    .order_by(draws.c.id)
    .with_for_update()
)
_write = (
    update(draws)
    .where(draws.c.campaign == bindparam("of"), draws.c.id == bindparam("draw"))
    .values(
        state="answered",
        value=bindparam("answer"),
        told=bindparam("now"),
        told_attempt=bindparam("try"),
        late=bindparam("is_late"),
        deadline=sql_null(),
    )
)


def tell(
    connection: Connection, campaign: int, answers: Sequence[Answer], now: float
) -> list[Outcome]:
    """Record answers, and say of each what became of it; what changes nothing is not written."""
    ids = sorted({answer.draw for answer in answers})
    found = connection.execute(_these, {"of": campaign, "ids": ids})
    standing = {row[0]: Drawn(*row) for row in found}
    outcomes: list[Outcome] = []
    written: list[dict[str, Any]] = []
    for answer in answers:
        outcome = _outcome(connection, campaign, answer, standing.get(answer.draw), now)
        outcomes.append(outcome)
        if outcome in ("answered", "late"):
            written.append(_row(campaign, answer, now, outcome == "late"))
            standing[answer.draw] = replace(
                standing[answer.draw],
                state="answered",
                value=answer.value,
                told_attempt=answer.attempt,
            )
    if written:
        connection.execute(_write, written if len(written) > 1 else written[0])
    for kind in ("told", "extra", "conflict"):
        pairs = zip(answers, outcomes, strict=True)
        bodies = [
            _body(each, got, standing[each.draw]) for each, got in pairs if _kind(got) == kind
        ]
        log.append(connection, campaign, now, kind, *bodies)
    return outcomes


def _outcome(
    connection: Connection, campaign: int, answer: Answer, drawn: Drawn | None, now: float
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


def _row(campaign: int, answer: Answer, now: float, late: bool) -> dict[str, Any]:
    told = {"of": campaign, "draw": answer.draw, "try": answer.attempt, "now": now}
    return told | {"answer": answer.value, "is_late": late}


def _kind(outcome: Outcome) -> str:
    return "told" if outcome in ("answered", "late") else outcome


def _body(answer: Answer, outcome: Outcome, drawn: Drawn) -> dict[str, Any]:
    body: dict[str, Any] = {"draw": answer.draw, "try": answer.attempt, "value": answer.value}
    if drawn.who is not None and drawn.attempt == answer.attempt:
        body["who"] = drawn.who
    return body | ({"late": True} if outcome == "late" else {})
