"""A Dask cluster: the connection to it, and tasks that its workers do."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib.util import find_spec
from queue import Empty, Queue
from typing import Any, TypeVar

from malocate.compute.task import Wrong, together
from malocate.errors import ComputeError, InvalidInput, InvalidType, MissingDependency

Result = TypeVar("Result")
Task = TypeVar("Task")

PATIENCE = 30.0
"""Seconds to wait for a scheduler, and for its workers where it has none."""

FETCHING = 300.0
"""Seconds to wait for results that are done: their worker may have died meanwhile."""

MOST_FETCHED = 8
"""Bundles that are fetched together, at most: they are held here all at once."""

BUNDLES, MOST_BUNDLED = 8, 16
"""Bundles for each worker's thread, where there are as many tasks, and tasks of one at most.

To hand out a bundle costs as much as to hand out one task. Slower workers take fewer bundles.
"""


def check_address(address: Any) -> None:
    """Refuse what is no address of a scheduler."""
    if not isinstance(address, str):
        raise InvalidType(f"dask is {address!r}; it must be an address, tcp://host:8786.")
    scheme, separator, host = address.partition("://")
    if not (scheme and separator and host):
        raise InvalidInput(f"dask is {address!r}; it must be an address, tcp://host:8786.")


def on_cluster(
    client: Any, function: Callable[..., Result], bound: tuple[Any, ...], waiting: dict[int, Task]
) -> Generator[tuple[int, Result | Wrong]]:
    """Do tasks on a cluster, which keeps nothing of them, also when we stop in the middle.

    What they share is the result of a task that the scheduler knows: workers pass it on to each
    other, and if all that had it die, the scheduler has it made again. Data that are merely
    scattered would be lost.
    """
    from cloudpickle import dumps  # of a notebook's classes, too
    from dask import config

    with config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
        shared = client.submit(_Held(dumps(bound, protocol=5)), pure=False)
        task = partial(together, function)
        futures = client.map(task, _bundles(client, waiting), bound=shared, pure=False)
    done: Queue[Any] = Queue()
    for future in futures:
        future.add_done_callback(done.put)
    left = len(futures)
    try:
        while left:
            some = _done_by_now(done, client)
            for bundle in _fetched(some, client):  # at once, and so not lost
                yield from bundle
            left -= len(some)
            for future in some:
                future.release()
    finally:
        for future in (*futures, shared):  # a callback that waits would hold it for ever
            future.release()


def _bundles(client: Any, waiting: dict[int, Task]) -> list[list[tuple[int, Task]]]:
    """Cut tasks into bundles of equal size, but for the last."""
    threads = max(1, int(sum(client.ncores().values())))
    size = min(MOST_BUNDLED, max(1, len(waiting) // (BUNDLES * threads)))
    tasks = list(waiting.items())
    return [tasks[first : first + size] for first in range(0, len(tasks), size)]


def _done_by_now(done: Queue[Any], client: Any) -> list[Any]:
    """Wait for a future that is done, and give all that are: fetched together, they cost less."""
    some = [_next(done, client)]
    with suppress(Empty):
        while len(some) < MOST_FETCHED:
            some.append(done.get_nowait())
    return some


def _fetched(some: list[Any], client: Any) -> Iterator[Any]:
    """Give the results of futures that are done, and only then raise what one of them has."""
    finished = [future for future in some if future.status == "finished"]
    if finished:
        fetch = partial(client.gather, asynchronous=True)
        yield from client.sync(fetch, finished, callback_timeout=FETCHING)
    for future in some:
        if future not in finished:
            yield future.result(timeout=FETCHING)


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


@dataclass(frozen=True)
class _Held:
    """Gives what was pickled into it."""

    pickled: bytes

    def __call__(self) -> tuple[Any, ...]:
        bound: tuple[Any, ...] = pickle.loads(self.pickled)  # noqa: S301  # it is our own
        return bound


def await_worker(client: Any) -> None:
    """Wait until a cluster has a worker again, for a while; without one, handing out will fail."""
    if client is not None:
        with suppress(OSError):  # a timeout among them
            client.wait_for_workers(1, timeout=PATIENCE)


_CLIENTS: dict[tuple[str, int], Any] = {}
"""Connections to schedulers by address and process: a forked child has none of its parent's."""


def connected(address: str) -> Any:
    """Give the connection to a scheduler, opened anew where it was lost."""
    key = address, os.getpid()
    if key in _CLIENTS and _CLIENTS[key].status == "running":
        return _CLIENTS[key]
    check_installed()
    forget(address)
    try:
        client = _client(address)
    except (OSError, ValueError, TypeError, ImportError) as problem:
        raise ComputeError(
            f"No Dask scheduler answers at {address} ({problem}); start one with `dask scheduler`, "
            "or name another address."
        ) from problem
    _CLIENTS[key] = client
    return client


def check_installed() -> None:
    """Refuse a cluster where its package is missing."""
    if find_spec("distributed") is None:
        raise MissingDependency(
            "A Dask cluster needs the package distributed; pip install 'malocate[dask]'."
        )


def _client(address: str) -> Any:
    from distributed import Client

    settings = {"set_as_default": False, "timeout": PATIENCE, "loop": _loop(os.getpid())}
    client: Any = Client(address, **settings)  # type: ignore[no-untyped-call]
    try:
        _check_versions(client)
    except BaseException:
        _close(client)
        raise
    return client


@cache
def _loop(_process: int) -> Any:
    """Give the loop of all connections: one of its own would outlive each that fails."""
    from distributed.utils import LoopRunner

    runner = LoopRunner()
    runner.start()  # type: ignore[no-untyped-call]
    return runner.loop


def _check_versions(client: Any) -> None:
    """Refuse a cluster whose scheduler or workers lack our version, which decides to the bit."""
    told = client.get_versions(packages=["malocate"])
    ours = told["client"]["packages"]["malocate"]
    members = {client.scheduler.address: told["scheduler"]} | told["workers"]
    for address, member in members.items():
        theirs = member["packages"]["malocate"]
        if theirs != ours:
            has = f"malocate {theirs}" if theirs else "no malocate"
            raise ComputeError(
                f"{address} of the Dask cluster has {has}, and this is malocate {ours}; install "
                f"malocate=={ours} for the scheduler and for all workers."
            )


def forget(address: str) -> None:
    """Close the connection to a scheduler, if there is one."""
    client = _CLIENTS.pop((address, os.getpid()), None)
    if client is not None:
        _close(client)


def _close(client: Any) -> None:
    with suppress(OSError):  # its scheduler is gone
        client.close()
