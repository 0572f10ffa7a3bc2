"""Answers grouped by entry: how often each cell was seen, its mean answer and its scatter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from malocate.problem.arrays import Bools, Floats, Int32s, Int64s, frozen, restore
from malocate.problem.gathering import Pieces, by_rows
from malocate.problem.grouping import Group, Map


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
        cls,
        rows: ArrayLike,
        cols: ArrayLike,
        values: ArrayLike,
        shape: tuple[int, int],
        map: Map = map,  # noqa: A002
    ) -> Entries:
        """Group checked answers by entry; `map` may share out the blocks, and changes no bit."""
        rows, cols = np.asarray(rows, dtype=np.int32), np.asarray(cols, dtype=np.int32)
        answers = np.asarray(values, dtype=np.float64)
        return cls._of(shape, Group.of(rows, cols, answers, shape, map))

    @classmethod
    def from_pieces(
        cls,
        pieces: Pieces,
        count: int,
        shape: tuple[int, int],
        map: Map = map,  # noqa: A002
    ) -> Entries:
        """Group `count` checked answers that are walked in pieces, by bands of rows.

        All answers of a cell are in one band, so that the bands do not change a bit either.
        """
        groups = [Group.of(*band, shape, map) for band in by_rows(pieces, count, shape)]
        return cls._of(shape, Group.joined(groups))

    @classmethod
    def _of(cls, shape: tuple[int, int], group: Group) -> Entries:
        """Make entries of columns that nobody else writes to."""
        begins = np.searchsorted(group.rows, np.arange(shape[0], dtype=np.int32))
        indptr = np.append(begins.astype(np.int64, copy=False), group.rows.size)
        columns = vars(group)
        for column in (indptr, *columns.values()):
            frozen(column)
        return cls(shape, indptr, **columns)

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
        rows, cols, visits = self.rows[keep], self.cols[keep], self.visits[keep]
        return self._of(self.shape, Group(rows, cols, visits, self.means[keep], self.squares[keep]))
