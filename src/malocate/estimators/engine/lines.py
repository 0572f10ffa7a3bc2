"""Numba kernels of one line's conjugate gradients, on vectors of a cache line.

Every array has two dimensions; those with a single row hold numbers of the line's cells, or one
per rank. Whatever a loop runs over is filled up with zeros to `count` whole vectors, and ranks to
fours. All are inlined: passing the arrays would take longer than the work on a short line. What is
summed has an order of its own, so that the compiler need not choose one.
"""

from __future__ import annotations

from typing import Any

from numba import njit

from malocate.estimators.engine.vectors import (
    lanes,
    load,
    plus,
    store,
    store_totals,
    times,
    total,
    zeros,
)

NEAR = 400
"""Vectors that the nearest cache holds with room to spare."""


@njit(cache=True, nogil=True, forceinline=True)
def vectors_for(count: int, array: Any) -> Any:
    """How many vectors hold so many numbers."""
    return (count + lanes(array) - 1) // lanes(array)


@njit(cache=True, nogil=True, forceinline=True)
def combine(block: Any, x: Any, out: Any, count: int) -> None:
    """out[j] = Σ_k x[k] block[k, j]."""
    if count * block.shape[0] <= NEAR:
        _combine_down(block, x, out, count)
    else:
        _combine_along(block, x, out, count)


@njit(cache=True, nogil=True, forceinline=True)
def _combine_down(block: Any, x: Any, out: Any, count: int) -> None:
    """Keep each vector of `out` in registers through all the ranks."""
    for j in range(count):
        a = b = c = d = zeros(out)
        for k in range(0, block.shape[0], 4):
            a = plus(a, x[0, k], load(block, k, j))
            b = plus(b, x[0, k + 1], load(block, k + 1, j))
            c = plus(c, x[0, k + 2], load(block, k + 2, j))
            d = plus(d, x[0, k + 3], load(block, k + 3, j))
        store(out, 0, j, plus(plus(a, 1.0, b), 1.0, plus(c, 1.0, d)))


@njit(cache=True, nogil=True)
def _combine_along(block: Any, x: Any, out: Any, count: int) -> None:
    """Read four ranks at a time from one end to the other, as far memory is read fastest."""
    for j in range(count):
        store(out, 0, j, zeros(out))
    for k in range(0, block.shape[0], 4):
        for j in range(count):
            a = plus(load(out, 0, j), x[0, k], load(block, k, j))
            a = plus(a, x[0, k + 1], load(block, k + 1, j))
            b = plus(zeros(out), x[0, k + 2], load(block, k + 2, j))
            b = plus(b, x[0, k + 3], load(block, k + 3, j))
            store(out, 0, j, plus(a, 1.0, b))


@njit(cache=True, nogil=True, forceinline=True)
def project(block: Any, along: Any, out: Any, count: int) -> None:
    """out[k] = Σ_j along[j] block[k, j]."""
    for four in range(block.shape[0] // 4):
        k = 4 * four
        a = b = c = d = zeros(out)
        for j in range(count):
            v = load(along, 0, j)
            a = plus(a, v, load(block, k, j))
            b = plus(b, v, load(block, k + 1, j))
            c = plus(c, v, load(block, k + 2, j))
            d = plus(d, v, load(block, k + 3, j))
        store_totals(out, 0, four, a, b, c, d)


@njit(cache=True, nogil=True, forceinline=True)
def weigh_misses(w: Any, y: Any, fit: Any, out: Any, count: int) -> None:
    """out[j] = w[j] (y[j] − fit[j])."""
    for j in range(count):
        miss = plus(load(y, 0, j), -1.0, load(fit, 0, j))
        store(out, 0, j, times(load(w, 0, j), miss))


@njit(cache=True, nogil=True, forceinline=True)
def weigh(w: Any, along: Any, count: int) -> None:
    """along[j] = w[j] along[j]."""
    for j in range(count):
        store(along, 0, j, times(load(w, 0, j), load(along, 0, j)))


@njit(cache=True, nogil=True, forceinline=True)
def descend(
    gradient: Any,
    step: float,
    image: Any,
    ridge: Any,
    moved: Any,
    scaling: Any,
    out: Any,
    count: int,
) -> Any:
    """Take step · (image + ridge moved) off the gradient, scale it into `out`; their product."""
    product = zeros(gradient)
    for k in range(count):
        effect = plus(load(image, 0, k), load(ridge, 0, k), load(moved, 0, k))
        g = plus(load(gradient, 0, k), -step, effect)
        scaled = times(g, load(scaling, 0, k))
        store(gradient, 0, k, g)
        store(out, 0, k, scaled)
        product = plus(product, g, scaled)
    return total(product)


@njit(cache=True, nogil=True, forceinline=True)
def weighted_square(values: Any, weights: Any, count: int) -> Any:
    """Σ_j weights[j] values[j]²."""
    made = zeros(values)
    for j in range(count):
        v = load(values, 0, j)
        made = plus(made, v, times(v, load(weights, 0, j)))
    return total(made)


@njit(cache=True, nogil=True, forceinline=True)
def add_multiple(values: Any, multiple: float, other: Any, out: Any, count: int) -> None:
    """out[j] = values[j] + multiple · other[j]."""
    for j in range(count):
        store(out, 0, j, plus(load(values, 0, j), multiple, load(other, 0, j)))


@njit(cache=True, nogil=True, forceinline=True)
def total_of(values: Any, length: int) -> Any:
    """Σ_j values[j], in double precision."""
    a = b = c = d = 0.0
    for j in range(0, length, 4):
        a += values[0, j]
        b += values[0, j + 1]
        c += values[0, j + 2]
        d += values[0, j + 3]
    return a + b + (c + d)


@njit(cache=True, nogil=True, forceinline=True)
def loss_of(w: Any, y: Any, fit: Any, length: int) -> Any:
    """Σ_j w[j] (y[j] − fit[j])², summed in double precision."""
    a = b = c = d = 0.0
    for j in range(0, length, 4):
        p, q = y[0, j] - fit[0, j], y[0, j + 1] - fit[0, j + 1]
        r, s = y[0, j + 2] - fit[0, j + 2], y[0, j + 3] - fit[0, j + 3]
        a += w[0, j] * p * p
        b += w[0, j + 1] * q * q
        c += w[0, j + 2] * r * r
        d += w[0, j + 3] * s * s
    return a + b + (c + d)
