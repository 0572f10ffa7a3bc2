"""Where repeated work is done: here, in threads or processes beside it, or on a Dask cluster.

Fits of folds and segments, runs of an experiment, twins of a plan: all of them go through
`Compute`, and come back with the same bits from wherever they were done, given one kind of
processor and one set of library versions. A task has one thread to itself, so that many tasks
never fight over cores. A worker that dies takes nothing with it: what it had not handed back is
done again by others.
"""

from __future__ import annotations

import os
import pickle
import traceback
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from queue import Empty, Queue
from typing import Any, Literal, TypeVar

from malocate.errors import ComputeError, InvalidInput, InvalidType, MissingDependency
from malocate.problem.settings import check_count, check_word

Result = TypeVar("Result")
Task = TypeVar("Task")

TRIES = 5
"""How often work is handed out again while workers die and nothing comes back."""

PATIENCE = 30.0
"""Seconds to wait for a scheduler, and for its workers where it has none."""


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
            _check_address(self.dask)
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
    ) -> Iterator[Result]:
        """Give the results one by one: in the order of the tasks, or as a cluster has done them."""
        waiting = dict(enumerate(tasks))
        places = list(waiting)
        done = self._done(function, waiting)
        for _, result in _in_order(done, places) if ordered else done:
            if isinstance(result, _Wrong):
                raise result.problem
            yield result

    def _done(
        self, function: Callable[[Task], Result], waiting: dict[int, Task]
    ) -> Iterator[tuple[int, Result | _Wrong]]:
        """Give results by their places as they are done; what a dead worker had is done again."""
        client = self._client()
        if client is None and (len(waiting) < 2 or self.workers == 1):
            yield from ((place, function(task)) for place, task in waiting.items())
            return
        failures = 0
        while waiting:
            try:
                for place, result in self._handed_out(function, waiting, client):
                    del waiting[place]
                    failures = 0
                    yield place, result
            except _lost(on_cluster=client is not None) as problem:
                failures += 1
                if failures == TRIES:
                    raise ComputeError(
                        f"{len(waiting):,} tasks were handed out {TRIES} times, and each time a "
                        f"worker died ({type(problem).__name__}). Perhaps its memory is too small; "
                        "give each worker more, or take fewer jobs at a time."
                    ) from problem
                client = self._client()
                _await_worker(client)

    @property
    def workers(self) -> int:
        """How many tasks are done at a time."""
        from joblib import effective_n_jobs

        if _INSIDE.get():
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
    ) -> Iterator[tuple[int, Result | _Wrong]]:
        bare, bound = _unbound(function)
        if client is not None:
            return _on_cluster(client, bare, bound, waiting)
        return self._beside(bare, bound, waiting)

    def _beside(
        self,
        function: Callable[..., Result],
        bound: tuple[Any, ...],
        waiting: dict[int, Task],
    ) -> Iterator[tuple[int, Result | _Wrong]]:
        """Do tasks in threads or processes of this machine."""
        from joblib import Parallel, delayed, parallel_config

        settings: AbstractContextManager[Any] = nullcontext()  # joblib's own settings count
        if self.jobs is not None:
            kind = "loky" if self.by == "processes" else "threading"
            settings = parallel_config(kind, n_jobs=self.jobs)
        with settings:
            parallel = Parallel(return_as="generator")  # unordered, it can miss a death
        calls = (delayed(_alone)(function, *each, bound) for each in waiting.items())
        done: Iterator[tuple[int, Result | _Wrong]] = parallel(list(calls))
        return done

    def _client(self) -> Any:
        """Give the connection to the cluster that is set here or around the call, if any is."""
        if _INSIDE.get():
            return None
        if self.dask is not None:
            return _connected(self.dask)
        if self.jobs is not None:
            return None
        from joblib.parallel import get_active_backend

        backend, _ = get_active_backend()
        return getattr(backend, "client", None)


def _check_address(address: Any) -> None:
    if not isinstance(address, str):
        raise InvalidType(f"dask is {address!r}; it must be an address, tcp://host:8786.")
    scheme, separator, host = address.partition("://")
    if not (scheme and separator and host):
        raise InvalidInput(f"dask is {address!r}; it must be an address, tcp://host:8786.")


