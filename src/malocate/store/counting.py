"""How many draws stand how, without going through those that went as they should.

A segment's draws are numbered from 0 on without gaps, so its last number tells how many there are.
Most were answered, in time and at the first lease; an index holds the others, and they are
counted. What a count costs thus grows with the segments and with what is under way, was imported
or went differently, and not with the answers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, ScalarSelect, bindparam, false, func, literal, select

from malocate.problem.draws import BEFORE
from malocate.store.schema import UNUSUAL, draws

ALL, ERASED_BEFORE = "all", "erased before"
"""Stand where a state would, in lines that tell how many draws a segment has, and how many of its
erased ones were imported."""

_HERE = draws.c.campaign == bindparam("of")
_ABOUT = (draws.c.segment, draws.c.state, draws.c.late, draws.c.expired)


def _first(*where: Any) -> ScalarSelect[Any]:
    """Give the least segment of those; by the index, so that none is gone through."""
    found = select(draws.c.segment).where(_HERE, *where).order_by(draws.c.segment).limit(1)
    return found.scalar_subquery()


def _totals() -> Any:
    """Give how many draws each segment has, going from one to the next by the index."""
    each = select(_first().label("segment")).cte("each", recursive=True)
    later = _first(draws.c.segment > each.c.segment)
    each = each.union_all(select(later).where(each.c.segment.is_not(None)))
    last = (
        select(draws.c.number)
        .where(_HERE, draws.c.segment == each.c.segment, draws.c.number < BEFORE)
        .order_by(draws.c.number.desc())
        .limit(1)
        .scalar_subquery()
    )
    known = each.c.segment.is_not(None)
    return select(each.c.segment, literal(ALL), false(), literal(0), last + 1).where(known)


def _unusual() -> Any:
    """Count the draws that did not go as they should, or not yet, in the order of their index."""
    return select(*_ABOUT, func.count()).where(_HERE, UNUSUAL).group_by(*_ABOUT)


def _erased_before() -> Any:
    """Count the erased draws that were imported, which their state does not tell any more."""
    place = draws.c.segment
    found = select(place, literal(ERASED_BEFORE), false(), literal(0), func.count())
    erased = draws.c.state == "erased", draws.c.number >= BEFORE
    return found.where(_HERE, UNUSUAL, *erased).group_by(place)


_counts = _unusual().union_all(_erased_before(), _totals())  # all of one moment


@dataclass(frozen=True)
class Count:
    """Draws of a segment in one state, and how many leases have run out on them."""

    segment: int
    state: str
    late: bool
    draws: int
    expired: int


def counts(connection: Connection, campaign: int) -> list[Count]:
    """Count draws by segment, state and whether the answer was late."""
    rows = [tuple(row) for row in connection.execute(_counts, {"of": campaign})]
    unusual = [row for row in rows if row[1] not in (ALL, ERASED_BEFORE)]
    usual = {segment: count or 0 for segment, state, *_, count in rows if state == ALL}
    for segment, state, *_, count in rows:
        if state == ERASED_BEFORE:
            usual[segment] += count
        elif state not in (ALL, "imported"):
            usual[segment] -= count
    answered = [(segment, "answered", False, 0, count) for segment, count in usual.items() if count]
    return _summed([*answered, *unusual])


def _summed(rows: Iterable[Any]) -> list[Count]:
    found: dict[tuple[int, str, bool], list[int]] = {}
    for segment, state, late, expired, count in rows:
        sums = found.setdefault((segment, state, bool(late)), [0, 0])
        sums[0] += count
        sums[1] += count * expired
    return [Count(*about, *found[about]) for about in sorted(found)]
