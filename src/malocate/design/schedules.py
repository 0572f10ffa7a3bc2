"""Schedules: at which numbers of answers a segment is looked at.

A schedule fixes the sizes of a segment's looks in the segment's own clock, before any answer is
seen. A batch takes a segment from one size to the next, so that what is decided by a look and
what is certified at it are the same look.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Protocol

from malocate.confidence.spending import Anytime
from malocate.errors import InvalidInput
from malocate.problem import Segment
from malocate.problem.settings import check_count, check_positive
from malocate.theory import first_batch


class Schedule(Protocol):
    """Fixes when a segment is looked at.

    `fresh` says that a look judges the answers since the last one alone; `multiple`, that
    batches are a multiple of it.
    """

    @property
    def fresh(self) -> bool:
        """Whether a look judges only the answers that are new."""
        ...

    @property
    def multiple(self) -> int:
        """What a batch must be a multiple of."""
        ...

    def grid(self, segment: Segment, delta: float, segments: int, /) -> Anytime:
        """Give the sizes of a segment's looks; its cap is not yet in them."""
        ...


@dataclass(frozen=True)
class Growing:
    """Looks at sizes that grow by a factor: few where answers are many.

    The first size is `per_side` answers for each row and column, at most one for each askable
    cell, and at least `least`.

    >>> from malocate import Segment
    >>> grid = Growing(ratio=1.5).grid(Segment("a", (60, 40)), 0.05, 1)
    >>> [grid.size(number) for number in (1, 2, 3)]
    [400, 600, 900]
    """

    ratio: float = 1.3
    per_side: float = 4.0
    least: int = 20
    fresh = False
    multiple = 1

    def __post_init__(self) -> None:
        check_positive("ratio", self.ratio)
        check_positive("per_side", self.per_side)
        check_count("least", self.least)
        if self.least * (self.ratio - 1) < 1:
            raise InvalidInput(
                f"ratio is {self.ratio} and least {self.least}: the second look would not be later "
                "than the first. Take a larger ratio."
            )

    def grid(self, segment: Segment, delta: float, segments: int) -> Anytime:
        """Give the sizes of a segment's looks."""
        wanted = math.ceil(self.per_side * sum(segment.shape))
        first = max(self.least, min(wanted, segment.n_askable))
        return Anytime(delta=delta, segments=segments, first=first, ratio=self.ratio)


@dataclass(frozen=True)
class Batches:
    """Looks after every `size` answers; 1 is a look at every answer, for small problems.

    The first size is `first`, or else 8 answers for each line of the longer side, as in the
    paper's experiments.

    >>> from malocate import Segment
    >>> grid = Batches(size=1840).grid(Segment("a", (200, 200)), 0.05, 1)
    >>> [grid.size(number) for number in (1, 2, 3)]
    [1600, 3440, 5280]
    """

    size: int
    first: int | None = None
    fresh = False
    multiple = 1

    def __post_init__(self) -> None:
        check_count("size", self.size)
        if self.first is not None:
            check_count("first", self.first)

    def grid(self, segment: Segment, delta: float, segments: int) -> Anytime:
        """Give the sizes of a segment's looks."""
        first = 8 * segment.longest if self.first is None else self.first
        return Anytime(delta=delta, segments=segments, first=first, step=self.size)


@dataclass(frozen=True)
class Doubling:
    """The paper's Algorithm 1: as many fresh answers as all before, judged alone, by halves.

    The first batch has 4⌈(d log d + 1) / 2⌉ answers, d the longer side.

    >>> from malocate import Segment
    >>> grid = Doubling().grid(Segment("a", (200, 200)), 0.05, 1)
    >>> [grid.size(number) for number in (1, 2, 3)]
    [2124, 4248, 8496]
    """

    fresh = True
    multiple = 2

    def grid(self, segment: Segment, delta: float, segments: int) -> Anytime:
        """Give the sizes of a segment's looks."""
        first = first_batch(segment.shape)
        return Anytime(delta=delta, segments=segments, first=first, ratio=2.0)


SCHEDULES: dict[str, type[Any]] = {each.__name__: each for each in (Growing, Batches, Doubling)}


def capped(grid: Anytime, cap: int | None) -> Anytime:
    """Give the grid whose last size is the cap.

    >>> grid = capped(Anytime(first=100, step=40), 150)
    >>> [grid.size(number) for number in range(1, grid.looks + 1)]
    [100, 140, 150]
    """
    return grid if cap is None else replace(grid, last=cap)
