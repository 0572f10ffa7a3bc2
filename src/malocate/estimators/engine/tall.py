"""Products of tall matrices, by blocks of rows over threads; the same bits for any number."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from malocate.estimators.engine.threads import spread

Floats = npt.NDArray[np.float64]

ROWS = 512
"""Rows of a block: few enough to stay in the cache, and the same however many threads there are."""


def across(left: Floats, right: Floats) -> Floats:
    """Give ``left.T @ right`` of two tall matrices.

    >>> tall = np.ones((3000, 2))
    >>> across(tall, tall).tolist()
    [[3000.0, 3000.0], [3000.0, 3000.0]]
    """
    if len(left) <= ROWS:
        return left.T @ right
    parts = np.empty((-(-len(left) // ROWS), left.shape[1], right.shape[1]))

    def work(block: int, rows: slice) -> None:
        np.matmul(left[rows].T, right[rows], out=parts[block])

    _by_blocks(work, len(left), left.shape[1] * right.shape[1])
    return np.asarray(parts.sum(axis=0))


def along(tall: Floats, small: Floats) -> Floats:
    """Give ``tall @ small``.

    >>> along(np.ones((3000, 2)), np.ones((2, 1))).sum().item()
    6000.0
    """
    if len(tall) <= ROWS:
        return tall @ small
    made = np.empty((len(tall), small.shape[1]))

    def work(_: int, rows: slice) -> None:
        np.matmul(tall[rows], small, out=made[rows])

    _by_blocks(work, len(tall), small.size)
    return made


def _by_blocks(work: Callable[[int, slice], None], rows: int, cost: int) -> None:
    """Run `work` on every block and its rows, in several threads where that is sooner."""
    starts = np.append(np.arange(0, rows, ROWS), rows)

    def run(first: int, last: int) -> None:
        for block in range(first, last):
            work(block, slice(starts[block], starts[block + 1]))

    spread(run, starts, cost)
