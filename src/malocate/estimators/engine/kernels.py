"""Numba kernels over cells and factors: the hot loops of every factored solver.

A *line* is one row (or one column) of the matrix with its seen cells. Its ridge problem needs
the other side's factor at those cells: they are gathered once into `block`, transposed, so that
every inner loop runs along the cells. A line is filled up to whole cache lines with cells of
weight zero, which leaves no odd end to the vectors.

Arrays are copied number by number: an assignment of slices would bring a sentence for shapes that
differ, and compile for four seconds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from malocate.estimators.engine.lines import (
    add_multiple,
    combine,
    descend,
    loss_of,
    project,
    total_of,
    vectors_for,
    weigh,
    weigh_misses,
    weighted_square,
)
from malocate.estimators.engine.tiles import gather
from malocate.estimators.engine.turns import lines_of
from malocate.estimators.engine.vectors import lanes

FAST = {"reassoc", "contract", "nsz", "arcp"}


@njit(cache=True, nogil=True)
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
    turns: Any,
    losses: Any,
) -> None:
    """Move each line's factor towards the minimum of its ridge problem, in place.

    Line i minimises Σ_j w_ij (y_ij − f_i·o_j)² + Σ_k ridge_k f_ik² by `steps` conjugate-gradient
    steps from the factor as it stands. `power` holds the mean square of each column of `other`:
    with the line's total weight it makes the diagonal preconditioner. `losses[i]` becomes
    Σ_j w_ij (y_ij − f_i·o_j)² at the new factor.
    """
    rank = factor.shape[1]
    longest = 1
    for i in range(len(factor)):
        longest = max(longest, vectors_for(indptr[i + 1] - indptr[i], factor))
    longest += 1 - longest % 2  # rows a power of two apart would share few places of the cache
    width = longest * lanes(factor)
    block = _room((rank + 3) // 4 * 4, width, factor)
    block[rank:] = 0.0
    places = np.empty(width, dtype=index.dtype)
    of_cells = _room(4, width, factor)
    w, y, fit, along = of_cells[0:1], of_cells[1:2], of_cells[2:3], of_cells[3:4]
    ranks = vectors_for(rank, factor)
    of_ranks = _room(6, ranks * lanes(factor), factor)
    of_ranks[:] = 0.0
    x, gradient, direction = of_ranks[0:1], of_ranks[1:2], of_ranks[2:3]
    image, scaling, ridges = of_ranks[3:4], of_ranks[4:5], of_ranks[5:6]
    for k in range(rank):
        ridges[0, k] = ridge[k]
    for i in lines_of(turns):
        begin = indptr[i]
        seen = indptr[i + 1] - begin
        if seen == 0:
            factor[i] = 0.0
            losses[i] = 0.0
            continue
        cells = vectors_for(seen, factor)
        n = cells * lanes(factor)
        for j in range(seen):
            places[j], w[0, j], y[0, j] = index[begin + j], weights[begin + j], targets[begin + j]
        for j in range(seen, n):
            places[j], w[0, j], y[0, j] = places[0], 0.0, 0.0
        mass = total_of(w, n)
        gather(other, places, block, n)
        for k in range(rank):
            x[0, k] = factor[i, k]
            size = mass * power[k] + ridge[k]
            scaling[0, k] = 1.0 / size if size > 0.0 else 0.0
        combine(block, x, fit, cells)
        weigh_misses(w, y, fit, along, cells)
        project(block, along, gradient, cells)
        image[:] = 0.0
        rho = descend(gradient, 1.0, image, ridges, x, scaling, direction, ranks)
        for step in range(1, steps + 1):
            if not rho > 0.0:
                break
            combine(block, direction, along, cells)
            curvature = weighted_square(along, w, cells)
            curvature += weighted_square(direction, ridges, ranks)
            if not curvature > 0.0:
                break
            alpha = rho / curvature
            add_multiple(x, alpha, direction, x, ranks)
            add_multiple(fit, alpha, along, fit, cells)
            if step == steps:
                break
            weigh(w, along, cells)
            project(block, along, image, cells)
            rho_next = descend(gradient, alpha, image, ridges, direction, scaling, image, ranks)
            add_multiple(image, rho_next / rho, direction, direction, ranks)
            rho = rho_next
        losses[i] = loss_of(w, y, fit, n)
        for k in range(rank):
            factor[i, k] = x[0, k]


@njit(cache=True, nogil=True)
def _room(rows: int, width: int, like: Any) -> Any:
    """Give an empty array whose rows of whole vectors begin where cache lines do.

    A vector that lies across two lines takes two loads, which would cost a third of a sweep.
    """
    length, line = rows * width, lanes(like)
    room = np.empty(length + line, dtype=like.dtype)
    first = -room.ctypes.data // room.itemsize % line
    return room[first : first + length].reshape((rows, width))


@njit(cache=True, nogil=True, fastmath=FAST)
def sampled_product(indptr: Any, index: Any, left: Any, right: Any, turns: Any, out: Any) -> None:
    """out[e] = left[row of e] · right[column of e] for every cell e."""
    for i in lines_of(turns):
        _fit_line(left[i], right, index, indptr[i], indptr[i + 1], out, indptr[i])


@njit(cache=True, nogil=True, fastmath=FAST)
def pull_lines(
    indptr: Any,
    index: Any,
    weights: Any,
    targets: Any,
    left: Any,
    right: Any,
    turns: Any,
    pulls: Any,
    losses: Any,
) -> None:
    """pulls[e] = w (y − left·right) for every cell; losses[i] = Σ w (y − left·right)² of a row.

    `pulls` may be empty when only the losses are wanted.
    """
    longest = 0
    for i in range(len(left)):
        longest = max(longest, indptr[i + 1] - indptr[i])
    fit = np.empty(longest)
    for i in lines_of(turns):
        begin, end = indptr[i], indptr[i + 1]
        _fit_line(left[i], right, index, begin, end, fit, 0)
        loss = 0.0
        for e in range(begin, end):  # storing here would give the sum either of two orders
            miss = targets[e] - fit[e - begin]
            loss += weights[e] * miss * miss
        losses[i] = loss
        if len(pulls) > 0:
            for e in range(begin, end):
                pulls[e] = weights[e] * (targets[e] - fit[e - begin])


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True)
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
