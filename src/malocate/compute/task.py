"""Tasks: each done in one thread, and knowing that it is one; bundles of them on a cluster."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from ctypes import CDLL
from dataclasses import dataclass
from functools import cache
from platform import libc_ver
from typing import Any, TypeVar

Result = TypeVar("Result")


@dataclass(frozen=True)
class Wrong:
    """A task's own error, of a kind that would else be taken for the death of its worker."""

    problem: BaseException


INSIDE: ContextVar[bool] = ContextVar("INSIDE", default=False)
"""Whether this is a task: one that handed out others and waited could wait for ever."""


def alone(
    function: Callable[..., Result], place: int, task: Any, bound: tuple[Any, ...]
) -> tuple[int, Result | Wrong]:
    """Do one task in one thread, whatever it would spread over on its own."""
    from joblib import parallel_config

    from malocate.estimators.engine.blas import pinned

    with parallel_config("sequential"), pinned(), _one_thread(), _inside():
        try:
            return place, function(*bound, task)
        except lost() as problem:
            problem.add_note(traceback.format_exc())  # it does not travel with it
            return place, Wrong(problem)


DASKS_OWN = "65536"
"""The bytes of free memory from which Dask has its workers give it back, if nobody says else."""

TRIM, MAP = -1, -3
"""The names of two settings in C: `mallopt`'s M_TRIM_THRESHOLD and M_MMAP_THRESHOLD."""


@cache
def _keep_memory() -> None:
    """Have a worker keep up to 64 MB of the memory that one fit gives back and the next asks for.

    That is what glibc comes to by itself, but not once its threshold was set, as Dask does: a fit
    of 400 × 400 then had to ask for 6,000 pages anew.
    """
    if os.environ.get("MALLOC_TRIM_THRESHOLD_") == DASKS_OWN and libc_ver()[0] == "glibc":
        allocator = CDLL(None)
        allocator.mallopt(MAP, 2**25)
        allocator.mallopt(TRIM, 2**26)


def together(
    function: Callable[..., Result], tasks: list[tuple[int, Any]], bound: tuple[Any, ...]
) -> list[tuple[int, Result | Wrong]]:
    """Do tasks one after the other, up to the first with an error; those before it are done."""
    _keep_memory()
    done: list[tuple[int, Result | Wrong]] = []
    for place, task in tasks:
        try:
            done.append(alone(function, place, task, bound))
        except Exception as problem:
            if not done or not _travels(problem):
                raise
            problem.add_note(traceback.format_exc())
            return [*done, (place, Wrong(problem))]
    return done


def _travels(problem: Exception) -> bool:
    """Tell whether an error can be sent as it is; of others, Dask sends the words."""
    from cloudpickle import dumps

    with suppress(Exception):
        dumps(problem)
        return True
    return False


@contextmanager
def _inside() -> Iterator[None]:
    before = INSIDE.set(True)
    try:
        yield
    finally:
        INSIDE.reset(before)


@contextmanager
def _one_thread() -> Iterator[None]:
    from numba import get_num_threads, set_num_threads

    before = get_num_threads()
    set_num_threads(1)
    try:
        yield
    finally:
        set_num_threads(before)


def lost(on_cluster: bool = True) -> tuple[type[BaseException], ...]:
    """Give the errors by which a worker or a connection is lost; of a task, they are `Wrong`."""
    kinds = CancelledError, BrokenExecutor
    if not on_cluster:
        return kinds
    try:
        from distributed import KilledWorker
        from distributed.client import ClosedClientError
    except ImportError:
        return *kinds, OSError
    return *kinds, OSError, KilledWorker, ClosedClientError
