"""Draws: each is lent to somebody as a ticket, and settled once.

A draw is *open*, *lent*, *answered*, *refused*, *given up* or *erased*; answers from before the
campaign are *imported*. A lease that has run out
puts it back among the open ones; after `MOST_EXPIRED` leases ran out on it, it is given up. The
number of times it was lent is part of a ticket, so that a late answer on an old ticket is told
from one on the ticket that is out now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import (
    Connection,
    Select,
    and_,
    bindparam,
    case,
    exists,
    insert,
    select,
    update,
)
from sqlalchemy import null as sql_null

from malocate.store.schema import draws, extras

MOST_EXPIRED = 5

AT_ONCE = 500
"""Numbers that one statement lists at most."""

COUNTING = ("answered", "imported")
"""The states of draws whose answers count."""


class Asked(NamedTuple):
    """What somebody asks for: so many draws at most, until then."""

    most: int
    who: str
    until: float


@dataclass(frozen=True)
class Drawn:
    """One draw as it stands: its cell, its state, and who has it or what was answered."""

    id: int
    round: int
    segment: int
    number: int
    row: int
    col: int
    repeats: int
    probability: float | None
    state: str
    attempt: int
    who: str | None
    deadline: float | None
    value: float | None
    told_attempt: int | None
    late: bool
    told: float | None = None


@dataclass(frozen=True)
class Cell:
    """Where a draw is to be asked instead: `probability` is the chance that it had."""

    id: int
    row: int
    col: int
    repeats: int
    probability: float | None


Redraw = Callable[[Sequence[Drawn]], Sequence[Cell]]
"""Gives the cells at which some of the open draws are to be asked; the others stay open."""

_COLUMNS = tuple(draws.c[name] for name in Drawn.__dataclass_fields__)
_HERE = draws.c.campaign == bindparam("of")
_DUE = and_(_HERE, draws.c.state == "lent", draws.c.deadline < bindparam("now"))
_THIS = and_(_HERE, draws.c.id == bindparam("draw"))
_TICKET = and_(_THIS, draws.c.state == "lent", draws.c.attempt == bindparam("try"))

_one = select(*_COLUMNS).where(_THIS)
_one_locked = _one.with_for_update()
_pending = (
    select(*_COLUMNS)
    .where(_HERE, draws.c.state == "lent", draws.c.who == bindparam("asker"))
    .order_by(draws.c.id)
)
ANY_DUE = exists(select(draws.c.id).where(_DUE))
ANY_PENDING = exists(
    select(draws.c.id).where(_HERE, draws.c.state == "lent", draws.c.who == bindparam("asker"))
)
_any_waiting = select(
    exists(select(draws.c.id).where(_HERE, draws.c.state == "open")),
    exists(select(draws.c.id).where(_HERE, draws.c.state == "lent")),
)
_reclaim = (  # what somebody is answering at this moment is left to them
    update(draws)
    .where(_HERE, draws.c.id.in_(select(draws.c.id).where(_DUE).with_for_update(skip_locked=True)))
    .values(
        state=case((draws.c.expired + 1 >= MOST_EXPIRED, "given up"), else_="open"),
        expired=draws.c.expired + 1,
        who=sql_null(),
        deadline=sql_null(),
    )
    .returning(draws.c.id, draws.c.attempt, draws.c.state)
)


def _open(of_segments: bool) -> Select[Any]:
    found = select(draws.c.id).where(_HERE, draws.c.state == "open")
    if of_segments:
        found = found.where(draws.c.segment.in_(bindparam("segments", expanding=True)))
    found = found.order_by(draws.c.id).limit(bindparam("most"))
    return found.with_for_update(skip_locked=True)


def _lending(of_segments: bool) -> Any:
    return (
        update(draws)
        .where(_HERE, draws.c.id.in_(_open(of_segments).scalar_subquery()))
        .values(
            state="lent",
            attempt=draws.c.attempt + 1,
            who=bindparam("asker"),
            deadline=bindparam("until"),
        )
        .returning(*_COLUMNS)
    )


_lend_any, _lend_of = _lending(False), _lending(True)
_candidates = (
    select(*_COLUMNS)
    .where(
        _HERE,
        draws.c.state == "open",
        draws.c.id > bindparam("after"),
        draws.c.segment.in_(bindparam("segments", expanding=True)),
    )
    .order_by(draws.c.id)
    .limit(AT_ONCE)
)
_lend_at = (
    update(draws)
    .where(_THIS)
    .values(
        state="lent",
        attempt=draws.c.attempt + 1,
        who=bindparam("asker"),
        deadline=bindparam("until"),
        row=bindparam("at_row"),
        col=bindparam("at_col"),
        repeats=bindparam("again"),
        probability=bindparam("chance"),
    )
)
_follow = (  # replicates ask the cell of the draw that they repeat
    update(draws)
    .where(
        _HERE,
        draws.c.segment == bindparam("place"),
        draws.c.repeats == bindparam("origin"),
        draws.c.state == "open",
    )
    .values(row=bindparam("at_row"), col=bindparam("at_col"), probability=bindparam("chance"))
)
_settle = (
    update(draws)
    .where(_TICKET)
    .values(state=bindparam("to"), deadline=sql_null())
    .returning(draws.c.id)
)
_reopen = (
    update(draws)
    .where(_TICKET)
    .values(state="open", who=sql_null(), deadline=sql_null())
    .returning(draws.c.id)
)
_renew = update(draws).where(_TICKET).values(deadline=bindparam("until")).returning(draws.c.id)
_correct = update(draws).where(_THIS).values(value=bindparam("answer"))
_give_up = (
    update(draws)
    .where(_HERE, draws.c.state == "open")
    .values(state="given up")
    .returning(draws.c.id)
)
_of_segment = (
    select(
        draws.c.number, draws.c.row, draws.c.col, draws.c.repeats, draws.c.probability,
        draws.c.value,
    )
    .where(_HERE, draws.c.segment == bindparam("place"), draws.c.state.in_(COUNTING))
    .order_by(draws.c.number)
)  # fmt: skip
_silent = (
    select(draws.c.number, draws.c.row, draws.c.col)
    .where(
        _HERE,
        draws.c.segment == bindparam("place"),
        draws.c.state.in_(["refused", "given up", "erased"]),
    )
    .order_by(draws.c.number)
)
_cells = select(draws.c.number, draws.c.row, draws.c.col, draws.c.probability).where(
    _HERE,
    draws.c.segment == bindparam("place"),
    draws.c.number.in_(bindparam("numbers", expanding=True)),
)
_extra = select(extras.c.value).where(
    extras.c.campaign == bindparam("of"),
    extras.c.draw == bindparam("draw"),
    extras.c.attempt == bindparam("try"),
)


def add(connection: Connection, campaign: int, fresh: Iterable[Drawn]) -> None:
    """Add draws, all open."""
    rows = [
        {
            "campaign": campaign, "id": each.id, "round": each.round, "segment": each.segment,
            "number": each.number, "row": each.row, "col": each.col, "repeats": each.repeats,
            "probability": each.probability, "state": each.state, "attempt": each.attempt,
            "expired": 0, "value": each.value, "told": each.told,
            "told_attempt": each.told_attempt, "late": each.late,
        }
        for each in fresh
    ]  # fmt: skip
    if rows:
        connection.execute(insert(draws), rows)


def reclaim(connection: Connection, campaign: int, now: float) -> list[tuple[int, int, str]]:
    """Take back what is lent beyond its deadline; give id, attempt and the state after that."""
    told = {"of": campaign, "now": now}
    return [(row[0], row[1], row[2]) for row in connection.execute(_reclaim, told)]


def pending(connection: Connection, campaign: int, who: str) -> list[Drawn]:
    """Give what somebody has been lent and has not settled."""
    rows = connection.execute(_pending, {"of": campaign, "asker": who})
    return [Drawn(*row) for row in rows]


def lend(
    connection: Connection,
    campaign: int,
    most: int,
    who: str,
    until: float,
    segments: Sequence[int] | None = None,
) -> list[Drawn]:
    """Lend the first open draws, of some segments or of all."""
    told = {"of": campaign, "asker": who, "until": until, "most": most}
    if segments is not None:
        rows = connection.execute(_lend_of, told | {"segments": list(segments)})
    else:
        rows = connection.execute(_lend_any, told)
    return sorted((Drawn(*row) for row in rows), key=lambda each: each.id)


def lend_redrawn(
    connection: Connection,
    campaign: int,
    most: int,
    who: str,
    until: float,
    segments: Sequence[int],
    redraw: Redraw,
) -> list[Drawn]:
    """Lend open draws at other cells than they were drawn at; replicates of them follow.

    Those that `redraw` leaves out stay open, and later ones are lent in their place.
    """
    told = {"of": campaign, "segments": list(segments), "after": -1}
    lent: list[Drawn] = []
    while len(lent) < most:
        found = {row[0]: Drawn(*row) for row in connection.execute(_candidates, told)}
        if not found:
            break
        told["after"] = max(found)
        cells = redraw(list(found.values()))[: most - len(lent)]
        lent += [_lent_at(connection, campaign, found[c.id], c, who, until) for c in cells]
    return lent


def _lent_at(
    connection: Connection, campaign: int, drawn: Drawn, cell: Cell, who: str, until: float
) -> Drawn:
    place = {"of": campaign, "at_row": cell.row, "at_col": cell.col, "chance": cell.probability}
    this = {"draw": cell.id, "asker": who, "until": until, "again": cell.repeats}
    connection.execute(_lend_at, place | this)
    connection.execute(_follow, place | {"place": drawn.segment, "origin": drawn.number})
    return Drawn(*connection.execute(_one, {"of": campaign, "draw": cell.id}).one())


def one(connection: Connection, campaign: int, draw: int, lock: bool = False) -> Drawn | None:
    """Give a draw as it stands."""
    found = connection.execute(
        _one_locked if lock else _one, {"of": campaign, "draw": draw}
    ).first()
    return None if found is None else Drawn(*found)


def keep_extra(
    connection: Connection, campaign: int, draw: int, attempt: int, value: float
) -> float | None:
    """Keep a second answer to a draw, on a ticket of its own; give the one kept before, if any."""
    told = {"of": campaign, "draw": draw, "try": attempt}
    before = connection.execute(_extra, told).scalar_one_or_none()
    if before is None:
        row = {"campaign": campaign, "draw": draw, "attempt": attempt, "value": value}
        connection.execute(insert(extras), row)
    return before


def settle(connection: Connection, campaign: int, draw: int, attempt: int, state: str) -> bool:
    """Settle a ticket that is out without an answer; tell whether it was out."""
    told = {"of": campaign, "draw": draw, "try": attempt, "to": state}
    return connection.execute(_settle, told).first() is not None


def reopen(connection: Connection, campaign: int, draw: int, attempt: int) -> bool:
    """Put the draw of a ticket back among the open ones; tell whether it was out."""
    told = {"of": campaign, "draw": draw, "try": attempt}
    return connection.execute(_reopen, told).first() is not None


def renew(connection: Connection, campaign: int, draw: int, attempt: int, until: float) -> bool:
    """Move the deadline of a ticket that is out; tell whether it was out."""
    told = {"of": campaign, "draw": draw, "try": attempt, "until": until}
    return connection.execute(_renew, told).first() is not None


def correct(connection: Connection, campaign: int, draw: int, value: float) -> None:
    """Change the value of an answered draw."""
    connection.execute(_correct, {"of": campaign, "draw": draw, "answer": value})


def give_up(connection: Connection, campaign: int) -> list[int]:
    """Give up all open draws."""
    return [row[0] for row in connection.execute(_give_up, {"of": campaign})]


def waiting(connection: Connection, campaign: int) -> tuple[bool, bool]:
    """Tell whether any draw is open, and whether any is lent."""
    found = connection.execute(_any_waiting, {"of": campaign}).one()
    return bool(found[0]), bool(found[1])


def answered(connection: Connection, campaign: int, segment: int) -> list[tuple[Any, ...]]:
    """Give a segment's answers by draw number: number, row, column, repeats, chance, value."""
    rows = connection.execute(_of_segment, {"of": campaign, "place": segment})
    return [tuple(row) for row in rows]


def silent(connection: Connection, campaign: int, segment: int) -> list[tuple[int, int, int]]:
    """Give number, row and column of a segment's draws that ended without an answer."""
    rows = connection.execute(_silent, {"of": campaign, "place": segment})
    return [(row[0], row[1], row[2]) for row in rows]


def cells(
    connection: Connection, campaign: int, segment: int, numbers: Sequence[int]
) -> dict[int, tuple[int, int, float | None]]:
    """Give row, column and chance of a segment's draws by their numbers."""
    found: dict[int, tuple[int, int, float | None]] = {}
    for first in range(0, len(numbers), AT_ONCE):
        told = {"of": campaign, "place": segment, "numbers": numbers[first : first + AT_ONCE]}
        found |= {row[0]: (row[1], row[2], row[3]) for row in connection.execute(_cells, told)}
    return found
