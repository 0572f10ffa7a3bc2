"""When a segment is looked at, and how much of the chance of error each look may spend."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from malocate.errors import InvalidInput, InvalidType
from malocate.problem import Observations
from malocate.problem.settings import check_count, check_positive, check_share

LARGEST = 2**63 - 1
"""More draws than anybody asks."""

_GROWTH = 40.0  # once sizes have grown by e to this power, they are as large as can be

LISTED = 2_000
"""Sizes up to which a grid is written out, rather than computed where it is needed."""


@dataclass(frozen=True)
class Look:
    """One look of a grid: its number, the draws it judges and the chance of error it spends."""

    number: int
    size: int
    delta: float


@dataclass(frozen=True)
class Anytime:
    """A grid of sizes fixed before the data, and a chance of error `delta` for all looks at once.

    Look s of a segment judges its first `size(s)` draws, by draw number, and spends
    delta / (segments · s · (s + 1)). All bounds of all looks at all segments then hold together
    with a chance of at least 1 − delta, whatever was allocated and whenever one stops. The
    sizes are `sizes`, or grow from `first` by adding `step`, or else by the factor `ratio`; with
    `last` they end there, and it is a size itself.

    >>> grid = Anytime(delta=0.05, segments=2, first=200, ratio=1.5)
    >>> [grid.size(number) for number in (1, 2, 3)]
    [200, 300, 450]
    >>> grid.reached(320)
    Look(number=2, size=300, delta=0.004166666666666667)
    >>> Anytime(first=200, ratio=1.5, last=320).next_size(300)
    320
    """

    delta: float = 0.05
    segments: int = 1
    first: int = 100
    ratio: float = 1.25
    sizes: tuple[int, ...] | None = None
    step: int | None = None
    last: int | None = None

    def __post_init__(self) -> None:
        check_share("delta", self.delta)
        check_count("segments", self.segments)
        check_count("first", self.first)
        check_positive("ratio", self.ratio)
        if self.last is not None:
            check_count("last", self.last)
        if self.sizes is not None:
            object.__setattr__(self, "sizes", _rising(self.sizes))
        elif self.step is not None:
            check_count("step", self.step)
        elif self.first * (self.ratio - 1) < 1:
            raise InvalidInput(
                f"The sizes begin at {self.first} and grow by the ratio {self.ratio}: the second "
                "would not be larger than the first. Begin later, or take a larger ratio."
            )

    def size(self, number: int) -> int:
        """Give the number of draws that a look judges; looks are counted from 1."""
        check_count("number", number)
        if self.looks is not None and number > self.looks:
            raise InvalidInput(f"There is no look {number}: the grid has {self.looks} sizes.")
        if self.last is not None and number == self.looks:
            return self.last
        return self._endless(number)

    @cached_property
    def looks(self) -> int | None:
        """How many sizes there are; None where they have no end."""
        if self.last is not None:
            return self._reached(self.last - 1) + 1
        return None if self.sizes is None else len(self.sizes)

    def next_size(self, draws: int) -> int | None:
        """Give the first size above `draws`; None where the grid has ended."""
        check_count("draws", draws, least=0)
        number = self._count(draws)
        return None if number == self.looks else self.size(number + 1)

    def delta_at(self, number: int) -> float:
        """Give the chance of error that a look at one segment may spend."""
        self.size(number)
        return self.delta / (self.segments * number * (number + 1))

    def reached(self, draws: int) -> Look | None:
        """Give the last look whose draws are all settled; none before the first size.

        A draw is settled once it was answered, refused or given up.
        """
        check_count("draws", draws, least=0)
        number = self._count(draws)
        return Look(number, self.size(number), self.delta_at(number)) if number else None

    def _count(self, draws: int) -> int:
        """Count the sizes that are no larger than `draws`."""
        if self.last is not None and self.looks is not None and draws >= self.last:
            return self.looks
        return self._reached(draws)

    def _reached(self, draws: int) -> int:
        """Count the sizes that are no larger than `draws`, as if there were no last one."""
        if self.sizes is not None:
            return bisect_right(self.sizes, draws)
        if self.step is not None:
            return max(0, (draws - self.first) // self.step + 1)
        most = math.ceil(_GROWTH / math.log(self.ratio)) + 1
        if most <= LISTED:
            return bisect_right(_growing(self.first, self.ratio, most), draws)
        return bisect_right(range(1, most + 1), draws, key=self._endless)

    def _endless(self, number: int) -> int:
        """Give a size as if there were no last one."""
        if self.sizes is not None:
            return self.sizes[number - 1]
        if self.step is not None:
            return self.first + (number - 1) * self.step
        return _grown(self.first, self.ratio, number - 1)


@lru_cache(maxsize=4096)
def _growing(first: int, ratio: float, most: int) -> tuple[int, ...]:
    """Give the sizes that grow by a factor, up to the largest; segments alike share them."""
    return tuple(_grown(first, ratio, steps) for steps in range(most))


def _grown(first: int, ratio: float, steps: int) -> int:
    if steps * math.log(ratio) >= _GROWTH:
        return LARGEST
    return min(LARGEST, math.ceil(first * ratio**steps - 1e-6))


def settled_draws(observations: Observations) -> int:
    """Count the draws from number 0 on that all have an answer.

    >>> settled_draws(Observations([0] * 3, [0] * 3, range(3), shape=(1, 1), draws=[0, 3, 1]))
    2
    """
    numbers = np.sort(observations.draws)
    gaps = np.flatnonzero(numbers != np.arange(len(numbers)))
    return int(gaps[0]) if len(gaps) else len(numbers)


def first_draws(observations: Observations, look: Look) -> Observations:
    """Give the answers that a look judges: those of the draws numbered below its size.

    >>> answers = Observations([0] * 6, [0] * 6, range(6), shape=(1, 1))
    >>> len(first_draws(answers, Anytime(sizes=(4, 8)).reached(len(answers))))
    4
    """
    return observations.take(observations.draws < look.size)


def _rising(sizes: Any) -> tuple[int, ...]:
    if isinstance(sizes, str) or not isinstance(sizes, Iterable):
        raise InvalidType(f"sizes are {sizes!r}; give a list of whole numbers.")
    sizes = tuple(sizes)
    for size in sizes:
        check_count("sizes", size)
    if not sizes or any(one >= two for one, two in pairwise(sizes)):
        raise InvalidInput(f"sizes are {sizes}; they must rise, and there must be one at least.")
    return tuple(int(size) for size in sizes)
