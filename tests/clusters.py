"""Real Dask clusters for tests: a scheduler and worker processes on this machine."""

from __future__ import annotations

import logging
import os
import random
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from malocate import Compute
from malocate.compute import forget


@contextmanager
def cluster(workers: int = 2) -> Iterator[Any]:
    """Give a cluster whose workers are processes of one thread each; its chatter is not shown."""
    from distributed import LocalCluster

    here = str(Path(__file__).parent)
    before = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [here, before]))  # tests' own modules
    try:
        with LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        ) as made:
            yield made
            forget(made.scheduler_address)
    finally:
        os.environ["PYTHONPATH"] = before


def compute_on(made: Any) -> Compute:
    """Give the setting that has a cluster do the work."""
    return Compute(dask=made.scheduler_address)


class Killer(threading.Thread):
    """Kills workers at random times, one or all, until there were so many deaths.

    It waits for those that nannies start anew, or else a slow machine would never have a worker.
    """

    def __init__(self, made: Any, within: float, deaths: int, seed: int = 0) -> None:
        super().__init__(daemon=True)
        self._made, self._within, self._random = made, within, random.Random(seed)
        self._deaths = deaths
        self.over, self.killed = threading.Event(), 0

    def run(self) -> None:
        count = len(self._made.workers)
        while self.killed < self._deaths:
            if self.over.wait(self._random.uniform(0, self._within)):
                return
            known = self._made.scheduler.workers
            nannies = [each for each in self._made.workers.values() if each.worker_address in known]
            if len(nannies) < count:
                continue
            for nanny in self._random.sample(nannies, self._random.randint(1, count)):
                with suppress(ProcessLookupError):
                    os.kill(nanny.pid, signal.SIGKILL)
                    self.killed += 1
            self.over.wait(0.5)  # until the scheduler has noticed

    def __enter__(self) -> Killer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.join()
