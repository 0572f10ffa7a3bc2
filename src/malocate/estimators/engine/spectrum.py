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
from malocate.estimators.engine.tall import across, along, beside

Floats = npt.NDArray[np.float64]

DENSE_SHARE = 0.1
"""Share of filled cells from which a residual is multiplied as a dense matrix."""

SMALL = 250_000
"""Cells up to which a matrix may be made dense for a few products."""

SHORT = 48
"""Shorter sides up to which a whole spectrum is computed sooner than its leading part is found."""

ASKEW = 1e-9
"""Product of two vectors of a basis up to which they are taken for orthogonal."""

ROUNDING = 1e-10
"""Share of a vector up to which what is left of it outside a basis is put down to rounding."""

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
    a similar matrix. The values do not exceed the true ones, but for rounding in the eighth digit
    of the largest; one round finds directions worth appending to factors, several find those that
    stand out little from the rest.
    """
    count = min(count, *matrix.shape)
    if min(matrix.shape) <= SHORT and matrix.shape[0] * matrix.shape[1] <= SMALL:
        return _leading_exactly(matrix.toarray(), count, without)
    known = 0 if start is None else min(start.shape[1], count - count // 4)
    right = np.random.default_rng(count).random((matrix.shape[1], count - known)) - 0.5
    if start is not None:
        right = np.hstack([start[:, :known], right])
    form = _multipliable(matrix)
    left, images = _krylov(form, right, rounds, without)
    if _is_askew(left, without):
        left = outside(basis_of(left), without, 0)
        images = form.T @ left
    return _leading_of(left, outside(images, without, 1), count)


def _leading_exactly(
    matrix: Floats, count: int, without: tuple[Floats, Floats] | None
) -> Directions:
    images = outside(outside(matrix, without, 0).T, without, 1)
    if images.shape[0] >= images.shape[1]:
        return _leading_of(np.eye(images.shape[1]), images, count)
    turned = _leading_of(np.eye(images.shape[0]), images.T, count)
    return Directions(turned.right, turned.values, turned.left)


def _krylov(
    form: Any, right: Floats, rounds: int, without: tuple[Floats, Floats] | None
) -> tuple[Floats, Floats]:
    """Give a basis of R `right`, R Rᵀ R `right` and so on in rounds, and what Rᵀ makes of it.

    Each block is taken once outside the given basis and all blocks before: they are orthonormal
    but for rounding. Where only rounding is left of a block, there is no more to find.
    """
    known = 0 if without is None else without[0].shape[1]
    size = min(rounds * right.shape[1], max(0, min(form.shape) - known))
    spanned, images = np.empty((form.shape[0], known + size)), np.empty((form.shape[1], size))
    if without is not None:
        spanned[:, :known] = without[0]
    end = 0
    for _ in range(rounds):
        block = form @ right
        block /= np.abs(block).max(initial=0.0) or 1.0  # whatever the unit
        rest, _ = beside(block, spanned[:, : known + end])
        lasting = _largest(rest) > ROUNDING * _largest(block)
        block = nearly_basis_of(np.compress(lasting, rest, axis=1))[:, : size - end]
        if block.shape[1] == 0:
            break
        part = slice(end, end + block.shape[1])
        spanned[:, known:][:, part], images[:, part], end = block, form.T @ block, part.stop
        if end == size:
            break
        right = images[:, part]
    return spanned[:, known : known + end], images[:, :end]


def _largest(vectors: Floats) -> Floats:
    """Give the largest entry of every column, whose square might be no number any more."""
    return np.asarray(np.abs(vectors).max(axis=0, initial=0.0))


def _is_askew(basis: Floats, without: tuple[Floats, Floats] | None) -> bool:
    """Tell whether rounding has left a basis other than orthonormal, and outside the one given."""
    errors = [across(basis, basis) - np.eye(basis.shape[1])]
    errors += [] if without is None else [across(without[0], basis)]
    return any(np.abs(each).max(initial=0.0) > ASKEW for each in errors)


def _leading_of(basis: Floats, images: Floats, count: int) -> Directions:
    """Give leading singular triplets of R from what Rᵀ makes of an orthonormal basis."""
    gram = across(images, images)
    unit = np.diag(gram).max(initial=0.0) or 1.0  # LAPACK loses digits of tiny matrices
    squares, turns = _leading_eigenvectors(gram / unit, count)
    values, turns = np.sqrt(np.maximum(squares[::-1], 0.0) * unit), turns[:, ::-1]
    sizes = np.where(values > NEGLIGIBLE * max(values, default=0.0), values, math.inf)
    return Directions(along(basis, turns), values, along(images, turns / sizes))


def _leading_eigenvectors(gram: Floats, count: int) -> tuple[Floats, Floats]:
    """Give the largest eigenvalues, rising, and their vectors; of a small matrix all are sooner."""
    size = len(gram)
    count = min(count, size)
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
    return beside(vectors, basis)[0]


def largest_singular_value(matrix: Sparse) -> float:
    """Give the spectral norm of a sparse matrix, to several digits."""
    if matrix.nnz == 0:
        return 0.0
    if matrix.shape[0] * matrix.shape[1] <= SMALL:
        return thin_norm(matrix.toarray())
    return leading(matrix, 8, rounds=16).largest
