"""Numba kernels over whole factors: what a step does besides its sweeps."""

from __future__ import annotations

from typing import Any

from numba import njit


@njit(cache=True, nogil=True)
def extrapolate(now: Any, before: Any, weight: float, out: Any) -> None:
    """Put now + weight · (now − before) into `out`, in its precision."""
    for i in range(now.shape[0]):
        for k in range(now.shape[1]):
            out[i, k] = now[i, k] + weight * (now[i, k] - before[i, k])


@njit(cache=True, nogil=True)
def add_squares(factor: Any, squares: Any) -> None:
    """Add Σ_i factor[i, k]² to squares[k], in the precision of `squares`."""
    for i in range(factor.shape[0]):
        for k in range(factor.shape[1]):
            value = squares.dtype.type(factor[i, k])
            squares[k] += value * value
