"""Numba kernels over cells and factors: the hot loops of every factored solver.

Letters inside: `t` fitted values along one line (row or column) of cells, `g` gradient,
`p` search direction, `q` its image. A line's factor rows are gathered once, transposed,
so that every inner loop runs over the line's cells and vectorises.
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
    steps: int,
    first: int,
    last: int,
    losses: Any,
) -> None:
    """Move each line's factor towards the minimum of its ridge problem, in place.

    Line i minimises Σ_j w_ij (y_ij − f_i·o_j)² + Σ_k ridge_k f_ik²; `steps` conjugate-gradient
    steps with a diagonal preconditioner, from the factor as it stands. `losses[i]` becomes
    Σ_j w_ij (y_ij − f_i·o_j)² at the new factor.
    """
    rank = factor.shape[1]
    longest = 0
    for i in range(first, last):
        longest = max(longest, indptr[i + 1] - indptr[i])
    block = np.empty((rank, longest), dtype=factor.dtype)
    t = np.empty(longest, dtype=factor.dtype)
    q = np.empty(longest, dtype=factor.dtype)
    g = np.empty(rank, dtype=factor.dtype)
    p = np.empty(rank, dtype=factor.dtype)
    image = np.empty(rank, dtype=factor.dtype)
    diagonal = np.empty(rank, dtype=factor.dtype)
    for i in range(first, last):
        begin = indptr[i]
        n = indptr[i + 1] - begin
        if n == 0:
            for k in range(rank):
                factor[i, k] = 0.0
            losses[i] = 0.0
            continue
        for j in range(n):
            row = index[begin + j]
            for k in range(rank):
                block[k, j] = other[row, k]
        w = weights[begin : begin + n]
        y = targets[begin : begin + n]
        x = factor[i]
        _multiply(block, x, t, n)
        for j in range(n):
            q[j] = w[j] * (y[j] - t[j])
        rho = 0.0
        for k in range(rank):
            s = 0.0
            d = 0.0
            for j in range(n):
                s += block[k, j] * q[j]
                d += block[k, j] * block[k, j] * w[j]
            diagonal[k] = d + ridge[k]
            g[k] = s - ridge[k] * x[k]
            p[k] = g[k] / diagonal[k] if diagonal[k] > 0.0 else 0.0
            rho += g[k] * p[k]
        for _ in range(steps):
            if not rho > 0.0:
                break
            _multiply(block, p, q, n)
            curvature = 0.0
            for j in range(n):
                curvature += w[j] * q[j] * q[j]
            for k in range(rank):
                curvature += ridge[k] * p[k] * p[k]
            if not curvature > 0.0:
                break
            alpha = rho / curvature
            for j in range(n):
                t[j] += alpha * q[j]
                q[j] *= w[j]
            rho_next = 0.0
            for k in range(rank):
                x[k] += alpha * p[k]
                s = 0.0
                for j in range(n):
                    s += block[k, j] * q[j]
                g[k] -= alpha * (s + ridge[k] * p[k])
                image[k] = g[k] / diagonal[k] if diagonal[k] > 0.0 else 0.0
                rho_next += g[k] * image[k]
            beta = rho_next / rho
            rho = rho_next
            for k in range(rank):
                p[k] = image[k] + beta * p[k]
        loss = 0.0
        for j in range(n):
            miss = y[j] - t[j]
            loss += w[j] * miss * miss
        losses[i] = loss


@njit(cache=True, nogil=True, fastmath=FAST, inline="always")
def _multiply(block: Any, x: Any, out: Any, n: int) -> None:
    """out[j] = Σ_k block[k, j] x[k], four ranks at a time."""
    rank = block.shape[0]
    for j in range(n):
        out[j] = 0.0
    whole = rank - rank % 4
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
