"""Cells that lie row by row, put into the order of the columns: counted and moved over threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from malocate.estimators.engine.threads import spread
from malocate.estimators.engine.turns import Turns, lines_of

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]

PARTS = 16
"""Parts of the rows that are counted each by itself, at most."""

WORTH_A_PART = 8
"""Cells for each column that make it worth while to count one part more."""

COST_OF_A_CELL = 40
"""Multiply-adds in the time that it takes to count a cell, or to move it."""


def transposed(indptr: Int64s, cols: Int32s, columns: int) -> tuple[Int64s, Int32s, Any]:
    """Give where each column begins, then the row of each cell and where it lies among the rows.

    In a column the rows rise. It takes linear time.

    >>> indptr, rows, order = transposed(np.array([0, 2, 3]), np.array([0, 2, 2], np.int32), 3)
    >>> indptr.tolist(), rows.tolist(), order.tolist()
    ([0, 1, 1, 3], [0, 0, 1], [0, 1, 2])
    """
    parts = _parts(indptr, columns)
    counts = np.zeros((len(parts) - 1, columns), np.int64)
    ends = indptr[parts]

    def count(turns: Turns) -> None:
        _count(ends, cols, turns, counts)

    spread(count, ends, COST_OF_A_CELL)
    begins = np.append(0, np.cumsum(counts.sum(axis=0)))
    counts = begins[:-1] + np.cumsum(counts, axis=0) - counts
    rows = np.empty(len(cols), np.int32)
    order = np.empty(len(cols), np.int32 if len(cols) < 2**31 else np.int64)

    def move(turns: Turns) -> None:
        _move(parts, indptr, cols, turns, counts, rows, order)

    spread(move, ends, COST_OF_A_CELL)
    return begins, rows, order


def _parts(indptr: Int64s, columns: int) -> Int64s:
    """Cut the rows into parts of about as many cells."""
    cells = int(indptr[-1])
    count = min(PARTS, max(1, cells // (WORTH_A_PART * columns)))
    ends = np.searchsorted(indptr, np.arange(1, count) * (cells / count))
    return np.concatenate([[0], ends, [len(indptr) - 1]])


@njit(cache=True, nogil=True)
def _count(ends: Any, cols: Any, turns: Any, counts: Any) -> None:
    """counts[part, j] = how many of a part's cells lie in column j."""
    for part in lines_of(turns):
        for e in range(ends[part], ends[part + 1]):
            counts[part, cols[e]] += 1


@njit(cache=True, nogil=True)
def _move(
    parts: Any, indptr: Any, cols: Any, turns: Any, places: Any, rows: Any, order: Any
) -> None:
    """Put each cell's row and number to places[part, its column], which goes on by one."""
    for part in lines_of(turns):
        for i in range(parts[part], parts[part + 1]):
            for e in range(indptr[i], indptr[i + 1]):
                place = places[part, cols[e]]
                rows[place], order[place] = i, e
                places[part, cols[e]] = place + 1
