"""What tests hand out to workers: functions that a process elsewhere can import."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from typing import Any

import numpy as np

from malocate import Compute


def double(task: int) -> int:
    return 2 * task


def with_bound(bound: Any, task: int) -> tuple[int, int]:
    return len(bound), task


def threads(_: int) -> tuple[int, list[int], int]:
    """Give the threads of our kernels and of BLAS, and the jobs that a task of a task gets."""
    from joblib import effective_n_jobs
    from numba import get_num_threads
    from threadpoolctl import threadpool_info

    blas = [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]
    return get_num_threads(), blas, effective_n_jobs(None)


def slow(seconds: float, task: int) -> int:
    time.sleep(seconds)
    return task


def dies_once(mark: str, task: int) -> int:
    """Kill the worker that does the third task, the first time."""
    if task == 3 and not Path(mark).exists():
        Path(mark).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return task


def always_dies(task: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return task


def fails(task: int) -> int:
    if task == 2:
        raise ValueError("task 2 is wrong")
    return task


def fails_with_a_lock(task: int) -> int:
    """Fail with an error that cannot be pickled."""
    if task == 2:
        problem = ValueError("task 2 is locked")
        problem.lock = threading.Lock()
        raise problem
    return task


def fails_slowly(task: int) -> int:
    time.sleep(0.3 if task == 2 else 0.0)
    return fails(task)


def late(task: int) -> int:
    if task == 2:
        raise TimeoutError("task 2 was late")
    return task


def noted(folder: str, task: int) -> int:
    """Take a while, and leave a note of having been done."""
    time.sleep(0.2)
    (Path(folder) / str(task)).touch()
    return task


def faults(_: int) -> int:
    """Ask for four megabytes and give them back, ten times; count the pages that had to come."""
    before = getrusage(RUSAGE_SELF).ru_minflt
    for _ in range(10):
        np.ones(500_000)
    return getrusage(RUSAGE_SELF).ru_minflt - before


def handed_on(compute: Compute, task: int) -> list[int]:
    """Hand out tasks from inside of a task."""
    return compute.map(double, [task, task + 1])


class Counted:
    """Counts how often it is unpickled, in a file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __len__(self) -> int:
        return 7

    def __reduce__(self) -> tuple[Any, ...]:
        return _counted, (self.file,)


def _counted(file: Path) -> Counted:
    note = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(note, f"{os.getpid()}\n".encode())
    os.close(note)
    return Counted(file)
