"""Answers grouped by entry: how often each cell was seen, its mean answer and its scatter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from malocate.problem.arrays import Bools, Floats, Int32s, Int64s, frozen, restore
from malocate.problem.gathering import Pieces, by_rows

_KEY_BITS = 63  # of a 64-bit integer, without its sign
_BLOCK = 1 << 18  # answers worked on at a time, so that they stay in the cache


@dataclass(frozen=True, eq=False)
class Entries:
    """The distinct seen cells of one segment, sorted by row, then column.

    The order of the answers does not change a bit of it. Row `i` owns the places
    `indptr[i]` to `indptr[i + 1]`, as in a compressed sparse row matrix.

    >>> entries = Entries.from_answers([1, 0, 1], [2, 0, 2], [4.0, 3.0, 2.0], shape=(2, 3))
    >>> entries.rows.tolist(), entries.cols.tolist(), entries.visits.tolist()
    ([0, 1], [0, 2], [1, 2])
    >>> entries.means.tolist(), entries.squares.tolist()
    ([3.0, 3.0], [0.0, 2.0])
    """

    shape: tuple[int, int]
    indptr: Int64s
    rows: Int32s
    cols: Int32s
    visits: Int64s
    means: Floats
    squares: Floats  # sum over the entry's answers of (answer - mean)**2

    @classmethod
    def from_answers(
        cls, rows: ArrayLike, cols: ArrayLike, values: ArrayLike, shape: tuple[int, int]
    ) -> Entries:
        """Group checked answers by entry; `Observations.entries` calls this once."""
        piece = (
            np.asarray(rows, dtype=np.int32),
            np.asarray(cols, dtype=np.int32),
            np.asarray(values, dtype=np.float64),
        )
        return cls._from_cells(shape, *_grouped(*piece, shape))

    @classmethod
    def from_pieces(cls, pieces: Pieces, count: int, shape: tuple[int, int]) -> Entries:
        """Group `count` checked answers that are walked in pieces, by bands of rows.

        All answers of a cell are in one band, so that the bands do not change a bit either.
        """
        groups = [_grouped(*band, shape) for band in by_rows(pieces, count, shape)]
        return cls._from_cells(shape, *_joined(groups))

    @classmethod
    def _from_cells(
        cls, shape: tuple[int, int], cells: Int64s, visits: Int64s, means: Floats, squares: Floats
    ) -> Entries:
        """Make entries of ascending cell numbers and of arrays that nobody else writes to."""
        d1, d2 = shape
        indptr = np.searchsorted(cells, np.arange(d1 + 1, dtype=np.int64) * d2).astype(np.int64)
        rows = np.repeat(np.arange(d1, dtype=np.int32), np.diff(indptr))
        cells %= d2
        columns = indptr, rows, cells.astype(np.int32), visits, means, squares
        for column in columns:
            frozen(column)
        return cls(shape, *columns)

    def __len__(self) -> int:
        return self.rows.size

    def __setstate__(self, state: dict[str, object]) -> None:
        restore(self, state)

    @property
    def cells(self) -> Int64s:
        """The number of each entry's cell, counted along the rows: `row * n_columns + column`."""
        return self.rows.astype(np.int64) * self.shape[1] + self.cols

    @property
    def n_answers(self) -> int:
        """The number of answers behind these entries, repeats included."""
        return int(self.visits.sum())

    @property
    def noise_variance(self) -> float:
        """The variance of the noise as repeated answers show it; nan when nothing was repeated.

        It is the plain mean, over the entries seen at least twice, of the sample variance of
        their answers: every such entry counts the same.

        >>> Entries.from_answers([0, 0, 1], [0, 0, 1], [1.0, 3.0, 9.0], shape=(2, 2)).noise_variance
        2.0
        """
        again = self.visits >= 2
        if not again.any():
            return float("nan")
        return float(np.mean(self.squares[again] / (self.visits[again] - 1)))

    def subset(self, keep: Bools) -> Entries:
        """Give the entries where `keep` is true, as entries of the same matrix.

        >>> entries = Entries.from_answers([0, 1], [0, 1], [1.0, 3.0], shape=(2, 2))
        >>> entries.subset(entries.means > 2).rows.tolist()
        [1]
        """
        return self._from_cells(
            self.shape, self.cells[keep], self.visits[keep], self.means[keep], self.squares[keep]
        )


Group = tuple[Int64s, Int64s, Floats, Floats]
"""Ascending cell numbers with their visits, means and squares."""


