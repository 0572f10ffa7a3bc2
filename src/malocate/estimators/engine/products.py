"""Numba kernels that multiply a sparse matrix, line by line: by a thin one, and by itself."""

from __future__ import annotations

from typing import Any

from numba import njit

from malocate.estimators.engine.turns import lines_of
from malocate.estimators.engine.vectors import lanes, load_from, plus, store_from, zeros


@njit(cache=True, nogil=True)
def multiply_lines(indptr: Any, index: Any, values: Any, dense: Any, turns: Any, out: Any) -> None:
    """out[i] = Σ_e values[e] · dense[index[e]] over the cells e of line i.

    Up to four vectors of columns are summed at a time, in registers; the last of them overlap those
    before where the columns do not fill them.
    """
    width, lane = dense.shape[1], lanes(dense)
    end = width - lane
    for i in lines_of(turns):
        cells = slice(indptr[i], indptr[i + 1])
        places, shares, line = index[cells], values[cells], out[i : i + 1]
        if end < 0:
            _multiply_few(places, shares, dense, line)
            continue
        for p in range(0, width, 4 * lane):
            q = min(p + lane, end)
            if p + 2 * lane < width:
                r, s = min(p + 2 * lane, end), min(p + 3 * lane, end)
                _multiply_four(places, shares, dense, line, p, q, r, s)
            else:
                _multiply_two(places, shares, dense, line, min(p, end), q)


@njit(cache=True, nogil=True, forceinline=True)
def _multiply_four(
    places: Any, shares: Any, dense: Any, line: Any, p: int, q: int, r: int, s: int
) -> None:
    """Do so for the vectors of columns that begin at p, q, r and s."""
    a = b = c = d = zeros(dense)
    for e in range(len(places)):
        j, share = places[e], shares[e]
        a = plus(a, share, load_from(dense, j, p))
        b = plus(b, share, load_from(dense, j, q))
        c = plus(c, share, load_from(dense, j, r))
        d = plus(d, share, load_from(dense, j, s))
    store_from(line, 0, p, a)
    store_from(line, 0, q, b)
    store_from(line, 0, r, c)
    store_from(line, 0, s, d)


@njit(cache=True, nogil=True, forceinline=True)
def _multiply_two(places: Any, shares: Any, dense: Any, line: Any, p: int, q: int) -> None:
    """Do so for two vectors of columns, two cells at a time."""
    a = b = c = d = zeros(dense)
    odd = len(places) % 2
    if odd:
        j, share = places[0], shares[0]
        a = plus(a, share, load_from(dense, j, p))
        b = plus(b, share, load_from(dense, j, q))
    for e in range(odd, len(places), 2):
        j, share = places[e], shares[e]
        a = plus(a, share, load_from(dense, j, p))
        b = plus(b, share, load_from(dense, j, q))
        j, share = places[e + 1], shares[e + 1]
        c = plus(c, share, load_from(dense, j, p))
        d = plus(d, share, load_from(dense, j, q))
    store_from(line, 0, p, plus(a, 1.0, c))
    store_from(line, 0, q, plus(b, 1.0, d))


@njit(cache=True, nogil=True, forceinline=True)
def _multiply_few(places: Any, shares: Any, dense: Any, line: Any) -> None:
    """Do so for fewer columns than fill a vector."""
    line[:] = 0.0
    for e in range(len(places)):
        j, share = places[e], shares[e]
        for k in range(dense.shape[1]):
            line[0, k] += share * dense[j, k]


@njit(cache=True, nogil=True)
def move_lines(indptr: Any, order: Any, values: Any, turns: Any, out: Any) -> None:
    """out[e] = values[order[e]] for the cells e of every line."""
    for i in lines_of(turns):
        for e in range(indptr[i], indptr[i + 1]):
            out[e] = values[order[e]]


@njit(cache=True, nogil=True)
def gram_lines(
    indptr: Any,
    index: Any,
    values: Any,
    turned_indptr: Any,
    turned_index: Any,
    turned_values: Any,
    first: int,
    turns: Any,
    out: Any,
) -> None:
    """Add the products of some lines with all lines from themselves on to `out`.

    out[i, l] += Σ_j R[first + i, j] R[first + l, j] for l ≥ i. The turned arrays hold the same
    matrix by column, the lines of each in rising order.
    """
    for turn in lines_of(turns):
        i, line = first + turn, out[turn]
        for e in range(indptr[i], indptr[i + 1]):
            value, j = values[e], index[e]
            for f in range(turned_indptr[j + 1] - 1, turned_indptr[j] - 1, -1):
                other = turned_index[f]
                if other < i:
                    break
                line[other - first] += value * turned_values[f]