def _unbound(function: Callable[..., Any]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Give a function and what a partial had bound to it, which all its calls share."""
    if isinstance(function, partial) and not function.keywords:
        return function.func, function.args
    return function, ()


def _on_cluster(
    client: Any, function: Callable[..., Result], bound: tuple[Any, ...], waiting: dict[int, Task]
) -> Iterator[tuple[int, Result | _Wrong]]:
    """Do tasks on a cluster, which keeps nothing of them, also when we stop in the middle.

    What they share is the result of a task that the scheduler knows: workers pass it on to each
    other, and if all that had it die, the scheduler has it made again. Data that are merely
    scattered would be lost.
    """
    from cloudpickle import dumps  # type: ignore[import-untyped]  # of a notebook's classes, too
    from dask import config

    with config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
        shared = client.submit(_Held(dumps(bound, protocol=5)), pure=False)
        futures = [
            client.submit(_alone, function, *each, shared, pure=False) for each in waiting.items()
        ]
    done: Queue[Any] = Queue()
    for future in futures:
        future.add_done_callback(done.put)
    try:
        for _ in futures:
            future = _next(done, client)
            yield future.result()  # fetched at once, and so not lost
            future.release()
    finally:
        for future in (*futures, shared):  # a callback that waits would hold it for ever
            future.release()


def _next(done: Queue[Any], client: Any) -> Any:
    """Give the next future that is done; give up where there has been no worker for a while."""
    waited = 0.0
    while True:
        try:
            return done.get(timeout=1.0)
        except Empty:
            waited = 0.0 if client.ncores() else waited + 1.0
            if waited >= PATIENCE:
                raise ComputeError(
                    f"The Dask cluster at {client.scheduler.address} has had no worker for "
                    f"{PATIENCE:g} seconds; start one with `dask worker`."
                ) from None


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


@dataclass(frozen=True)
class _Held:
    """Gives what was pickled into it."""

    pickled: bytes

    def __call__(self) -> tuple[Any, ...]:
        bound: tuple[Any, ...] = pickle.loads(self.pickled)  # noqa: S301  # it is our own
        return bound


@dataclass(frozen=True)
class _Wrong:
    """A task's own error, of a kind that would else be taken for the death of its worker."""

    problem: BaseException


_INSIDE: ContextVar[bool] = ContextVar("_INSIDE", default=False)
"""Whether this is a task: one that handed out others and waited could wait for ever."""


def _alone(
    function: Callable[..., Result], place: int, task: Any, bound: tuple[Any, ...]
) -> tuple[int, Result | _Wrong]:
    """Do one task in one thread, whatever it would spread over on its own."""
    from joblib import parallel_config

    from malocate.estimators.engine.threads import pinned

    with parallel_config("sequential"), pinned(), _one_thread(), _inside():
        try:
            return place, function(*bound, task)
        except _lost() as problem:
            problem.add_note(traceback.format_exc())  # it does not travel with it
            return place, _Wrong(problem)


@contextmanager
def _inside() -> Iterator[None]:
    before = _INSIDE.set(True)
    try:
        yield
    finally:
        _INSIDE.reset(before)


@contextmanager
def _one_thread() -> Iterator[None]:
    from numba import get_num_threads, set_num_threads

    before = get_num_threads()
    set_num_threads(1)
    try:
        yield
    finally:
        set_num_threads(before)


def _lost(on_cluster: bool = True) -> tuple[type[BaseException], ...]:
    """Give the errors by which a worker or a connection is lost; of a task, they are `_Wrong`."""
    kinds = CancelledError, BrokenExecutor
    if not on_cluster:
        return kinds
    try:
        from distributed import KilledWorker
        from distributed.client import ClosedClientError
    except ImportError:
        return *kinds, OSError
    return *kinds, OSError, KilledWorker, ClosedClientError


def _await_worker(client: Any) -> None:
    """Wait until a cluster has a worker again, for a while; without one, handing out will fail."""
    if client is not None:
        with suppress(TimeoutError):
            client.wait_for_workers(1, timeout=PATIENCE)


_CLIENTS: dict[tuple[str, int], Any] = {}
"""Connections to schedulers by address and process: a forked child has none of its parent's."""


def _connected(address: str) -> Any:
    """Give the connection to a scheduler, opened anew where it was lost."""
    key = address, os.getpid()
    if key in _CLIENTS and _CLIENTS[key].status == "running":
        return _CLIENTS[key]
    try:
        from distributed import Client
    except ImportError:
        raise MissingDependency(
            "A Dask cluster needs the package distributed; pip install 'malocate[dask]'."
        ) from None
    try:
        client: Any = Client(address, set_as_default=False, timeout=PATIENCE)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, TypeError, ImportError) as problem:
        raise ComputeError(
            f"No Dask scheduler answers at {address} ({problem}); start one with `dask scheduler`, "
            "or name another address."
        ) from problem
    _check_versions(client)
    _CLIENTS[key] = client
    return client


def _check_versions(client: Any) -> None:
    """Refuse a cluster whose scheduler or workers lack our version, which decides to the bit."""
    told = client.get_versions(packages=["malocate"])
    ours = told["client"]["packages"]["malocate"]
    members = {client.scheduler.address: told["scheduler"]} | told["workers"]
    for address, member in members.items():
        theirs = member["packages"]["malocate"]
        if theirs != ours:
            client.close()
            has = f"malocate {theirs}" if theirs else "no malocate"
            raise ComputeError(
                f"{address} of the Dask cluster has {has}, and this is malocate {ours}; install "
                f"malocate=={ours} for the scheduler and for all workers."
            )


def forget(address: str) -> None:
    """Close the connection to a scheduler, if there is one."""
    client = _CLIENTS.pop((address, os.getpid()), None)
    if client is not None:
        client.close()
