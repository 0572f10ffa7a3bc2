"""Singular directions of a sparse residual: what the factors lack, and how much."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg

from malocate.estimators.engine.orthogonal import basis_of, nearly_basis_of
from malocate.estimators.engine.table import Sparse
from malocate.estimators.engine.tall import across, along

Floats = npt.NDArray[np.float64]

DENSE_SHARE = 0.1
"""Share of filled cells from which a residual is multiplied as a dense matrix."""

SMALL = 250_000
"""Cells up to which a matrix may be made dense for a few products."""

SHORT = 48
"""Shorter sides up to which a whole spectrum is computed sooner than its leading part is found."""

NEGLIGIBLE = 1e-12
"""Share of the largest singular value below which a direction is rounding, and made zero."""


@dataclass(frozen=True, eq=False)
class Directions:
    """Leading singular triplets: left vectors, values in falling order, right vectors."""

    left: Floats
    values: Floats
    right: Floats

    def above(self, threshold: float) -> Directions:
        """Keep the triplets whose value is above the threshold."""
        kept = int(np.count_nonzero(self.values > threshold))
        return Directions(self.left[:, :kept], self.values[:kept], self.right[:, :kept])

    @property
    def largest(self) -> float:
        """The largest value; zero if there are none."""
        return float(self.values[0]) if len(self.values) else 0.0


def leading(
    matrix: Sparse,
    count: int,
    *,
    without: tuple[Floats, Floats] | None = None,
    rounds: int = 1,
    start: Floats | None = None,
) -> Directions:
    """Find about the `count` leading singular triplets, outside the given orthonormal bases.

    A short matrix is decomposed whole. Else they come of block Krylov iteration from a fixed
    pseudo-random start, some columns of which `start` replaces: right directions found before in
    a similar matrix. The values never exceed the true ones; one round finds directions worth
    appending to factors, several find those that stand out little from the rest.
    """
    count = min(count, *matrix.shape)
    if min(matrix.shape) <= SHORT and matrix.shape[0] * matrix.shape[1] <= SMALL:
        return _leading_exactly(matrix.toarray(), count, without)
    form = _multipliable(matrix)
    known = 0 if start is None else min(start.shape[1], count - count // 4)
    right = np.random.default_rng(count).standard_normal((matrix.shape[1], count - known))
    if start is not None:
        right = np.hstack([start[:, :known], right])
    left = basis_of(_krylov(form, right, rounds, without), overwrite=True)
    u, values, v = _leading_triplets(outside(form.T @ left, without, 1), count)
    return Directions(left @ v, values, u)


def _leading_exactly(
    matrix: Floats, count: int, without: tuple[Floats, Floats] | None
) -> Directions:
    rest = outside(outside(matrix, without, 0).T, without, 1)
    if rest.shape[0] < rest.shape[1]:
        left, values, right = _leading_triplets(rest.T, count)
    else:
        right, values, left = _leading_triplets(rest, count)
    return Directions(left, values, right)


def _krylov(form: Any, right: Floats, rounds: int, without: tuple[Floats, Floats] | None) -> Floats:
    """Give R `right`, R Rᵀ R `right` and so on outside the bases: so many blocks, side by side."""
    blocks = [nearly_basis_of(outside(form @ right, without, 0))]
    while len(blocks) < rounds:
        right = outside(form.T @ blocks[-1], without, 1)
        blocks.append(nearly_basis_of(outside(form @ right, without, 0)))
    return np.hstack(blocks)


def _leading_triplets(thin: Floats, count: int) -> tuple[Floats, Floats, Floats]:
    """Give leading singular triplets of a thin matrix, by its Gram matrix; faster than an SVD."""
    squares, v = _leading_eigenvectors(across(thin, thin), min(count, thin.shape[1]))
    values, v = np.sqrt(np.maximum(squares[::-1], 0.0)), v[:, ::-1]
    lengths = np.where(values > NEGLIGIBLE * values[0], values, math.inf)
    return along(thin, v / lengths), values, v


def _leading_eigenvectors(gram: Floats, count: int) -> tuple[Floats, Floats]:
    """Give the largest eigenvalues, rising, and their vectors; of a small matrix all are sooner."""
    size = len(gram)
    if size <= SHORT:
        squares, v = np.linalg.eigh(gram)
        return squares[size - count :], v[:, size - count :]
    found = linalg.eigh(gram, subset_by_index=(size - count, size - 1), check_finite=False)
    return found[0], found[1]


def _multipliable(matrix: Sparse) -> Sparse | Floats:
    """Give the matrix in the form that is multiplied fastest."""
    cells = matrix.shape[0] * matrix.shape[1]
    dense = cells <= SMALL and matrix.nnz >= DENSE_SHARE * cells
    return matrix.toarray() if dense else matrix


def thin_norm(matrix: Floats) -> float:
    """Give the spectral norm of a matrix with one short side, by its Gram matrix."""
    if matrix.size == 0:
        return 0.0
    if not np.isfinite(matrix).all():
        return math.inf
    gram = matrix.T @ matrix if matrix.shape[0] >= matrix.shape[1] else matrix @ matrix.T
    last = len(gram) - 1
    largest = linalg.eigvalsh(gram, subset_by_index=(last, last), check_finite=False)[0]
    return math.sqrt(max(0.0, float(largest)))


def outside(vectors: Any, bases: tuple[Floats, Floats] | None, side: int) -> Any:
    """Take off the part of the vectors inside the basis of that side."""
    if bases is None:
        return vectors
    basis = bases[side]
    if vectors.ndim == 1:
        return vectors - basis @ (basis.T @ vectors)
    return vectors - along(basis, across(basis, vectors))


def largest_singular_value(matrix: Sparse) -> float:
    """Give the spectral norm of a sparse matrix, to several digits."""
    if matrix.nnz == 0:
        return 0.0
    if matrix.shape[0] * matrix.shape[1] <= SMALL:
        return thin_norm(matrix.toarray())
    return leading(matrix, 8, rounds=16).largest
