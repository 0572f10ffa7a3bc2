"""Lines shared out among threads, as kernels do it: who is done takes the next run of them.

A helper that has nothing to do keeps looking for a call for a while before it goes to sleep, for to
wake a sleeper takes longer than many a sweep takes in all. It needs the interpreter's lock on its
way to its share: the caller calls, and waits for those still at work, from inside the kernel, where
nobody holds that lock.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from malocate.estimators.engine.atomics import add, read, swap, write

WAITING, CALLED, BUSY, ASLEEP = range(4)
"""States of a helper. The caller calls who is waiting or asleep; the helper does all the rest."""

APART = 16
"""Numbers from one helper's state to the next's: no two of them share a line of the cache."""

LOOKS = 60_000
"""Looks at states before giving up, which take some tenths of a millisecond."""

HANDED_OUT = 0.7
"""Share of what is left that is cut into a run for each thread, so that a slower one gets fewer."""

LAST_SHARE = 0.003
"""Share of all cells that is cut no further."""


class Turns(NamedTuple):
    """The runs of lines that a kernel's threads take in turn, and the states of its helpers.

    `runs` holds the number of runs that are taken, then where each begins and the last one ends.
    """

    runs: Any
    helpers: Any


@njit(cache=True, nogil=True)
def cut(indptr: Any, threads: int, least: float) -> Any:
    """Cut lines into runs, long ones first and ever shorter ones then, none of them empty.

    What is left is cut no further once it has no more than `least` cells.
    """
    cells, lines = indptr[-1], len(indptr) - 1
    runs, left = [0, 0], 1.0
    while left > 0.0:
        handed = left if left < LAST_SHARE or left * cells <= least else HANDED_OUT * left
        for turn in range(threads):
            end = np.searchsorted(indptr, (1.0 - left + handed * (turn + 1) / threads) * cells)
            if runs[-1] < end < lines:
                runs.append(end)
        left -= handed
    runs.append(lines)
    return np.array(runs)


@njit(cache=True, nogil=True, forceinline=True)
def call(helpers: Any) -> None:
    """Call the helpers who wait; who sleeps is not woken by it."""
    for place in range(0, len(helpers), APART):
        swap(helpers, place, WAITING, CALLED)


@njit(nogil=True)  # a generator that comes from the cache is of no use to a kernel that does not
def lines_of(turns: Turns) -> Any:
    """Give one thread's lines; the caller calls the helpers first, and waits for them at last."""
    call(turns.helpers)
    run = add(turns.runs, 0, 1) + 1
    while run + 1 < len(turns.runs):
        line, end = turns.runs[run], turns.runs[run + 1]
        while line < end:
            yield line
            line += 1
        run = add(turns.runs, 0, 1) + 1
    looks = LOOKS
    for place in range(0, len(turns.helpers), APART):
        while looks > 0 and read(turns.helpers, place) == BUSY:  # at its last run
            looks -= 1


@njit(cache=True, nogil=True)
def is_called(state: Any, looks: int) -> bool:
    """Wait for a call as a helper: true once it comes, false if sleep comes first."""
    write(state, 0, WAITING)
    for _ in range(looks):
        if read(state, 0) == CALLED:
            break
    else:
        if swap(state, 0, WAITING, ASLEEP):
            return False
    write(state, 0, BUSY)
    return True
