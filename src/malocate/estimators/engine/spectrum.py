"""Singular directions and norms of a sparse residual: what the factors lack, and how much."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse

from malocate.estimators.engine.kernels import gram_lines
from malocate.estimators.engine.orthogonal import basis_of, nearly_basis_of
from malocate.estimators.engine.table import Lines, Table, closed
from malocate.estimators.engine.tall import across, along
from malocate.estimators.engine.threads import FETCH, spread

Floats = npt.NDArray[np.float64]
Sparse = sparse.csr_matrix | Table

Gram = Callable[[int, int], Floats]
"""Gives some rows of a matrix R Rᵀ from their first column on; below its diagonal may be zeros."""

CHOLESKY_SIDE = 5000
"""Shorter sides up to which a norm is bounded by Cholesky factorisations, without chance."""

DENSE_SHARE = 0.1
"""Share of filled cells from which a residual is multiplied as a dense matrix."""

GRAM_SHARE = 0.15
"""Share of filled cells from which a residual is multiplied with itself as a dense matrix."""

AT_A_TIME = 512
"""Rows of a Gram matrix that are eliminated at a time."""

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
    known = 0 if start is None else min(start.shape[1], count - count // 4)
    right = np.random.default_rng(count).standard_normal((matrix.shape[1], count - known))
    if start is not None:
        right = np.hstack([start[:, :known], right])
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
    most = float(np.linalg.norm(matrix.tocsr().data))
    if min(matrix.shape) <= CHOLESKY_SIDE:
        guesses = _rising(max(lower, 1e-8 * most), enough) if anyhow else (enough,)
        bound = _bound_by_cholesky(matrix, guesses, most)
    else:
        bound = _bound_by_blocks(matrix.tocsr(), enough, bases)
    return max(lower, min(bound, most))


def _bound_by_cholesky(matrix: Sparse, guesses: Iterable[float], most: float) -> float:
    """Give the first of the rising guesses at which guess²·I − R Rᵀ is positive definite."""
    gram = _gram_of(matrix)
    for guess in takewhile(lambda guess: guess < most, guesses):
        if _is_above(guess * guess * (1 - 1e-10), gram, min(matrix.shape)):
            return guess
    return most


def _rising(lower: float, enough: float) -> Iterator[float]:
    """Give guesses from just above the lower bound on, ever farther away from it."""
    excess = max(enough / lower - 1, 1e-9) / 4 if lower > 0.0 else 1.0
    while True:
        yield lower * (1 + excess)
        excess *= 4


def _is_above(level: float, gram: Gram, size: int) -> bool:
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
        if failed:
            return False
        above.append(linalg.solve_triangular(corner, rows, trans="T", check_finite=False))
    return True


def _gram_of(matrix: Sparse) -> Gram:
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
    indptr, across_all = lines[0], FETCH * max(1, matrix.nnz // (len(turned[0]) - 1))

    def rows(first: int, last: int) -> Floats:
        made = np.zeros((last - first, len(indptr) - 1 - first))

        def work(begin: int, end: int) -> None:
            gram_lines(*lines, *turned, first + begin, first + end, first, made)

        spread(work, indptr[first : last + 1] - indptr[first], across_all)
        return made

    return rows


def _both_orders(matrix: Sparse) -> tuple[Lines, Lines]:
    """Give a sparse matrix row by row and column by column."""
    if isinstance(matrix, Table):
        return matrix.lines, matrix.T.lines
    by_row, by_column = (
        closed(each.indptr, each.indices, each.data) for each in (matrix, matrix.tocsc())
    )
    return by_row, by_column


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
    basis = bases[side]
    if vectors.ndim == 1:
        return vectors - basis @ (basis.T @ vectors)
    return vectors - along(basis, across(basis, vectors))


def largest_singular_value(matrix: Sparse) -> float:
    """Give the spectral norm of a sparse matrix, to several digits."""
    if matrix.nnz == 0:
        return 0.0
    if matrix.shape[0] * matrix.shape[1] <= SMALL:
        return _thin_norm(matrix.toarray())
    return leading(matrix, 8, rounds=16).largest
