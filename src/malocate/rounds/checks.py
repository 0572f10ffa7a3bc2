"""Checks of what a strategy decides: a plug-in's mistake is named before anybody is asked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral

from malocate.errors import InvalidInput, InvalidType
from malocate.problem.checks import a
from malocate.strategies.base import Allocation, Standing

SLACK = 1e-9
"""Share of the budget by which rounding may seem to overspend it."""


def checked(
    allocation: object, standings: Sequence[Standing], budget: float, strategy: object
) -> Allocation:
    """Give the allocation; refuse one that no round can be made of, naming the strategy."""
    name = type(strategy).__name__
    if not isinstance(allocation, Allocation):
        raise InvalidType(f"{name}.plan gave {a(allocation)}; it must give an Allocation.")
    for part in ("answers", "index"):
        if len(getattr(allocation, part)) != len(standings):
            raise InvalidInput(
                f"{name}.plan gave {len(getattr(allocation, part))} numbers as {part} for "
                f"{len(standings)} segments; give one for each."
            )
    for count, standing in zip(allocation.answers, standings, strict=True):
        _check_count(count, standing, name)
    pairs = zip(allocation.answers, standings, strict=True)
    cost = math.fsum(count * standing.cost for count, standing in pairs)
    if cost > budget * (1 + SLACK) + SLACK:
        raise InvalidInput(
            f"{name}.plan spends {cost:,g} and {budget:,g} of the budget are left; ask for less."
        )
    return allocation


def _check_count(count: object, standing: Standing, name: str) -> None:
    start = f"{name}.plan gives segment {standing.name!r} {count!r} answers"
    if isinstance(count, bool) or not isinstance(count, Integral):
        raise InvalidType(f"{start}; it must be a whole number.")
    if not 0 <= int(count) <= standing.batch:
        raise InvalidInput(f"{start}; its batch allows 0 to {standing.batch:,}.")
    if int(count) % standing.multiple:
        raise InvalidInput(f"{start}; it must be a multiple of {standing.multiple}.")
