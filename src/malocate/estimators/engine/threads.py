"""Threads inside a fit: BLAS pinned to one, our own kernels spread over lines."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from itertools import pairwise
from threading import Lock

import numpy as np
import numpy.typing as npt
from threadpoolctl import ThreadpoolController

WORTH_A_THREAD = 4_000_000
"""Multiply-adds below which a sweep is done sooner by one thread than handed out."""

FETCH = 16
"""Multiply-adds that take as long as to fetch one cell's line of the other side's factor."""

HANDED_OUT = 0.7
"""Share of what is left that is cut into a run for each thread, so that a slower one gets fewer."""

LAST_SHARE = 0.003
"""Share of a sweep that is cut no further."""


@cache
def _controller() -> ThreadpoolController:
    import_module("scipy.linalg")  # its BLAS is a library of its own, found only when loaded
    return ThreadpoolController()


class _Pin:
    """BLAS at one thread for as long as somebody holds it.

    The number is the whole process's: the first to come sets it, and the last to go sets it back.
    """

    def __init__(self) -> None:
        self._lock, self._holders = Lock(), 0

    def hold(self) -> None:
        with self._lock:
            if self._holders == 0:
                self._limit = _controller().limit(limits=1, user_api="blas")
            self._holders += 1

    def let_go(self) -> None:
        with self._lock:
            self._holders -= 1
            if self._holders == 0:
                self._limit.restore_original_limits()


@cache
def _pin(_process: int) -> _Pin:
    """Keep one per process: a forked child inherits a lock, but not who would open it."""
    return _Pin()


@contextmanager
def pinned() -> Iterator[None]:
    """Keep BLAS at one thread: its own threads slow small factorisations a hundredfold."""
    pin = _pin(os.getpid())
    pin.hold()
    try:
        yield
    finally:
        pin.let_go()


def _threads() -> int:
    from numba import get_num_threads

    return int(get_num_threads())


@cache
def _pool(threads: int, process: int) -> ThreadPoolExecutor:
    """Keep one pool per process: a forked child inherits the object but not its threads."""
    return ThreadPoolExecutor(threads, thread_name_prefix=f"malocate-{process}")


def spread(work: Callable[[int, int], None], indptr: npt.NDArray[np.int64], cost: int) -> None:
    """Run `work(first, last)` over all lines, in as many threads as `numba.get_num_threads`.

    Lines are cut into long runs first and ever shorter ones then. Each line is worked on alone,
    so the result does not depend on the number of threads. `cost` is multiply-adds per cell.
    """
    lines, cells = len(indptr) - 1, int(indptr[-1])
    threads = 1 if cells * cost < WORTH_A_THREAD else _threads()
    if threads == 1:
        work(0, lines)
        return
    cuts = np.searchsorted(indptr, _shares(cells, cells * cost, threads)).tolist()
    cuts[0], cuts[-1] = 0, lines
    runs = iter([(a, b) for a, b in pairwise(cuts) if a < b])

    def take_turns() -> None:
        for first, last in runs:  # one iterator for all: who is done sooner takes more
            work(first, last)

    pool = _pool(threads - 1, os.getpid())
    waiting = [pool.submit(take_turns) for _ in range(threads - 1)]
    take_turns()
    for job in waiting:
        job.result()


def _shares(cells: int, cost: int, threads: int) -> list[float]:
    """Give the numbers of cells after which a run ends."""
    shares, left = [0.0], 1.0
    while left > 0.0:
        few = left < LAST_SHARE or left * cost <= WORTH_A_THREAD
        handed = left if few else HANDED_OUT * left
        shares += [1 - left + handed * (turn + 1) / threads for turn in range(threads)]
        left -= handed
    return [share * cells for share in shares]