def _grouped(rows: Int32s, cols: Int32s, answers: Floats, shape: tuple[int, int]) -> Group:
    cells, visits = np.empty(rows.size, np.int64), np.empty(rows.size, np.int64)
    means, squares = np.empty(rows.size), np.zeros(rows.size)
    size = 0
    for block, places in blocks_of_cells(rows, cols, shape):
        starts = group_starts(block)
        made = slice(size, size + starts.size)
        cells[made] = block[starts]
        visits[made] = np.diff(starts, append=block.size)
        means[made], scatter = _moments(answers[places], starts, visits[made])
        if starts.size < block.size:  # zeros that are not written take no memory
            squares[made] = scatter
        size = made.stop
    if size < rows.size // 2:
        return cells[:size].copy(), visits[:size].copy(), means[:size].copy(), squares[:size].copy()
    for column in (cells, visits, means, squares):
        column.resize(size, refcheck=False)  # gives the unused end back
    return cells, visits, means, squares


def _joined(groups: list[Group]) -> Group:
    """Put groups of different rows together, one column after the other."""
    if len(groups) == 1:
        return groups[0]
    columns = [list(column) for column in zip(*groups, strict=True)]
    groups.clear()
    joined = []
    while columns:
        joined.append(np.concatenate(columns.pop(0)))
    cells, visits, means, squares = joined
    return cells, visits, means, squares


def blocks_of_cells(
    rows: Int32s, cols: Int32s, shape: tuple[int, int]
) -> Iterator[tuple[Int64s, Int64s]]:
    """Give the answers by ascending cell number: in blocks, the cells and the answers' places.

    A block holds all answers of its cells, in their order. Cell and place are packed into one
    integer when they fit, because a plain sort is several times faster than an indirect one.
    """
    d1, d2 = shape
    keys = rows.astype(np.int64)
    keys *= d2
    keys += cols
    bits = max(keys.size - 1, 0).bit_length()
    if (d1 * d2 - 1).bit_length() + bits > _KEY_BITS:
        order = np.argsort(keys, kind="stable")
        yield keys[order], order
        return
    keys <<= bits
    for at in range(0, keys.size, _BLOCK):
        keys[at : at + _BLOCK] |= np.arange(at, min(at + _BLOCK, keys.size))
    keys.sort()
    for block in _cut(keys, bits):
        yield block >> bits, block & ((1 << bits) - 1)


def _cut(keys: Int64s, bits: int) -> Iterator[Int64s]:
    """Cut ascending keys into blocks, never between keys of one cell."""
    at = 0
    while at < keys.size:
        last = int(keys[min(at + _BLOCK, keys.size) - 1]) >> bits
        end = int(np.searchsorted(keys, ((last + 1) << bits) - 1, side="right"))
        yield keys[at:end]
        at = end


def number_answers(rows: Int32s, cols: Int32s, shape: tuple[int, int]) -> Int64s:
    """Give for each answer the number of its entry in the `Entries` of these answers."""
    numbers = np.empty(rows.size, dtype=np.int64)
    size = 0
    for block, places in blocks_of_cells(rows, cols, shape):
        starts = group_starts(block)
        entries = np.arange(size, size + starts.size)
        numbers[places] = np.repeat(entries, np.diff(starts, append=block.size))
        size += starts.size
    return numbers


def group_starts(cells: Int64s) -> Int64s:
    """Give the places where a new cell begins in ascending cell numbers."""
    fresh = np.ones(cells.size, dtype=np.bool_)
    np.not_equal(cells[1:], cells[:-1], out=fresh[1:])
    return np.flatnonzero(fresh)


def _moments(answers: Floats, starts: Int64s, visits: Int64s) -> tuple[Floats, Floats]:
    """Give each entry's mean and its sum of squared deviations, from answers sorted by entry."""
    means = answers[starts]
    squares = np.zeros_like(means)
    twice = np.flatnonzero(visits == 2)
    one, two = means[twice], answers[starts[twice] + 1]
    means[twice] = (one + two) / 2
    squares[twice] = (one - two) ** 2 / 2
    for members, count in _blocks_of_equal_visits(visits):
        block = answers[starts[members][:, None] + np.arange(count)]
        means[members], squares[members] = _block_moments(block)
    return means, squares


def _blocks_of_equal_visits(visits: Int64s) -> list[tuple[Int64s, int]]:
    """Split the entries seen three times or more into blocks of one visit count each."""
    often = np.flatnonzero(visits >= 3)
    often = often[np.argsort(visits[often], kind="stable")]
    counts, firsts = np.unique(visits[often], return_index=True)
    blocks = []
    for count, members in zip(counts.tolist(), np.split(often, firsts[1:]), strict=False):
        step = max(1, _BLOCK // count)
        blocks += [(members[at : at + step], count) for at in range(0, members.size, step)]
    return blocks


def _block_moments(block: Floats) -> tuple[Floats, Floats]:
    """Give mean and squared deviations of each line of `block`, whatever the order in a line.

    Sorting makes the sums independent of that order; measuring from the least answer makes
    equal answers give exactly their value and a scatter of exactly zero.
    """
    block.sort(axis=1)
    least = block[:, :1].copy()
    block -= least
    above = block.sum(axis=1, keepdims=True) / block.shape[1]
    block -= above
    return (least + above)[:, 0], np.square(block, out=block).sum(axis=1)
