"""Weighted cells, readable by row and by column: the input of every solver."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import sparse

from malocate.problem import Entries

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Side:
    """The cells in one order: `indptr` cuts them into lines, `index` is the other coordinate."""

    indptr: npt.NDArray[np.int64]
    index: npt.NDArray[np.int32]
    weights: Floats
    targets: Floats


@dataclass(frozen=True, eq=False)
class Cells:
    """Seen cells with a weight and a target each, sorted by row and then by column.

    The weighted least-squares loss of a matrix M is half of Σ weights · (targets − M)².
    """

    shape: tuple[int, int]
    by_row: Side
    columns_first: npt.NDArray[np.int64]  # where each cell of the by-column order sits by row

    @classmethod
    def from_entries(cls, entries: Entries, targets: Floats | None = None) -> Cells:
        """Take an entry's visits as its weight and its mean answer as its target."""
        side = Side(
            entries.indptr,
            entries.cols,
            entries.visits.astype(np.float64),
            np.asarray(entries.means if targets is None else targets, dtype=np.float64),
        )
        return cls(entries.shape, side, _column_order(entries.shape, side))

    def __len__(self) -> int:
        """Count the cells."""
        return len(self.by_row.index)

    @cached_property
    def rows(self) -> npt.NDArray[np.int32]:
        """The row of each cell."""
        return np.repeat(np.arange(self.shape[0], dtype=np.int32), np.diff(self.by_row.indptr))

    @property
    def cols(self) -> npt.NDArray[np.int32]:
        """The column of each cell."""
        return self.by_row.index

    @property
    def weights(self) -> Floats:
        """The weight of each cell."""
        return self.by_row.weights

    @property
    def targets(self) -> Floats:
        """The target of each cell."""
        return self.by_row.targets

    @cached_property
    def by_column(self) -> Side:
        """The same cells, sorted by column and then by row."""
        counts = np.bincount(self.cols, minlength=self.shape[1])
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        order = self.columns_first
        return Side(indptr, self.rows[order], self.weights[order], self.targets[order])

    def with_values(self, targets: Floats, weights: Floats | None = None) -> Cells:
        """Give the same cells with other targets, and other weights if given."""
        side = replace(
            self.by_row, targets=targets, weights=self.weights if weights is None else weights
        )
        return replace(self, by_row=side)

    def matrix(self, values: Floats) -> sparse.csr_matrix:
        """Put one value per cell into a sparse matrix."""
        return sparse.csr_matrix((values, self.cols, self.by_row.indptr), shape=self.shape)


def _column_order(shape: tuple[int, int], side: Side) -> npt.NDArray[np.int64]:
    """Sort the cells by column, keeping rows in order; linear time, by a sparse transpose."""
    numbered = sparse.csr_matrix(
        (np.arange(len(side.index), dtype=np.int64), side.index, side.indptr), shape=shape
    )
    return np.asarray(numbered.tocsc().data, dtype=np.int64)
