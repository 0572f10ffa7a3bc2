"""Gram matrices of a sparse matrix's shorter lines, made and eliminated a few rows at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse

from malocate.estimators.engine.products import gram_lines
from malocate.estimators.engine.table import Lines, Sparse, Table, closed
from malocate.estimators.engine.threads import FETCH, spread
from malocate.estimators.engine.turns import Turns

Floats = npt.NDArray[np.float64]

Gram = Callable[[int, int], Floats]
"""Gives some rows of a matrix R Rᵀ from their first column on; below its diagonal may be zeros."""

GRAM_SHARE = 0.15
"""Share of filled cells from which a residual is multiplied with itself as a dense matrix."""

AT_A_TIME = 512
"""Rows of a Gram matrix that are eliminated at a time."""

AT_ONCE = 30_000_000
"""Cells of a longer matrix that are made dense at a time, for a product that needs them all."""


def is_above(level: float, gram: Gram, size: int) -> bool:
    """Tell whether level · I less a Gram matrix is positive definite, by Cholesky.

    Its upper rows are made and eliminated a few at a time: only half of it is ever there, and what
    fails may fail early.
    """
    above: list[Floats] = []
    for first in range(0, size, AT_A_TIME):
        rows = gram(first, min(first + AT_A_TIME, size))
        np.negative(rows, out=rows)
        count = len(rows)
        rows[range(count), range(count)] += level
        for done in above:
            part = done[:, -rows.shape[1] :]
            rows -= part[:, :count].T @ part
        corner, failed = linalg.lapack.dpotrf(rows[:, :count])
        if failed or not np.isfinite(corner[-1, -1]):
            return False
        above.append(linalg.solve_triangular(corner, rows, trans="T", check_finite=False))
    return True


def gram_of(matrix: Sparse) -> Gram:
    """Give what makes rows of the Gram matrix of the shorter side's lines."""
    if matrix.nnz < GRAM_SHARE * matrix.shape[0] * matrix.shape[1]:
        return _sparse_gram(matrix)
    short = matrix.tocsr()
    short = short if short.shape[0] <= short.shape[1] else short.T.tocsr()
    width = max(1, AT_ONCE // short.shape[0])
    parts = [short] if width >= short.shape[1] else _cut(short.tocsc(), width)
    dense = parts[0].toarray() if len(parts) == 1 else None

    def rows(first: int, last: int) -> Floats:
        made = np.zeros((last - first, short.shape[0] - first))
        for part in parts:
            block = part.toarray() if dense is None else dense
            made += block[first:last] @ block[first:].T
        return made

    return rows


def _cut(matrix: sparse.csc_matrix, width: int) -> list[sparse.csc_matrix]:
    return [matrix[:, first : first + width] for first in range(0, matrix.shape[1], width)]


def _sparse_gram(matrix: Sparse) -> Gram:
    """Do so over threads, far faster than by SciPy's product; zero below the diagonal."""
    lines, turned = _both_orders(matrix)
    if matrix.shape[0] > matrix.shape[1]:
        lines, turned = turned, lines
    indptr, cost = lines[0], FETCH * max(1, matrix.nnz // (len(turned[0]) - 1))

    def rows(first: int, last: int) -> Floats:
        made = np.zeros((last - first, len(indptr) - 1 - first))

        def work(turns: Turns) -> None:
            gram_lines(*lines, *turned, first, turns, made)

        spread(work, indptr[first : last + 1] - indptr[first], cost)
        return made

    return rows


def _both_orders(matrix: Sparse) -> tuple[Lines, Lines]:
    """Give a sparse matrix row by row and column by column."""
    if isinstance(matrix, Table):
        return matrix.lines, matrix.T.lines
    turned = matrix.tocsc()
    by_row, by_column = (  # each made of the other, which sorts its lines
        closed(each.indptr, each.indices, each.data) for each in (turned.tocsr(), turned)
    )
    return by_row, by_column
