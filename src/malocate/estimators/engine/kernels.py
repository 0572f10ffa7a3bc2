"""Numba kernels over cells and factors: the hot loops of every factored solver.

A *line* is one row (or one column) of the matrix with its seen cells. Its ridge problem needs
the other side's factor at those cells: they are gathered once into `block`, transposed, so that
every inner loop runs along the cells and vectorises; four ranks are taken at a time to spare loads.
A line is filled up to whole cache lines with cells of weight zero, which leaves no odd end to the
vectors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from malocate.estimators.engine.tiles import gather

FAST = {"reassoc", "contract", "nsz", "arcp"}

CACHE_LINE = 64
"""Bytes."""


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
    whole = CACHE_LINE // factor.itemsize
    longest = whole
    for i in range(first, last):
        longest = max(longest, _filled_up(indptr[i + 1] - indptr[i], whole))
    if longest // whole % 2 == 0:  # rows a power of two apart would share few places of the cache
        longest += whole
    block = np.empty((rank, longest), dtype=factor.dtype)
    places = np.empty(longest, dtype=index.dtype)
    w = np.empty(longest, dtype=factor.dtype)
    y = np.empty(longest, dtype=factor.dtype)
    fit = np.empty(longest, dtype=factor.dtype)
    along = np.empty(longest, dtype=factor.dtype)
    gradient = np.empty(rank, dtype=factor.dtype)
    direction = np.empty(rank, dtype=factor.dtype)
    image = np.empty(rank, dtype=factor.dtype)
    scaling = np.empty(rank, dtype=factor.dtype)
    for i in range(first, last):
        begin = indptr[i]
        seen = indptr[i + 1] - begin
        x = factor[i]
        if seen == 0:
            x[:] = 0.0
            losses[i] = 0.0
            continue
        n = _filled_up(seen, whole)
        for j in range(seen):
            places[j], w[j], y[j] = index[begin + j], weights[begin + j], targets[begin + j]
        for j in range(seen, n):
            places[j], w[j], y[j] = places[0], 0.0, 0.0
        gather(other, places, block, n)
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
        for step in range(1, steps + 1):
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
            for k in range(rank):
                x[k] += alpha * direction[k]
            if step == steps:
                break
            _project(block, along, image, n)
            rho_next = 0.0
            for k in range(rank):
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
def _filled_up(count: int, whole: int) -> int:
    return (count + whole - 1) // whole * whole


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
    for i in range(first, last):
        _fit_line(left[i], right, index, indptr[i], indptr[i + 1], out, indptr[i])


@njit(cache=True, nogil=True, fastmath=FAST)
def pull_lines(
    indptr: Any,
    index: Any,
    weights: Any,
    targets: Any,
    left: Any,
    right: Any,
    first: int,
    last: int,
    pulls: Any,
    losses: Any,
) -> None:
    """pulls[e] = w (y − left·right) for every cell; losses[i] = Σ w (y − left·right)² of a row.

    `pulls` may be empty when only the losses are wanted.
    """
    longest = 0
    for i in range(first, last):
        longest = max(longest, indptr[i + 1] - indptr[i])
    fit = np.empty(longest)
    for i in range(first, last):
        begin, end = indptr[i], indptr[i + 1]
        _fit_line(left[i], right, index, begin, end, fit, 0)
        loss = 0.0
        for e in range(begin, end):
            miss = targets[e] - fit[e - begin]
            pull = weights[e] * miss
            loss += pull * miss
            fit[e - begin] = pull
        losses[i] = loss
        if len(pulls) > 0:
            pulls[begin:end] = fit[: end - begin]


@njit(cache=True, nogil=True, fastmath=FAST)
def _fit_line(x: Any, right: Any, index: Any, begin: int, end: int, out: Any, at: int) -> None:
    """out[at + e − begin] = x · right[index[e]], four cells at a time."""
    rank = len(x)
    whole = end - (end - begin) % 4
    shift = at - begin
    for e in range(begin, whole, 4):
        p, q = right[index[e]], right[index[e + 1]]
        r, s = right[index[e + 2]], right[index[e + 3]]
        a = b = c = d = 0.0
        for k in range(rank):
            y = x[k]
            a += y * p[k]
            b += y * q[k]
            c += y * r[k]
            d += y * s[k]
        out[e + shift], out[e + shift + 1] = a, b
        out[e + shift + 2], out[e + shift + 3] = c, d
    for e in range(whole, end):
        p = right[index[e]]
        a = 0.0
        for k in range(rank):
            a += x[k] * p[k]
        out[e + shift] = a


@njit(cache=True, nogil=True, fastmath=FAST)
def multiply_lines(
    indptr: Any, index: Any, values: Any, dense: Any, first: int, last: int, out: Any
) -> None:
    """out[i] = Σ_e values[e] · dense[index[e]] over the cells e of line i, from first to last."""
    width = dense.shape[1]
    for i in range(first, last):
        line = out[i]
        line[:] = 0.0
        begin, end = indptr[i], indptr[i + 1]
        whole = end - (end - begin) % 4
        for e in range(begin, whole, 4):
            a, b, c, d = values[e], values[e + 1], values[e + 2], values[e + 3]
            p, q = dense[index[e]], dense[index[e + 1]]
            r, s = dense[index[e + 2]], dense[index[e + 3]]
            for k in range(width):
                line[k] += a * p[k] + b * q[k] + c * r[k] + d * s[k]
        for e in range(whole, end):
            a, p = values[e], dense[index[e]]
            for k in range(width):
                line[k] += a * p[k]
