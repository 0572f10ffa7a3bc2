"""Penalties of the square-root lasso: neither rule needs to know the level of the noise."""

from __future__ import annotations

import math

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds

from malocate.problem import Entries

QUANTILE = 0.95
MARGIN = 1.1
SIMULATIONS = 200
FEWEST = 20
"""Simulations for the largest matrices, whose quantile lies within a per cent of the mean."""

SIMULATED_CELLS = 2_400_000
"""Cells simulated in all; larger matrices need fewer simulations: 60 at 200 × 200."""

DENSE_SIDE = 200
SEED = 20190416


def paper_penalty(shape: tuple[int, int], answers: int, constant: float) -> float:
    """Give C·√(log max(d1, d2) / (min(d1, d2) · answers)), the paper's rule for any shape.

    >>> round(paper_penalty((200, 200), 8000, 1.0), 6)
    0.00182
    """
    return constant * math.sqrt(math.log(max(*shape, 2)) / (min(shape) * answers))


def pivotal_penalty(entries: Entries) -> float:
    """Give 1.1 times the .95 quantile of ‖n⁻¹ Σ g_i X_i‖ / √(n⁻¹ Σ g_i²) on the seen entries.

    X_i marks the cell of answer i and the g_i are standard normal: what the slope of the
    square-root loss at the truth would be under Gaussian noise, of whatever level. The penalty
    must exceed it for noise not to be fitted. An entry seen m times gets the sum of m draws; the
    simulation is always the same for the same entries, in whatever order their answers came.

    >>> from malocate import Observations
    >>> pivotal_penalty(Observations([0], [0], [3.0], shape=(4, 5)).entries)
    1.1
    """
    rng = np.random.default_rng(SEED)
    count = max(FEWEST, min(SIMULATIONS, SIMULATED_CELLS // math.prod(entries.shape)))
    return MARGIN * float(np.quantile([_slope(entries, rng) for _ in range(count)], QUANTILE))


def _slope(entries: Entries, rng: np.random.Generator) -> float:
    answers, extra = entries.n_answers, entries.n_answers - len(entries)
    draws = rng.standard_normal(len(entries))
    squares = float(draws @ draws) + (float(rng.chisquare(extra)) if extra else 0.0)
    sums = sparse.csr_matrix(
        (np.sqrt(entries.visits) * draws, entries.cols, entries.indptr), shape=entries.shape
    )
    return _norm(sums) / math.sqrt(answers * squares)


def _norm(matrix: sparse.csr_matrix) -> float:
    """Give the spectral norm; of long matrices to about a tenth of a per cent."""
    if min(matrix.shape) > DENSE_SIDE:
        start = np.ones(min(matrix.shape))
        return float(svds(matrix, k=1, tol=0.03, v0=start, return_singular_vectors=False)[0])
    dense = matrix.toarray()
    gram = dense @ dense.T if dense.shape[0] <= dense.shape[1] else dense.T @ dense
    return math.sqrt(float(np.linalg.eigvalsh(gram)[-1]))
