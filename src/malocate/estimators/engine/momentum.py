"""Numba kernels over whole factors: what a step does besides its sweeps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def extrapolate(now: Any, before: Any, weight: float, out: Any) -> None:
    """Put now + weight · (now − before) into `out`, in its precision."""
    for i in range(now.shape[0]):
        for k in range(now.shape[1]):
            out[i, k] = now[i, k] + weight * (now[i, k] - before[i, k])


@njit(cache=True, nogil=True)
def mean_squares(factor: Any) -> Any:
    """Give the mean square of each column, in double precision."""
    squares = np.zeros(factor.shape[1])
    _add_squares(factor, squares)
    return squares / max(1, len(factor))


@njit(cache=True, nogil=True)
def penalised(losses: Any, ridge: Any, left: Any, right: Any) -> float:
    """Give half of Σ losses + Σ_k ridge_k (‖left_k‖² + ‖right_k‖²)."""
    squares = np.zeros(len(ridge))
    _add_squares(left, squares)
    _add_squares(right, squares)
    value = 0.0
    for loss in losses:
        value += loss
    for k in range(len(ridge)):
        value += ridge[k] * squares[k]
    return 0.5 * value


@njit(cache=True, nogil=True)
def _add_squares(factor: Any, squares: Any) -> None:
    for i in range(factor.shape[0]):
        for k in range(factor.shape[1]):
            value = np.float64(factor[i, k])
            squares[k] += value * value
