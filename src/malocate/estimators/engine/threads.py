"""Threads inside a fit: BLAS pinned to one, our own kernels spread over lines."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from numba import get_num_threads
from threadpoolctl import ThreadpoolController

WORTH_A_THREAD = 2_000_000
"""Multiply-adds below which a sweep is done sooner by one thread than handed out."""


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def pinned() -> Iterator[None]:
    """Keep BLAS at one thread: its own threads slow small factorisations a hundredfold."""
    with _controller().limit(limits=1, user_api="blas"):
        yield


@cache
def _pool(threads: int, process: int) -> ThreadPoolExecutor:
    """Keep one pool per process: a forked child inherits the object but not its threads."""
    return ThreadPoolExecutor(threads, thread_name_prefix=f"malocate-{process}")


def spread(work: Callable[[int, int], None], indptr: npt.NDArray[np.int64], cost: int) -> None:
    """Run `work(first, last)` over all lines, in as many threads as `numba.get_num_threads`.

    Lines are cut into runs of about equal numbers of cells. Each line is worked on alone, so
    the result does not depend on the number of threads. `cost` is multiply-adds per cell.
    """
    lines, cells = len(indptr) - 1, int(indptr[-1])
    threads = get_num_threads()
    if threads == 1 or cells * cost < WORTH_A_THREAD:
        work(0, lines)
        return
    shares = np.linspace(0, cells, threads + 1)
    cuts = np.searchsorted(indptr, shares)
    cuts[0], cuts[-1] = 0, lines
    runs = [(int(a), int(b)) for a, b in pairwise(cuts) if a < b]
    waiting = [_pool(threads - 1, os.getpid()).submit(work, *run) for run in runs[1:]]
    work(*runs[0])
    for job in waiting:
        job.result()
