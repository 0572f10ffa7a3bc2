"""Numba kernels of the additive centre: shrunken effects of rows and columns, in turns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

FIRST_PRIOR = 2.0
"""Answers' worth of shrinkage before the data have been asked."""

PRIORS = 1e-12, 1e9
"""The shrinkage stays between these."""

SWEEPS = 60


@njit(cache=True, nogil=True)
def alternate(
    indptr: Any, index: Any, visits: Any, above: Any, width: int, total: float, settled: float
) -> Any:
    """Give row and column effects; `total` is Σ visits · above², what none would leave over."""
    length = len(indptr) - 1
    row_visits, row_sums, rows = np.zeros(length), np.zeros(length), np.zeros(length)
    col_visits, col_sums, cols = np.zeros(width), np.zeros(width), np.zeros(width)
    for i in range(length):
        for e in range(indptr[i], indptr[i + 1]):
            row_visits[i] += visits[e]
            row_sums[i] += visits[e] * above[e]
            col_visits[index[e]] += visits[e]
            col_sums[index[e]] += visits[e] * above[e]
    across, down = np.zeros(length), np.zeros(width)
    row_prior = col_prior = FIRST_PRIOR
    for _ in range(SWEEPS):
        row_moved, row_free = _shrink(row_sums, across, row_visits, row_prior, rows)
        down[:] = 0.0
        for i in range(length):
            for e in range(indptr[i], indptr[i + 1]):
                down[index[e]] += visits[e] * rows[i]
        col_moved, col_free = _shrink(col_sums, down, col_visits, col_prior, cols)
        across[:] = 0.0
        for i in range(length):
            for e in range(indptr[i], indptr[i + 1]):
                across[i] += visits[e] * cols[index[e]]
        left_over = total + _gain(rows, row_visits, row_sums) + _gain(cols, col_visits, col_sums)
        for i in range(length):
            left_over += 2.0 * rows[i] * across[i]
        left_over = max(0.0, left_over) / max(1.0, len(visits) - row_free - col_free)
        row_prior, col_prior = _prior(left_over, row_free, rows), _prior(left_over, col_free, cols)
        if max(row_moved, col_moved) <= settled:
            break
    return rows, cols


@njit(cache=True, nogil=True)
def _shrink(sums: Any, other: Any, visits: Any, prior: float, effects: Any) -> Any:
    """Move each effect to its shrunken mean; give the largest move and the degrees of freedom.

    Shrunken effects have the sum of their shrinkage factors as degrees of freedom.
    """
    moved = free = 0.0
    for line in range(len(effects)):
        if visits[line] > 0.0:
            effect = (sums[line] - other[line]) / (visits[line] + prior)
            free += visits[line] / (visits[line] + prior)
            moved = max(moved, abs(effect - effects[line]))
            effects[line] = effect
    return moved, free


@njit(cache=True, nogil=True)
def _gain(effects: Any, visits: Any, sums: Any) -> float:
    """Give what effects add to what is left over, by themselves."""
    gain = 0.0
    for line in range(len(effects)):
        gain += effects[line] * (effects[line] * visits[line] - 2.0 * sums[line])
    return gain


@njit(cache=True, nogil=True)
def _prior(left_over: float, free: float, effects: Any) -> float:
    """Give the ratio of the left-over variance to the effects': the evidence's fixed point."""
    square = 0.0
    for effect in effects:
        square += effect * effect
    low, high = PRIORS
    return min(max(left_over * free / square, low), high) if square > 0.0 else high
