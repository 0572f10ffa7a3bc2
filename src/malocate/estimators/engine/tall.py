"""Products of tall matrices, by blocks of rows over threads; the same bits for any number."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from malocate.estimators.engine.threads import Work, spread
from malocate.estimators.engine.turns import Turns, lines_of

Floats = npt.NDArray[np.float64]

ROWS = 512
"""Rows of a block: few enough to stay in the cache, and the same however many threads there are."""


def across(left: Floats, right: Floats) -> Floats:
    """Give ``left.T @ right`` of two tall matrices.

    >>> tall = np.ones((3000, 2))
    >>> across(tall, tall).tolist()
    [[3000.0, 3000.0], [3000.0, 3000.0]]
    """
    if len(left) <= ROWS or not left.size * right.size:
        return left.T @ right
    parts = np.empty((-(-len(left) // ROWS), left.shape[1], right.shape[1]))

    def work(turns: Turns) -> None:
        _across_blocks(left, right, ROWS, turns, parts)

    _by_blocks(work, len(left), left.shape[1] * right.shape[1])
    return np.asarray(parts.sum(axis=0))


def along(tall: Floats, small: Floats) -> Floats:
    """Give ``tall @ small``.

    >>> along(np.ones((3000, 2)), np.ones((2, 1))).sum().item()
    6000.0
    """
    if len(tall) <= ROWS or not small.size:
        return tall @ small
    made, small = np.empty((len(tall), small.shape[1])), np.ascontiguousarray(small)

    def work(turns: Turns) -> None:
        _along_blocks(tall, small, ROWS, turns, made)

    _by_blocks(work, len(tall), small.size)
    return made


def beside(tall: Floats, basis: Floats) -> tuple[Floats, Floats]:
    """Give the part of the columns outside an orthonormal basis, and their shares of the basis.

    >>> outside, shares = beside(np.ones((2, 1)), np.eye(2)[:, :1])
    >>> outside.tolist(), shares.tolist()
    ([[0.0], [1.0]], [[1.0]])
    """
    shares = across(basis, tall)
    return tall - along(basis, shares), shares


def _by_blocks(work: Work, rows: int, cost: int) -> None:
    """Share out the blocks; `cost` is multiply-adds per row."""
    spread(work, _block_ends(rows, ROWS), cost)


@lru_cache(maxsize=16)
def _block_ends(rows: int, block: int) -> npt.NDArray[np.int64]:
    return np.append(np.arange(0, rows, block), rows)


@njit(cache=True, nogil=True)
def _across_blocks(left: Any, right: Any, rows: int, turns: Any, parts: Any) -> None:
    """parts[b] = left[block b].T @ right[block b]."""
    for block in lines_of(turns):
        first, end = block * rows, (block + 1) * rows
        a, b = np.ascontiguousarray(left[first:end]), np.ascontiguousarray(right[first:end])
        np.dot(a.T, b, parts[block])


@njit(cache=True, nogil=True)
def _along_blocks(tall: Any, small: Any, rows: int, turns: Any, made: Any) -> None:
    """made[block b] = tall[block b] @ small."""
    for block in lines_of(turns):
        first, end = block * rows, (block + 1) * rows
        np.dot(np.ascontiguousarray(tall[first:end]), small, made[first:end])
