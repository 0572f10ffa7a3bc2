"""One value per seen cell as a matrix that is multiplied from either side, over threads."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from malocate.estimators.engine.cells import Cells
from malocate.estimators.engine.products import multiply_lines
from malocate.estimators.engine.threads import FETCH, spread
from malocate.estimators.engine.turns import Turns
from malocate.problem.arrays import read_only

Floats = npt.NDArray[np.float64]
Lines = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], Floats]
"""Where each line begins, the places of its cells on the other side, and their values."""


@dataclass(frozen=True, eq=False)
class Table:
    """A matrix with one value per seen cell: `table @ dense` and `table.T @ dense`.

    The products have the same bits for any number of threads.

    >>> from malocate import Observations
    >>> seen = Observations([0, 1], [1, 0], [3.0, 1.0], shape=(2, 3))
    >>> cells = Cells.from_entries(seen.entries)
    >>> table = Table(cells, cells.targets)
    >>> (table @ np.eye(3)).tolist()
    [[0.0, 3.0, 0.0], [1.0, 0.0, 0.0]]
    >>> (table.T @ np.eye(2)).tolist()
    [[0.0, 1.0], [3.0, 0.0], [0.0, 0.0]]
    """

    cells: Cells
    values: Floats
    room: Floats | None = None  # for the values by column: fresh memory is slow

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.cells.shape

    @property
    def nnz(self) -> int:
        """The number of seen cells, by SciPy's name for it."""
        return len(self.values)

    @property
    def T(self) -> Turned:  # noqa: N802
        """The transpose, to be multiplied."""
        return Turned(self)

    def __matmul__(self, dense: Any) -> Floats:
        return _product(self.lines, dense)

    @property
    def lines(self) -> Lines:
        """The matrix row by row."""
        return closed(self.cells.indptr, self.cells.cols, self.values)

    @cached_property
    def by_column(self) -> Floats:
        """The values in the order of the columns."""
        return np.asarray(self.cells.by_column(self.values, self.room))

    def tocsr(self) -> sparse.csr_matrix:
        """Give the matrix to SciPy."""
        return self.cells.matrix(self.values)

    def toarray(self) -> Floats:
        """Form the matrix, unseen cells zero."""
        dense = np.zeros(self.shape)
        dense[self.cells.rows, self.cells.cols] = self.values
        return dense


Sparse = sparse.csr_matrix | Table


@dataclass(frozen=True, eq=False)
class Turned:
    """The transpose of a table."""

    table: Table

    def __matmul__(self, dense: Any) -> Floats:
        return _product(self.lines, dense)

    @property
    def lines(self) -> Lines:
        """The matrix column by column."""
        indptr, rows, _ = self.table.cells.columns
        return closed(indptr, rows, self.table.by_column)


def closed(indptr: npt.NDArray[Any], index: npt.NDArray[Any], values: Floats) -> Lines:
    """Give a sparse matrix's arrays as kernels take them."""
    indptr, index = indptr.astype(np.int64, copy=False), index.astype(np.int32, copy=False)
    return read_only(indptr), read_only(index), read_only(values)


def _product(lines: Lines, dense: Any) -> Floats:
    dense = read_only(np.ascontiguousarray(dense, dtype=np.float64))
    indptr = lines[0]
    out = np.empty((len(indptr) - 1, dense.shape[1]))

    def work(turns: Turns) -> None:
        multiply_lines(*lines, dense, turns, out)

    spread(work, indptr, FETCH + dense.shape[1])
    return out
