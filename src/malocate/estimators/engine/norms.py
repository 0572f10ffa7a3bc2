"""Lower and upper bounds of a sparse residual's spectral norm, on which certificates stand."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import takewhile

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse

from malocate.estimators.engine.gram import gram_of, is_above
from malocate.estimators.engine.spectrum import Directions, outside, thin_norm
from malocate.estimators.engine.table import Sparse

Floats = npt.NDArray[np.float64]

CHOLESKY_SIDE = 5000
"""Shorter sides up to which a norm is bounded by Cholesky eliminations, without chance."""

FAILURE = 1e-9
"""Chance that the random-start Lanczos bounds of one fit, used for longer sides, are too small."""

LOOKS = 1000
"""Looks at Lanczos bounds in one fit that share this chance."""

LANCZOS_STEPS = 400


def norm_within(matrix: Sparse, bases: tuple[Floats, Floats]) -> float:
    """Give a lower bound of the spectral norm: that of the part inside either basis."""
    along_right, along_left = matrix @ bases[1], matrix.T @ bases[0]
    return max(thin_norm(along_right), thin_norm(along_left))


def norm_beside(matrix: Sparse, bases: tuple[Floats, Floats], beside: Directions) -> float:
    """Give a lower bound of the spectral norm: that of the part inside either basis or beside it.

    What the matrix takes from a basis to directions beside it may raise the norm above both their
    own. Directions of little value may be rounding alone, and do not count.
    """
    along_right, along_left = matrix @ bases[1], matrix.T @ bases[0]
    lower = max(thin_norm(along_right), thin_norm(along_left), beside.largest)
    beside = beside.above(lower / 2)
    if len(beside.values) == 0:
        return lower
    along_right = np.hstack([along_right, matrix @ beside.right])
    along_left = np.hstack([along_left, matrix.T @ beside.left])
    return max(lower, thin_norm(along_right), thin_norm(along_left))


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
    Cholesky eliminations; for long ones the matrix is cut by the bases into three thin blocks,
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
    gram = gram_of(matrix)
    for guess in takewhile(lambda guess: guess < most, guesses):
        if is_above(guess * guess * (1 - 1e-10), gram, min(matrix.shape)):
            return guess
    return most


def _rising(lower: float, enough: float) -> Iterator[float]:
    """Give guesses from just above the lower bound on, ever farther away from it."""
    excess = max(enough / lower - 1, 1e-9) / 4 if lower > 0.0 else 1.0
    while True:
        yield lower * (1 + excess)
        excess *= 4


def _bound_by_blocks(
    matrix: sparse.csr_matrix, enough: float, bases: tuple[Floats, Floats]
) -> float:
    """Bound the norm by that of the 2 × 2 matrix of the blocks' norms."""
    left, right = bases
    along_right, along_left = matrix @ right, matrix.T @ left
    inner = left.T @ along_right
    corner = thin_norm(along_right - left @ inner)
    other = thin_norm(along_left - right @ inner.T)
    wanted = max(enough - corner - other, 0.9 * enough)
    if matrix.shape[0] < matrix.shape[1]:
        rest = lanczos_bound(matrix.T.tocsr(), (right, left), enough=wanted)
    else:
        rest = lanczos_bound(matrix, bases, enough=wanted)
    return thin_norm(np.array([[thin_norm(inner), other], [corner, rest]]))


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
    start = outside(np.random.default_rng(size).standard_normal(size), without, 1)
    if not np.linalg.norm(start) > 0.0:
        return 0.0
    steps = min(LANCZOS_STEPS, size)
    basis = np.empty((steps + 1, size))  # what is not written takes no memory
    basis[0] = start / np.linalg.norm(start)
    diagonal: list[float] = []
    beside: list[float] = []
    for step in range(1, steps + 1):
        known = basis[:step]
        image = outside(matrix.T @ outside(matrix @ known[-1], without, 0), without, 1)
        diagonal.append(float(image @ known[-1]))
        for _ in range(2):
            image -= known.T @ (known @ image)
        rest = float(np.linalg.norm(image))
        if rest <= 1e-12 * max(0.0, *diagonal):  # the whole space that the start can reach is seen
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
