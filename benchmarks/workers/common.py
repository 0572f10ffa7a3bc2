"""What every worker shares: the problem file, the objective, a clock that stops, the talk.

A worker is a process in some package's own environment. It reads one request per line from
standard input (JSON) and answers each with one line. Only NumPy may be imported here.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

CHUNK = 1 << 18  # cells whose factors are gathered at a time


class Problem(NamedTuple):
    """Minimise ½ Σ (value − M)² over the seen cells + penalty · ‖M‖_*; every cell seen once."""

    rows: np.ndarray
    cols: np.ndarray
    values: np.ndarray
    shape: tuple[int, int]
    penalty: float

    @property
    def megabytes(self) -> float:
        return sum(each.nbytes for each in self[:3]) / 1e6


@lru_cache(maxsize=2)
def load(path: str) -> Problem:
    with np.load(path) as stored:
        rows, cols, values = stored["rows"], stored["cols"], stored["values"]
        return Problem(
            rows, cols, values, tuple(stored["shape"].tolist()), float(stored["penalty"])
        )


def nuclear_norm(left: np.ndarray, right: np.ndarray) -> float:
    cores = (np.linalg.qr(np.asarray(side, dtype=np.float64), mode="r") for side in (left, right))
    left_core, right_core = cores
    return float(np.linalg.svd(left_core @ right_core.T, compute_uv=False).sum())


def predict(left: np.ndarray, right: np.ndarray, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
    product = np.empty(len(rows))
    for first in range(0, len(rows), CHUNK):
        part = slice(first, first + CHUNK)
        np.einsum("ij,ij->i", left[rows[part]], right[cols[part]], out=product[part])
    return product


def objective(problem: Problem, left: np.ndarray, right: np.ndarray) -> float:
    """The objective at M = left @ rightᵀ, with M's own nuclear norm, in double precision."""
    left, right = (np.asarray(side, dtype=np.float64) for side in (left, right))
    residual = problem.values - predict(left, right, problem.rows, problem.cols)
    return 0.5 * float(residual @ residual) + problem.penalty * nuclear_norm(left, right)


class Clock:
    """Processor and wall-clock seconds since it was made, without the time spent paused."""

    def __init__(self) -> None:
        self.start = self._now()

    @staticmethod
    def _now() -> np.ndarray:
        return np.array([time.process_time(), time.perf_counter()])

    def read(self) -> list[float]:
        return (self._now() - self.start).tolist()

    @contextmanager
    def paused(self) -> Iterator[list[float]]:
        """Stop the clock for the block; gives the reading at which it stopped."""
        before = self._now()
        yield (before - self.start).tolist()
        self.start += self._now() - before


def serve(answer: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    talk, sys.stdout = sys.stdout, sys.stderr  # what a package prints must not spoil the talk
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), file=talk, flush=True)
