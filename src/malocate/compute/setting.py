"""`Compute`, the setting, and how tasks are handed out by it."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar
from warnings import catch_warnings, simplefilter

from malocate.compute.cluster import await_worker, check_address, connected, on_cluster
from malocate.compute.task import INSIDE, Wrong, alone, lost
from malocate.errors import ComputeError, InvalidInput
from malocate.problem.settings import check_count, check_word

Result = TypeVar("Result")
Task = TypeVar("Task")

TRIES = 5
"""How often work is handed out again while workers die and nothing comes back."""


@dataclass(frozen=True)
class Compute:
    """Where fits and runs are done, and how many at a time; it changes no result.

    - `jobs`: how many at a time, -1 for one on each core. By default it is as joblib's
      `parallel_config` says around the call, and one at a time where that says nothing.
    - `by`: whether jobs on this machine are "processes" or "threads".
    - `dask`: the address of a Dask scheduler, such as "tcp://10.0.0.7:8786"; all its workers help.

    Inside of a task there is one job at a time, whatever is set: tasks of tasks are done in place.

    >>> Compute(jobs=2, by="threads").map(abs, [-3, 2, -1])
    [3, 2, 1]
    """

    jobs: int | None = None
    by: Literal["processes", "threads"] = "processes"
    dask: str | None = None

    def __post_init__(self) -> None:
        if self.jobs is not None and self.jobs != -1:
            check_count("jobs", self.jobs, instead="-1 for all cores")
        check_word("by", self.by, ("processes", "threads"))
        if self.dask is not None:
            check_address(self.dask)
            if self.jobs is not None:
                raise InvalidInput(
                    f"jobs is {self.jobs} and dask is {self.dask!r}; give one of them: a cluster "
                    "has as many jobs at a time as its workers have threads."
                )

    def map(self, function: Callable[[Task], Result], tasks: Iterable[Task]) -> list[Result]:
        """Give the results of all tasks, in their order.

        What a `partial` has bound goes to each worker of a cluster once, and not with every task.
        """
        return list(self.each(function, tasks))

    def each(
        self, function: Callable[[Task], Result], tasks: Iterable[Task], *, ordered: bool = True
    ) -> Generator[Result]:
        """Give the results one by one: in the order of the tasks, or as a cluster has done them.

        Close it, if you may stop before its end: what was not yet done is then not done.
        """
        waiting = dict(enumerate(tasks))
        places = list(waiting)
        with closing(self._done(function, waiting)) as done:  # at once, whoever keeps an error
            for _, result in _in_order(done, places) if ordered else done:
                if isinstance(result, Wrong):
                    raise result.problem
                yield result

    def _done(
        self, function: Callable[[Task], Result], waiting: dict[int, Task]
    ) -> Generator[tuple[int, Result | Wrong]]:
        """Give results by their places as they are done; what a dead worker had is done again."""
        client = self._client()
        if client is None and (len(waiting) < 2 or self.workers == 1):
            yield from ((place, function(task)) for place, task in waiting.items())
            return
        failures = 0
        while waiting:
            try:
                with closing(self._handed_out(function, waiting, client)) as done:
                    for place, result in done:
                        del waiting[place]
                        failures = 0
                        yield place, result
            except lost(on_cluster=client is not None) as problem:
                failures += 1
                if failures == TRIES:
                    raise ComputeError(
                        f"{len(waiting):,} tasks were handed out {TRIES} times, and each time a "
                        f"worker died ({type(problem).__name__}). Perhaps its memory is too small; "
                        "give each worker more, or take fewer jobs at a time."
                    ) from problem
                client = self._client()
                await_worker(client)

    @property
    def workers(self) -> int:
        """How many tasks are done at a time."""
        from joblib import effective_n_jobs

        if INSIDE.get():
            return 1
        client = self._client()
        if client is not None:
            return max(1, int(sum(client.ncores().values())))
        return int(effective_n_jobs(self.jobs))

    def _handed_out(
        self,
        function: Callable[[Task], Result],
        waiting: dict[int, Task],
        client: Any,
    ) -> Generator[tuple[int, Result | Wrong]]:
        bare, bound = _unbound(function)
        if client is not None:
            return on_cluster(client, bare, bound, waiting)
        return self._beside(bare, bound, waiting)

    def _beside(
        self,
        function: Callable[..., Result],
        bound: tuple[Any, ...],
        waiting: dict[int, Task],
    ) -> Generator[tuple[int, Result | Wrong]]:
        """Do tasks in threads or processes of this machine."""
        from joblib import Parallel, delayed, parallel_config

        settings: AbstractContextManager[Any] = nullcontext()  # joblib's own settings count
        if self.jobs is not None:
            kind = "loky" if self.by == "processes" else "threading"
            settings = parallel_config(kind, n_jobs=self.jobs)
        with settings:
            parallel = Parallel(return_as="generator")  # unordered, it can miss a death
        calls = (delayed(alone)(function, *each, bound) for each in waiting.items())
        done: Generator[tuple[int, Result | Wrong]] = parallel(list(calls))
        try:
            for each in done:  # noqa: UP028  # `yield from` would close it before we are asked
                yield each
        finally:
            with catch_warnings():  # that work was done which nobody wants: we know
                simplefilter("ignore", UserWarning)
                done.close()

    def _client(self) -> Any:
        """Give the connection to the cluster that is set here or around the call, if any is."""
        if INSIDE.get():
            return None
        if self.dask is not None:
            return connected(self.dask)
        if self.jobs is not None:
            return None
        from joblib.parallel import get_active_backend

        backend, _ = get_active_backend()
        return getattr(backend, "client", None)


def _unbound(function: Callable[..., Any]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Give a function and what a partial had bound to it, which all its calls share."""
    if isinstance(function, partial) and not function.keywords:
        return function.func, function.args
    return function, ()


def _in_order(
    done: Iterable[tuple[int, Result]], places: list[int]
) -> Iterator[tuple[int, Result]]:
    """Give results in the order of their places, as soon as those before them are there."""
    early: dict[int, Result] = {}
    following = iter(places)
    place = next(following, None)
    for found, result in done:
        early[found] = result
        while place is not None and place in early:
            yield place, early.pop(place)
            place = next(following, None)
