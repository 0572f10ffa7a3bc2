"""Work spread over threads, that of kernels above all: the same bits for any number of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from threading import Lock, Thread
from time import sleep
from typing import Any, TypeVar

import numba
import numpy as np
import numpy.typing as npt

from malocate.estimators.engine.turns import (
    APART,
    ASLEEP,
    BUSY,
    CALLED,
    LOOKS,
    Turns,
    call,
    cut,
    is_called,
)

Int64s = npt.NDArray[np.int64]
Work = Callable[[Turns], None]
Item = TypeVar("Item")
Result = TypeVar("Result")

WORTH_A_THREAD = 500_000
"""Multiply-adds below which a sweep is done sooner by one thread than handed out."""

FETCH = 16
"""Multiply-adds that take as long as to fetch one cell's line of the other side's factor."""

GLANCE = 5e-5
"""Seconds between looks at helpers that are long at their last run."""

NOBODY = np.empty(0, np.int64)
TEAMS: dict[tuple[int, int], _Team] = {}
"""By the number of helpers, and the process."""


def spread(work: Work, indptr: Int64s, cost: int) -> None:
    """Run `work(turns)` over all lines, in up to as many threads as `numba.get_num_threads`.

    Each line is worked on alone, so the result does not depend on the number of threads. `cost` is
    multiply-adds per cell.
    """
    worth = 1 + int(indptr[-1]) * max(cost, 1) // WORTH_A_THREAD
    if worth > 1 and (threads := min(_threads(), worth)) > 1:
        runs = cut(indptr, threads, indptr[-1] / worth)
        if _share(work, runs, threads):
            return
    work(Turns(np.array([0, 0, len(indptr) - 1]), NOBODY))


def in_threads(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """Do what `map` does, in as many threads as `spread`, for work that frees Python's own lock.

    >>> in_threads(abs, [-1, 2])
    [1, 2]
    """
    items = list(items)
    made: list[Any] = [None] * len(items)
    places = iter(range(len(items)))  # which gives each place to one thread

    def work(turns: Turns) -> None:
        call(turns.helpers)
        try:
            for place in places:
                made[place] = function(items[place])
        finally:
            list(places)  # after an error nobody goes on

    if (threads := min(_threads(), len(items))) <= 1 or not _share(work, np.zeros(1, int), threads):
        work(Turns(NOBODY, NOBODY))
    return made


def _share(work: Work, runs: Int64s, threads: int) -> bool:
    """Do the work with helpers; false if they are with somebody else."""
    return _team(_threads() - 1).share(work, runs, threads - 1)


def _threads() -> int:
    """Ask numba; of more threads than cores some would look for calls while others wait to work."""
    return min(int(numba.get_num_threads()), _cores())


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _team(helpers: int) -> _Team:
    """Keep one per process: a forked child inherits the object but not its threads."""
    which = helpers, os.getpid()
    return TEAMS.get(which) or TEAMS.setdefault(which, _Team(helpers))


class _Job:
    """Work that is shared, and what went wrong with a helper's part of it."""

    def __init__(self, work: Work, runs: Int64s) -> None:
        self.work, self.runs = work, runs
        self.error: BaseException | None = None

    def help(self) -> None:
        """Take part as a helper."""
        try:
            self.work(Turns(self.runs, NOBODY))
        except BaseException as error:  # noqa: BLE001  # it is handed on to the caller
            self.error = error


class _Team:
    """The helpers, who work for one caller at a time."""

    def __init__(self, helpers: int) -> None:
        self.queue: list[object] = []  # of callers, the first of whom has the helpers
        self.job: _Job | None = None
        self.states = np.full(helpers * APART, ASLEEP)
        self.helpers: list[_Helper] = []
        is_called(np.array([ASLEEP]), 0)  # compiled here: numba swaps sys.stdout while it compiles

    def share(self, work: Work, runs: Int64s, count: int) -> bool:
        """Do the work with so many helpers; false if they are with somebody else."""
        caller = object()
        try:
            self.queue.append(caller)  # an interrupt finds this done or not: a lock could be lost
            if self.queue[0] is not caller:
                return False
            self._do(_Job(work, runs), count)
        finally:
            if caller in self.queue:
                self.queue.remove(caller)
        return True

    def _do(self, job: _Job, count: int) -> None:
        self.job = job
        try:
            with suppress(RuntimeError):  # no more threads can be had: who is there does it
                for place in range(len(self.helpers), count):  # each begins when first wanted
                    self.helpers.append(_Helper(self, self.states[place * APART :]))
            for helper in self.helpers[:count]:
                helper.wake()
            job.work(Turns(job.runs, self.states[: count * APART]))
        finally:
            job.runs[0] = len(job.runs)  # who comes late finds nothing left
            while BUSY in self.states[::APART]:
                sleep(GLANCE)
            self.job = None
        error, job.error = job.error, None  # which leads back to the job, and to its arrays
        if error is not None:
            raise error


class _Helper(Thread):
    """A thread that takes part in the team's job whenever it is called."""

    def __init__(self, team: _Team, state: Int64s) -> None:
        super().__init__(name=f"malocate-{os.getpid()}", daemon=True)
        self.team, self.state, self.alarm = team, state, Lock()
        self.alarm.acquire()
        self.start()

    def wake(self) -> None:
        if self.state[0] == ASLEEP:
            self.state[0] = CALLED
            self.alarm.release()

    def run(self) -> None:
        self._sleep()
        while True:
            self._help()
            if not is_called(self.state, LOOKS):
                self._sleep()

    def _sleep(self) -> None:
        self.alarm.acquire()
        self.state[0] = BUSY

    def _help(self) -> None:
        if (job := self.team.job) is not None:
            job.help()
