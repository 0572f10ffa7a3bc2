"""Singular value shrinkage of a low-rank matrix plus a sparse one, the result kept as factors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from malocate.estimators.engine.orthogonal import basis_of

Floats = npt.NDArray[np.float64]

DENSE_SIDE = 300
"""Shorter sides up to which the whole spectrum is computed, which is then the faster way."""

DENSE_CELLS = 4_000_000

SPARE = 10
"""Columns beyond the last value above the threshold; a quarter of the rank if that is more."""

ROUNDS = 2


@dataclass(frozen=True, eq=False)
class Shrunk:
    """A matrix as ``left · diag(values) · rightᵀ``, its values positive and in falling order."""

    left: Floats
    values: Floats
    right: Floats

    @property
    def factors(self) -> tuple[Floats, Floats]:
        """The left and right factors whose product is the matrix, balanced."""
        root = np.sqrt(self.values)
        left, right = self.left * root, self.right * root
        return np.ascontiguousarray(left), np.ascontiguousarray(right)

    @property
    def bases(self) -> tuple[Floats, Floats]:
        """The orthonormal left and right vectors."""
        return self.left, self.right


def is_short(shape: tuple[int, int]) -> bool:
    """Whether the whole spectrum of such a matrix is quickly computed."""
    return min(shape) <= DENSE_SIDE and shape[0] * shape[1] <= DENSE_CELLS


class Shrinker:
    """Lowers singular values again and again, each time of a matrix not far from the last.

    Long matrices are never formed: their leading part is found by subspace iteration from the
    vectors of the last time, those below the threshold included, in as many columns as it takes
    to see values below the threshold.

    >>> from scipy import sparse
    >>> nothing = np.zeros((3, 0)), np.zeros((2, 0))
    >>> matrix = sparse.csr_matrix([[0.0, 3.0], [1.0, 0.0], [0.0, 0.0]])
    >>> left, right = Shrinker().shrink(nothing, matrix, 1.5).factors
    >>> (left @ right.T).round(6).tolist()
    [[0.0, 1.5], [0.0, 0.0], [0.0, 0.0]]
    """

    def __init__(self) -> None:
        self._basis: Floats | None = None
        self._rng = np.random.default_rng(0)

    def shrink(
        self, near: tuple[Floats, Floats], change: sparse.csr_matrix, threshold: float
    ) -> Shrunk:
        """Lower every singular value of ``near[0] @ near[1].T + change``, at most to zero."""
        if near[0].shape[0] < near[1].shape[0]:
            turned = self.shrink((near[1], near[0]), change.T.tocsr(), threshold)
            return Shrunk(turned.right, turned.values, turned.left)
        if is_short(change.shape):
            return _shrink_dense(near[0] @ near[1].T + change.toarray(), threshold)
        return self._shrink_leading(near, change, threshold)

    def _shrink_leading(
        self, near: tuple[Floats, Floats], change: sparse.csr_matrix, threshold: float
    ) -> Shrunk:
        (left, right), turned, longest = near, change.T.tocsr(), min(change.shape)
        basis = right if self._basis is None else self._basis
        columns = basis.shape[1] + (SPARE if self._basis is None else 0)
        while True:
            basis = self._widened(basis, min(columns, longest))
            for _ in range(ROUNDS):
                inner = basis_of(left @ (right.T @ basis) + change @ basis)
                image = right @ (left.T @ inner) + turned @ inner
                basis = basis_of(image)
            u, values, vt = np.linalg.svd(image.T @ basis)
            basis = basis @ vt.T
            kept = int(np.count_nonzero(values > threshold))
            columns = kept + max(SPARE, kept // 4)
            if len(values) >= min(columns - SPARE // 2, longest):
                self._basis = basis[:, :columns]
                return Shrunk(inner @ u[:, :kept], values[:kept] - threshold, basis[:, :kept])

    def _widened(self, basis: Floats, columns: int) -> Floats:
        """Add random columns up to the number wanted."""
        more = columns - basis.shape[1]
        if more <= 0:
            return basis
        return np.hstack([basis, self._rng.standard_normal((len(basis), more))])


def _shrink_dense(matrix: Floats, threshold: float) -> Shrunk:
    """Shrink a tall dense matrix through the eigenvectors of its Gram matrix."""
    squares, right = np.linalg.eigh(matrix.T @ matrix)
    values = np.sqrt(np.maximum(squares, 0.0))[::-1]
    kept = int(np.count_nonzero(values > threshold))
    right = right[:, ::-1][:, :kept]
    return Shrunk((matrix @ right) / values[:kept], values[:kept] - threshold, right)
