"""How many draws stand how, without going through those that went as they should.

A segment's draws are numbered from 0 on without gaps, so its last number tells how many there are.
Most were answered, in time and at the first lease; an index holds the others, and they are
counted. Imported answers are told by their numbers, far above. What a count costs thus grows with
the segments and with what is under way, was imported or went differently, and not with the answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, ScalarSelect, bindparam, false, func, literal, select

from malocate.problem.draws import BEFORE
from malocate.store.schema import UNUSUAL, draws

_ALL = "all"
"""Stands where a state would, in lines that tell how many draws a segment has."""

_HERE = draws.c.campaign == bindparam("of")
_BEFORE = draws.c.number >= BEFORE


def _first(*where: Any) -> ScalarSelect[Any]:
    """Give the least segment of those; by the index, so that none is gone through."""
    found = select(draws.c.segment).where(_HERE, *where).order_by(draws.c.segment).limit(1)
    return found.scalar_subquery()


def _totals() -> list[Any]:
    """Give how many draws each segment has, going from one to the next by the index."""
    each = select(_first().label("segment")).cte("each", recursive=True)
    later = _first(draws.c.segment > each.c.segment)
    each = each.union_all(select(later).where(each.c.segment.is_not(None)))
    own = _HERE, draws.c.segment == each.c.segment
    last = select(draws.c.number).where(*own, ~_BEFORE).order_by(draws.c.number.desc()).limit(1)
    imported = select(func.count()).select_from(draws).where(*own, _BEFORE)
    lines = (False, last.scalar_subquery() + 1), (True, imported.scalar_subquery())
    return [
        select(each.c.segment, literal(_ALL), false(), literal(before), literal(0), count).where(
            each.c.segment.is_not(None)
        )
        for before, count in lines
    ]


def _unusual() -> Any:
    """Count the draws that did not go as they should, or not yet."""
    about = draws.c.segment, draws.c.state, draws.c.late, _BEFORE.label("before"), draws.c.expired
    return select(*about, func.count()).where(_HERE, UNUSUAL).group_by(*about)


_counts = _unusual().union_all(*_totals())  # all of one moment


@dataclass(frozen=True, order=True)
class Count:
    """Draws of a segment in one state, and how many leases have run out on them.

    `before`: they were imported, as answers from before the campaign.
    """

    segment: int
    state: str
    late: bool
    before: bool
    draws: int
    expired: int


def counts(connection: Connection, campaign: int) -> list[Count]:
    """Count draws by segment, state, whether the answer was late and whether it was imported."""
    went: Counter[tuple[int, bool]] = Counter()
    unusual = []
    for segment, state, late, before, *sums in connection.execute(_counts, {"of": campaign}):
        own = segment, bool(before)
        went[own] += (sums[-1] or 0) if state == _ALL else -sums[-1]
        if state != _ALL:
            unusual.append((segment, state, bool(late), bool(before), *sums))
    states = {False: "answered", True: "imported"}
    usual = [
        (segment, states[before], False, before, 0, count)
        for (segment, before), count in went.items()
        if count
    ]
    return _summed([*usual, *unusual])


def _summed(rows: Iterable[tuple[Any, ...]]) -> list[Count]:
    """Give them without telling apart how many leases ran out on each."""
    found: dict[tuple[Any, ...], list[int]] = {}
    for *about, expired, count in rows:
        sums = found.setdefault(tuple(about), [0, 0])
        sums[0] += count
        sums[1] += count * expired
    return sorted(Count(*about, *sums) for about, sums in found.items())
