"""Draw numbers: which ask an answer belongs to, and which asks repeat another on purpose."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from malocate.errors import InvalidInput
from malocate.problem.arrays import Index, Int32s, Int64s, frozen, restore
from malocate.problem.checks import refuse_where, whole

BEFORE = 1 << 40
"""Draw numbers from here on are of answers that were there before anybody was asked."""

_BLOCK = 1 << 20
_HIGHEST = 2**63 - 2  # so that the number after it is one, too


@dataclass(frozen=True, eq=False)
class Draws:
    """The draw number of each answer and, for a designed replicate, the draw that it repeats.

    Consecutive numbers are kept as a range and no replicates as None, so that the usual case
    takes no memory.

    >>> Draws(range(3)).numbers.tolist(), Draws(range(3)).repeats.tolist()
    ([0, 1, 2], [-1, -1, -1])
    """

    compact: range | Int64s
    replicated: Int64s | None = None
    given: bool = False  # by the user, so that `joined` keeps them
    rising: bool = True  # every number is above the one before

    @classmethod
    def checked(cls, size: int, draws: NDArray[Any] | None, repeats: NDArray[Any] | None) -> Draws:
        """Give the draws of `size` answers; refuse numbers below 0 and numbers that repeat."""
        replicated = None if repeats is None else _replicated(_counted(repeats, "repeats", -1))
        if draws is None:
            return cls(range(size), replicated)
        numbers = _counted(draws, "draws", least=0)
        return cls(_compacted(numbers), replicated, given=True, rising=_is_rising(numbers))

    def __setstate__(self, state: dict[str, Any]) -> None:
        restore(self, state)

    def __len__(self) -> int:
        return len(self.compact)

    @property
    def numbers(self) -> Int64s:
        """The draw number of each answer."""
        if isinstance(self.compact, range):
            return frozen(_listed(self.compact))
        return self.compact

    @property
    def repeats(self) -> Int64s:
        """The draw that each answer repeats, -1 for none."""
        if self.replicated is None:
            return frozen(np.full(len(self), -1, dtype=np.int64))
        return self.replicated

    @property
    def origins(self) -> Int64s:
        """The draw that each answer repeats, its own for a fresh one."""
        if self.replicated is None:
            return self.numbers
        return np.where(self.replicated >= 0, self.replicated, self.numbers)

    def blocks(self) -> Iterator[tuple[slice, Int64s]]:
        """Walk the `origins` of the answers, a bounded number at a time."""
        for first in range(0, len(self), _BLOCK):
            part = slice(first, min(first + _BLOCK, len(self)))
            replicated = None if self.replicated is None else self.replicated[part]
            yield part, Draws(self.compact[part], replicated).origins

    @property
    def end(self) -> int:
        """The number after the highest draw."""
        if not len(self):
            return 0
        if isinstance(self.compact, range):
            return max(self.compact[0], self.compact[-1]) + 1
        return int(self.compact.max()) + 1

    def same(self, other: Draws) -> bool:
        """Tell whether numbers and replicates are the same, in the same order."""
        if self.compact is not other.compact and not np.array_equal(self.numbers, other.numbers):
            return False
        unrepeated = self.replicated is None and other.replicated is None
        return unrepeated or np.array_equal(self.repeats, other.repeats)

    def take(self, index: Index) -> Draws:
        """Give the draws of the answers at `index`, which from then on keep their numbers."""
        replicated = None if self.replicated is None else frozen(self.replicated[index])
        return Draws(self._chosen(index), replicated, given=True, rising=self._stays_rising(index))

    def _stays_rising(self, index: Index) -> bool:
        """Tell whether the numbers at `index` rise because these do."""
        if isinstance(index, slice):
            return self.rising and (index.step is None or index.step > 0)
        return self.rising and (index.dtype == np.bool_ or _is_rising(index))

    def _chosen(self, index: Index) -> range | Int64s:
        if not isinstance(self.compact, range):
            return frozen(self.compact[index])
        if isinstance(index, slice):
            return self.compact[index]
        places = np.flatnonzero(index) if index.dtype == np.bool_ else index
        return frozen(places * self.compact.step + self.compact.start)

    def since(self, draw: int) -> Index:
        """Say which answers have the number `draw` or a higher one."""
        if self.rising:
            return slice(bisect_left(self.compact, draw), None)
        return self.numbers >= draw

    def halves(self) -> tuple[Index, Index]:
        """Say which answers are in the first and in the second half, replicates with their draw."""
        if not len(self) or (self.rising and self.replicated is None):
            middle = (len(self) + 1) // 2
            return slice(0, middle), slice(middle, None)
        origins = self.origins
        distinct = np.unique(origins)
        first = origins <= distinct[(distinct.size - 1) // 2]
        return first, ~first

    def places(self, numbers: Int64s) -> Int64s:
        """Give the place of each of these draw numbers among the answers, -1 where there is none.

        >>> Draws(range(5, 8)).places(np.array([6, 9])).tolist()
        [1, -1]
        """
        if isinstance(self.compact, range) and self.compact.step == 1:
            places = numbers - self.compact.start
            return np.where((places >= 0) & (places < len(self)), places, -1)
        order = np.argsort(self.numbers, kind="stable")
        found = np.searchsorted(self.numbers, numbers, sorter=order)
        places = order[np.minimum(found, len(self) - 1)]
        return np.where(self.numbers[places] == numbers, places, -1)

    def check_replicates(self, rows: Int32s, cols: Int32s, *, absent: bool = False) -> None:
        """Refuse a replicate of a draw that is missing, at another cell, or itself a replicate.

        A draw numbered below all of these belongs to an earlier batch and may be missing; with
        `absent` any may be.
        """
        if self.replicated is None or not len(self):
            return
        again = np.flatnonzero(self.replicated >= 0)
        names = self.replicated[again]
        origin = self.places(names)
        here = origin >= 0
        missing = ~here & (names > self.numbers.min()) & (not absent)
        elsewhere = (rows[origin] != rows[again]) | (cols[origin] != cols[again])
        for wrong, why in (
            (missing, "which is not among the draws"),
            (here & elsewhere, "which is at another cell; a replicate asks the same cell again"),
            (here & (self.replicated[origin] >= 0), "itself a replicate; name the draw it repeats"),
        ):
            if wrong.any():
                place = int(again[np.argmax(wrong)])
                raise InvalidInput(f"repeats[{place}] is draw {self.replicated[place]}, {why}.")


def joined(parts: Sequence[Draws]) -> Draws:
    """Give the draws of all parts; those without given numbers continue after the highest."""
    moved: list[Draws] = []
    end = 0
    for part in parts:
        moved.append(part if part.given else _shifted(part, end))
        end = max(end, moved[-1].end)
    replicated = None
    if any(part.replicated is not None for part in moved):
        replicated = frozen(np.concatenate([part.repeats for part in moved]))
    given = any(part.given for part in parts)
    compact = _merged([part.compact for part in moved])
    rising = isinstance(compact, range) or _is_rising(compact)
    return Draws(compact, replicated, given, rising)


def _shifted(part: Draws, by: int) -> Draws:
    """Give draws that were numbered from 0 as numbered from `by`."""
    replicated = part.replicated
    if replicated is not None:
        replicated = np.where(replicated >= 0, replicated + by, -1)
    return Draws(range(by, by + len(part)), replicated)


def _merged(parts: Sequence[range | Int64s]) -> range | Int64s:
    filled = [part for part in parts if len(part)]
    ranges = [part for part in filled if isinstance(part, range) and part.step == 1]
    follow = all(one.stop == two.start for one, two in pairwise(ranges))
    if len(ranges) == len(filled) and follow:
        return range(ranges[0].start, ranges[-1].stop) if ranges else range(0)
    return _compacted(frozen(np.concatenate([_listed(part) for part in filled])))


def _listed(draws: range | Int64s) -> Int64s:
    if isinstance(draws, range):
        return np.arange(draws.start, draws.stop, draws.step, dtype=np.int64)
    return draws


def _counted(array: NDArray[Any], name: str, least: int) -> Int64s:
    """Give integers of at least `least` as a frozen copy."""
    whole(array, name)
    if array.size and array.min() < least:
        rule = "give the draw it repeats, or -1 for none" if least else "draw numbers start at 0"
        refuse_where(array < least, array, name, rule)
    if array.size and array.max() > _HIGHEST:
        refuse_where(array > _HIGHEST, array, name, f"draw numbers end at {_HIGHEST}")
    return frozen(array.astype(np.int64))


def _replicated(repeats: Int64s) -> Int64s | None:
    return repeats if (repeats >= 0).any() else None


def _is_rising(numbers: NDArray[Any]) -> bool:
    return bool((numbers[1:] > numbers[:-1]).all())


def _compacted(draws: Int64s) -> range | Int64s:
    """Give consecutive draw numbers as a range; refuse draw numbers that repeat."""
    if draws.size == 0:
        return range(0)
    first, last = int(draws[0]), int(draws[-1])
    if _is_rising(draws):
        return range(first, last + 1) if last - first == draws.size - 1 else draws
    order = np.argsort(draws, kind="stable")
    again = np.flatnonzero(np.diff(draws[order]) == 0)
    if again.size:
        one, two = int(order[again[0]]), int(order[again[0] + 1])
        raise InvalidInput(
            f"draws[{one}] and draws[{two}] are both {draws[one]}; each answer has a draw number"
            " of its own (a second answer at the same cell is a new draw)."
        )
    return draws
