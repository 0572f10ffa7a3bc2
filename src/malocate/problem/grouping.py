"""Answers by ascending cell: sorted once, then worked on in blocks that any `map` may share out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from malocate.problem.arrays import Bools, Floats, Int32s, Int64s

Map = Callable[[Callable[..., Any], Iterable[Any]], Iterable[Any]]
"""Calls a function with each item and gives what it returns, in the items' order."""

_KEY_BITS = 63  # of a 64-bit integer, without its sign
_BLOCK = 1 << 18  # answers worked on at a time, so that they stay in the cache


@dataclass(frozen=True, eq=False)
class Group:
    """The columns of `Entries` that have a number for each entry."""

    rows: Int32s
    cols: Int32s
    visits: Int64s
    means: Floats
    squares: Floats

    @classmethod
    def of(
        cls,
        rows: Int32s,
        cols: Int32s,
        answers: Floats,
        shape: tuple[int, int],
        map: Map,  # noqa: A002
    ) -> Group:
        """Group answers by entry."""
        blocks = blocks_of_cells(rows, cols, shape, map)
        ends = np.cumsum([0, *map(Block.count, blocks)]).tolist()
        made = cls.empty(ends[-1])

        def fill(number: int) -> None:
            made.fill(slice(*ends[number : number + 2]), blocks[number], answers, shape[1])

        _do(map, fill, len(blocks))
        return made

    @classmethod
    def joined(cls, groups: list[Group]) -> Group:
        """Put groups of different rows together; they are given up, so that no column is twice."""
        if len(groups) == 1:
            return groups[0]
        parts = [list(vars(group).values()) for group in groups]
        groups.clear()
        return cls(*(np.concatenate([part.pop(0) for part in parts]) for _ in fields(cls)))

    @classmethod
    def empty(cls, size: int) -> Group:
        """Make room; zeros that nobody writes take no memory."""
        rows, cols = np.empty(size, np.int32), np.empty(size, np.int32)
        return cls(rows, cols, np.empty(size, np.int64), np.empty(size), np.zeros(size))

    def fill(self, made: slice, block: Block, answers: Floats, columns: int) -> None:
        """Write the entries of a block to their places."""
        cells, answers = block.cells, answers[block.places]
        starts = np.flatnonzero(_begins(cells))
        if starts.size < cells.size:
            self.visits[made] = np.diff(starts, append=cells.size)
            cells = cells[starts]
            self.means[made], self.squares[made] = _moments(answers, starts, self.visits[made])
        else:
            self.visits[made], self.means[made] = 1, answers
        rows = cells // columns
        self.rows[made], self.cols[made] = rows, cells - rows * columns


@dataclass(frozen=True, eq=False)
class Block:
    """Answers by ascending cell number; all those of a cell are in it, in their order.

    A key holds the cell with the answer's place below it, in so many `bits`; or it is the cell, and
    the places are beside it.
    """

    keys: Int64s
    bits: int
    beside: Int64s | None = None

    @property
    def cells(self) -> Int64s:
        """The cell of each answer."""
        return self.keys >> self.bits

    @property
    def places(self) -> Int64s:
        """The place of each answer among all of them."""
        return self.keys & ((1 << self.bits) - 1) if self.beside is None else self.beside

    def count(self) -> int:
        """Count the distinct cells."""
        return int(np.count_nonzero(_begins(self.cells)))


def blocks_of_cells(
    rows: Int32s,
    cols: Int32s,
    shape: tuple[int, int],
    map: Map,  # noqa: A002
) -> list[Block]:
    """Give the answers by ascending cell number, in blocks.

    Cell and place are packed into one integer when they fit, because a plain sort is several times
    faster than an indirect one.
    """
    d1, d2 = shape
    bits = max(rows.size - 1, 0).bit_length()
    if (d1 * d2 - 1).bit_length() + bits > _KEY_BITS:
        keys = rows.astype(np.int64) * d2 + cols
        order = np.argsort(keys, kind="stable")
        return [Block(keys[order], 0, order)]
    keys = np.empty(rows.size, np.int64)

    def pack(number: int) -> None:
        part = slice(number * _BLOCK, (number + 1) * _BLOCK)
        made = np.multiply(rows[part], d2, out=keys[part], dtype=np.int64)
        made += cols[part]
        made <<= bits
        made |= np.arange(part.start, part.start + made.size)

    _do(map, pack, -(-keys.size // _BLOCK))
    keys.sort()
    return [Block(part, bits) for part in _cut(keys, bits)]


def number_answers(rows: Int32s, cols: Int32s, shape: tuple[int, int]) -> Int64s:
    """Give for each answer the number of its entry in the `Entries` of these answers."""
    numbers = np.empty(rows.size, dtype=np.int64)
    size = 0
    for block in blocks_of_cells(rows, cols, shape, map):
        numbers[block.places] = np.cumsum(_begins(block.cells)) + (size - 1)
        size += block.count()
    return numbers


def _do(map: Map, work: Callable[[int], None], count: int) -> None:  # noqa: A002
    for _ in map(work, range(count)):
        pass


def _cut(keys: Int64s, bits: int) -> Iterator[Int64s]:
    """Cut ascending keys into blocks, never between keys of one cell."""
    at = 0
    while at < keys.size:
        last = int(keys[min(at + _BLOCK, keys.size) - 1]) >> bits
        end = int(np.searchsorted(keys, ((last + 1) << bits) - 1, side="right"))
        yield keys[at:end]
        at = end


def _begins(cells: Int64s) -> Bools:
    """Tell where a new cell begins in ascending cell numbers."""
    fresh = np.ones(cells.size, dtype=np.bool_)
    np.not_equal(cells[1:], cells[:-1], out=fresh[1:])
    return fresh


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
