"""Numba kernels over cells and factors: the hot loops of every factored solver.

A *line* is one row (or one column) of the matrix with its seen cells. Its ridge problem needs
the other side's factor at those cells: they are gathered once into `block`, transposed, so that
every inner loop runs along the cells and vectorises; four ranks are taken at a time to spare loads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

FAST = {"reassoc", "contract", "nsz", "arcp"}


@njit(cache=True, nogil=True, fastmath=FAST)
def solve_lines(
    indptr: Any,
    index: Any,
    weights: Any,
    targets: Any,
    factor: Any,
    other: Any,
    ridge: Any,
    power: Any,
    steps: int,
    first: int,
    last: int,
    losses: Any,
) -> None:
    """Move each line's factor towards the minimum of its ridge problem, in place.

    Line i minimises Σ_j w_ij (y_ij − f_i·o_j)² + Σ_k ridge_k f_ik² by `steps` conjugate-gradient
    steps from the factor as it stands. `power` holds the mean square of each column of `other`:
    with the line's total weight it makes the diagonal preconditioner. `losses[i]` becomes
    Σ_j w_ij (y_ij − f_i·o_j)² at the new factor.
    """
    rank = factor.shape[1]
    longest = 0
    for i in range(first, last):
        longest = max(longest, indptr[i + 1] - indptr[i])
    block = np.empty((rank, longest), dtype=factor.dtype)
    fit = np.empty(longest, dtype=factor.dtype)
    along = np.empty(longest, dtype=factor.dtype)
    gradient = np.empty(rank, dtype=factor.dtype)
    direction = np.empty(rank, dtype=factor.dtype)
    image = np.empty(rank, dtype=factor.dtype)
    scaling = np.empty(rank, dtype=factor.dtype)
    for i in range(first, last):
        begin = indptr[i]
        n = indptr[i + 1] - begin
        x = factor[i]
        if n == 0:
            x[:] = 0.0
            losses[i] = 0.0
            continue
        w = weights[begin : begin + n]
        y = targets[begin : begin + n]
        _gather(other, index[begin : begin + n], block)
        _combine(block, x, fit, n)
        mass = 0.0
        for j in range(n):
            along[j] = w[j] * (y[j] - fit[j])
            mass += w[j]
        _project(block, along, gradient, n)
        rho = 0.0
        for k in range(rank):
            size = mass * power[k] + ridge[k]
            scaling[k] = 1.0 / size if size > 0.0 else 0.0
            gradient[k] -= ridge[k] * x[k]
            direction[k] = gradient[k] * scaling[k]
            rho += gradient[k] * direction[k]
        for _ in range(steps):
            if not rho > 0.0:
                break
            _combine(block, direction, along, n)
            curvature = 0.0
            for j in range(n):
                curvature += w[j] * along[j] * along[j]
            for k in range(rank):
                curvature += ridge[k] * direction[k] * direction[k]
            if not curvature > 0.0:
                break
            alpha = factor.dtype.type(rho / curvature)
            for j in range(n):
                fit[j] += alpha * along[j]
                along[j] *= w[j]
            _project(block, along, image, n)
            rho_next = 0.0
            for k in range(rank):
                x[k] += alpha * direction[k]
                gradient[k] -= alpha * (image[k] + ridge[k] * direction[k])
                image[k] = gradient[k] * scaling[k]
                rho_next += gradient[k] * image[k]
            beta = factor.dtype.type(rho_next / rho)
            rho = rho_next
            for k in range(rank):
                direction[k] = image[k] + beta * direction[k]
        loss = 0.0
        for j in range(n):
            miss = y[j] - fit[j]
            loss += w[j] * miss * miss
        losses[i] = loss


@njit(cache=True, nogil=True)
def _gather(other: Any, index: Any, block: Any) -> None:
    """block[k, j] = other[index[j], k], four cells at a time."""
    n, rank = len(index), other.shape[1]
    whole = n - n % 4
    for j in range(0, whole, 4):
        a, b = other[index[j]], other[index[j + 1]]
        c, d = other[index[j + 2]], other[index[j + 3]]
        for k in range(rank):
            block[k, j] = a[k]
            block[k, j + 1] = b[k]
            block[k, j + 2] = c[k]
            block[k, j + 3] = d[k]
    for j in range(whole, n):
        for k in range(rank):
            block[k, j] = other[index[j], k]


@njit(cache=True, nogil=True, fastmath=FAST)
def _combine(block: Any, x: Any, out: Any, n: int) -> None:
    """out[j] = Σ_k x[k] block[k, j]."""
    rank = block.shape[0]
    whole = rank - rank % 4
    for j in range(n):
        out[j] = 0.0
    for k in range(0, whole, 4):
        a, b, c, d = x[k], x[k + 1], x[k + 2], x[k + 3]
        for j in range(n):
            out[j] += (
                a * block[k, j] + b * block[k + 1, j] + c * block[k + 2, j] + d * block[k + 3, j]
            )
    for k in range(whole, rank):
        a = x[k]
        for j in range(n):
            out[j] += a * block[k, j]


@njit(cache=True, nogil=True, fastmath=FAST)
def _project(block: Any, along: Any, out: Any, n: int) -> None:
    """out[k] = Σ_j along[j] block[k, j]."""
    rank = block.shape[0]
    whole = rank - rank % 4
    zero = out.dtype.type(0)
    for k in range(0, whole, 4):
        a = b = c = d = zero
        for j in range(n):
            s = along[j]
            a += s * block[k, j]
            b += s * block[k + 1, j]
            c += s * block[k + 2, j]
            d += s * block[k + 3, j]
        out[k], out[k + 1], out[k + 2], out[k + 3] = a, b, c, d
    for k in range(whole, rank):
        a = zero
        for j in range(n):
            a += along[j] * block[k, j]
        out[k] = a


@njit(cache=True, nogil=True, fastmath=FAST)
def sampled_product(
    indptr: Any, index: Any, left: Any, right: Any, first: int, last: int, out: Any
) -> None:
    """out[e] = left[row of e] · right[column of e] for every cell e of rows first to last."""
    rank = left.shape[1]
    for i in range(first, last):
        for e in range(indptr[i], indptr[i + 1]):
            j = index[e]
            s = 0.0
            for k in range(rank):
                s += left[i, k] * right[j, k]
            out[e] = s
