"""Singular directions and norms of a sparse residual: what the factors lack, and how much."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse

from malocate.estimators.engine.kernels import gram_lines
from malocate.estimators.engine.orthogonal import basis_of, nearly_basis_of
from malocate.estimators.engine.table import Table
from malocate.estimators.engine.threads import FETCH, spread
from malocate.problem.arrays import read_only

Floats = npt.NDArray[np.float64]
Sparse = sparse.csr_matrix | Table

CHOLESKY_SIDE = 3000
"""Shorter sides up to which a norm is bounded by Cholesky factorisations, without chance."""

DENSE_SHARE = 0.1
"""Share of filled cells from which a residual is multiplied as a dense matrix."""

GRAM_SHARE = 0.15
"""Share of filled cells from which a residual is multiplied with itself as a dense matrix."""

AT_ONCE = 30_000_000
"""Cells of a longer matrix that are made dense at a time, for a product that needs them all."""

SMALL = 250_000
"""Cells up to which a matrix may be made dense for a few products."""

SHORT = 48
"""Shorter sides up to which a whole spectrum is computed sooner than its leading part is found."""

NEGLIGIBLE = 1e-12
"""Share of the largest singular value below which a direction is rounding, and made zero."""

FAILURE = 1e-9
"""Chance that the random-start Lanczos bounds of one fit, used for longer sides, are too small."""

LOOKS = 1000
"""Looks at Lanczos bounds in one fit that share this chance."""

LANCZOS_STEPS = 400


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

    Those of a short matrix are exact. Else they come of block Krylov iteration from a fixed
    pseudo-random start, some columns of which `start` replaces: right directions found before in
    a similar matrix. The values never exceed the true ones; one round finds directions worth
    appending to factors, several find those that stand out little from the rest.
    """
    count = min(count, *matrix.shape)
    if min(matrix.shape) <= SHORT and matrix.shape[0] * matrix.shape[1] <= SMALL:
        return _leading_exactly(matrix.toarray(), count, without)
    form = _multipliable(matrix)
    right = np.random.default_rng(count).standard_normal((matrix.shape[1], count))
    if start is not None:
        known = min(start.shape[1], count - count // 4)
        right[:, :known] = start[:, :known]
    left = basis_of(_krylov(form, right, rounds, without), overwrite=True)
    u, values, v = _leading_triplets(_outside(form.T @ left, without, 1), count)
    return Directions(left @ v, values, u)


def _leading_exactly(
    matrix: Floats, count: int, without: tuple[Floats, Floats] | None
) -> Directions:
    rest = _outside(_outside(matrix, without, 0).T, without, 1)
    if rest.shape[0] < rest.shape[1]:
        left, values, right = _leading_triplets(rest.T, count)
    else:
        right, values, left = _leading_triplets(rest, count)
    return Directions(left, values, right)


def _krylov(form: Any, right: Floats, rounds: int, without: tuple[Floats, Floats] | None) -> Floats:
    """Give R `right`, R Rᵀ R `right` and so on outside the bases: so many blocks, side by side."""
    blocks = [nearly_basis_of(_outside(form @ right, without, 0))]
    while len(blocks) < rounds:
        right = _outside(form.T @ blocks[-1], without, 1)
        blocks.append(nearly_basis_of(_outside(form @ right, without, 0)))
    return np.hstack(blocks)


def _leading_triplets(thin: Floats, count: int) -> tuple[Floats, Floats, Floats]:
    """Give leading singular triplets of a thin matrix, by its Gram matrix; faster than an SVD."""
    squares, v = _leading_eigenvectors(thin.T @ thin, count)
    values, v = np.sqrt(np.maximum(squares[::-1], 0.0)), v[:, ::-1]
    lengths = np.where(values > NEGLIGIBLE * values[0], values, math.inf)
    return thin @ (v / lengths), values, v


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


def norm_within(matrix: Sparse, bases: tuple[Floats, Floats]) -> float:
    """Give a lower bound of the spectral norm: that of the part inside either basis."""
    along_right, along_left = matrix @ bases[1], matrix.T @ bases[0]
    return max(_thin_norm(along_right), _thin_norm(along_left))


def norm_beside(matrix: Sparse, bases: tuple[Floats, Floats], beside: Directions) -> float:
    """Give a lower bound of the spectral norm: that of the part inside either basis or beside it.

    What the matrix takes from a basis to directions beside it may raise the norm above both their
    own. Directions of little value may be rounding alone, and do not count.
    """
    along_right, along_left = matrix @ bases[1], matrix.T @ bases[0]
    lower = max(_thin_norm(along_right), _thin_norm(along_left), beside.largest)
    beside = beside.above(lower / 2)
    if len(beside.values) == 0:
        return lower
    along_right = np.hstack([along_right, matrix @ beside.right])
    along_left = np.hstack([along_left, matrix.T @ beside.left])
    return max(lower, _thin_norm(along_right), _thin_norm(along_left))


def norm_bound(
    matrix: Sparse,
    lower: float,
    enough: float,
    bases: tuple[Floats, Floats],
    *,
    anyhow: bool = False,
) -> float:
    """Give an upper bound of the spectral norm; work stops once it is at most `enough`.

    `lower` is a lower bound that is expected to be nearly tight. Short sides are settled by
    Cholesky factorisations; for long ones the matrix is cut by the bases into three thin blocks,
    whose norms are exact, and a remainder that Lanczos bounds, wrong with a chance of at most
    `FAILURE`. Where a short side's norm is above `enough`, the bound is the Frobenius norm, or with
    `anyhow` the first of ever larger guesses that holds.
    """
    matrix = matrix.tocsr()
    most = float(np.linalg.norm(matrix.data))
    if min(matrix.shape) <= CHOLESKY_SIDE:
        guesses = _rising(max(lower, 1e-8 * most), enough) if anyhow else (enough,)
        bound = _bound_by_cholesky(matrix, guesses)
    else:
        bound = _bound_by_blocks(matrix, enough, bases)
    return max(lower, min(bound, most))


def _bound_by_cholesky(matrix: sparse.csr_matrix, guesses: Iterable[float]) -> float:
    """Give the first of the rising guesses at which guess²·I − R Rᵀ is positive definite."""
    gram = _gram(matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T.tocsr())
    ceiling = math.sqrt(float(np.trace(gram)))
    for guess in takewhile(lambda guess: guess < ceiling, guesses):
        if _positive_definite(guess * guess * (1 - 1e-10), gram):
            return guess
    return ceiling


def _rising(lower: float, enough: float) -> Iterator[float]:
    """Give guesses from just above the lower bound on, ever farther away from it."""
    excess = max(enough / lower - 1, 1e-9) / 4 if lower > 0.0 else 1.0
    while True:
        yield lower * (1 + excess)
        excess *= 4


def _gram(short: sparse.csr_matrix) -> Floats:
    """Give R Rᵀ from its diagonal on upwards; what is below may be zero."""
    lines, columns = short.shape
    if short.nnz < GRAM_SHARE * lines * columns:
        return _sparse_gram(short)
    if lines * columns <= AT_ONCE:
        dense = short.toarray()
        return np.asarray(dense @ dense.T)
    turned, width = short.tocsc(), max(1, AT_ONCE // lines)
    gram = np.zeros((lines, lines))
    for first in range(0, columns, width):
        dense = turned[:, first : first + width].toarray()
        gram += dense @ dense.T
    return gram


def _sparse_gram(short: sparse.csr_matrix) -> Floats:
    """Give R Rᵀ from its diagonal on upwards, over threads; faster than SciPy's sparse product."""
    indptr, index, values = _arrays_of(short)
    turned = _arrays_of(short.tocsc())
    gram = np.zeros((short.shape[0],) * 2)

    def work(first: int, last: int) -> None:
        gram_lines(indptr, index, values, *turned, first, last, gram)

    spread(work, indptr, FETCH * max(1, len(values) // short.shape[1]))
    return gram


def _arrays_of(
    matrix: sparse.csr_matrix | sparse.csc_matrix,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], Floats]:
    """Give a sparse matrix's arrays as kernels take them."""
    indptr, index = matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)
    return read_only(indptr), read_only(index), read_only(matrix.data)


def _positive_definite(level: float, gram: Floats) -> bool:
    """Tell whether level · I less the matrix is, from its upper triangle."""
    shifted = -gram
    shifted.flat[:: len(gram) + 1] += level
    _, failed = linalg.lapack.dpotrf(shifted.T, lower=1, overwrite_a=1, clean=0)
    return bool(failed == 0)


def _bound_by_blocks(
    matrix: sparse.csr_matrix, enough: float, bases: tuple[Floats, Floats]
) -> float:
    """Bound the norm by that of the 2 × 2 matrix of the blocks' norms."""
    left, right = bases
    along_right, along_left = matrix @ right, matrix.T @ left
    inner = left.T @ along_right
    corner = _thin_norm(along_right - left @ inner)
    other = _thin_norm(along_left - right @ inner.T)
    wanted = max(enough - corner - other, 0.9 * enough)
    if matrix.shape[0] < matrix.shape[1]:
        rest = lanczos_bound(matrix.T.tocsr(), (right, left), enough=wanted)
    else:
        rest = lanczos_bound(matrix, bases, enough=wanted)
    return _thin_norm(np.array([[_thin_norm(inner), other], [corner, rest]]))


def lanczos_bound(
    matrix: sparse.csr_matrix, without: tuple[Floats, Floats], *, enough: float
) -> float:
    """Bound the norm of the matrix outside the bases; too small with a chance near `FAILURE`.

    Kuczyński and Woźniakowski (1992): from a uniformly random start, k Lanczos steps find the
    largest eigenvalue of an n × n positive matrix to a relative error ε but for a chance of
    1.648 √n exp(−√ε (2k − 1)). The start is drawn without a look at the data; the vectors are
    kept orthogonal, for the theorem speaks of exact arithmetic.
    """
    size = matrix.shape[1]
    start = _outside(np.random.default_rng(size).standard_normal(size), without, 1)
    if not np.linalg.norm(start) > 0.0:
        return 0.0
    steps = min(LANCZOS_STEPS, size)
    basis = np.empty((steps + 1, size))  # what is not written takes no memory
    basis[0] = start / np.linalg.norm(start)
    diagonal: list[float] = []
    beside: list[float] = []
    for step in range(1, steps + 1):
        known = basis[:step]
        image = _outside(matrix.T @ _outside(matrix @ known[-1], without, 0), without, 1)
        diagonal.append(float(image @ known[-1]))
        for _ in range(2):
            image -= known.T @ (known @ image)
        rest = float(np.linalg.norm(image))
        if rest <= 1e-12 * max(diagonal):  # the whole space that the start can reach is seen
            return math.sqrt(max(0.0, _largest(diagonal, beside))) * (1 + 1e-8)
        if step % 10 == 0 and (bound := _random_start_bound(diagonal, beside, size)) <= enough:
            return bound
        beside.append(rest)
        basis[step] = image / rest
    return _random_start_bound(diagonal, beside, size)


def _largest(diagonal: list[float], beside: list[float]) -> float:
    return float(linalg.eigvalsh_tridiagonal(diagonal, beside[: len(diagonal) - 1])[-1])


def _random_start_bound(diagonal: list[float], beside: list[float], size: int) -> float:
    steps, failure = len(diagonal), FAILURE / LOOKS
    missed = (math.log(1.648 * math.sqrt(size) / failure) / (2 * steps - 1)) ** 2
    if missed >= 1:
        return math.inf
    return math.sqrt(max(0.0, _largest(diagonal, beside)) / (1 - missed))


def _thin_norm(matrix: Floats) -> float:
    if matrix.size == 0:
        return 0.0
    if not np.isfinite(matrix).all():
        return math.inf
    gram = matrix.T @ matrix if matrix.shape[0] >= matrix.shape[1] else matrix @ matrix.T
    last = len(gram) - 1
    largest = linalg.eigvalsh(gram, subset_by_index=(last, last), check_finite=False)[0]
    return math.sqrt(max(0.0, float(largest)))


def _outside(vectors: Any, bases: tuple[Floats, Floats] | None, side: int) -> Any:
    """Take off the part of the vectors inside the basis of that side."""
    if bases is None:
        return vectors
    return vectors - bases[side] @ (bases[side].T @ vectors)


def largest_singular_value(matrix: Sparse) -> float:
    """Give the spectral norm of a sparse matrix, to several digits."""
    if matrix.nnz == 0:
        return 0.0
    if matrix.shape[0] * matrix.shape[1] <= SMALL:
        return _thin_norm(matrix.toarray())
    return leading(matrix, 8, rounds=16).largest
