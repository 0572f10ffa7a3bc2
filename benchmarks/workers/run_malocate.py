"""Our own SoftImpute, with its iterates judged while its clock stands still."""

from __future__ import annotations

import re
import resource
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from common import Clock, Problem, load, objective, serve
from numba import set_num_threads

from malocate import Completion, Observations, SoftImpute
from malocate.estimators.convex import nuclear

MOST_STEPS = 20_000


class Reached(Exception):
    """The objective asked for has been reached; not an error."""


def observations(problem: Problem) -> Observations:
    return Observations(problem.rows, problem.cols, problem.values, shape=problem.shape)


def compile_kernels(_: dict[str, Any]) -> dict[str, Any]:
    """Load the compiled kernels from their cache, and give the memory that takes."""
    rng = np.random.default_rng(0)
    rows, cols = np.divmod(np.arange(600), 20)
    seen = Observations(rows, cols, rng.standard_normal(600), shape=(30, 20))
    SoftImpute(penalty=5.0, tol=1e-6).fit(seen, start=SoftImpute(penalty=8.0).fit(seen))
    return {"peak": peak_memory()}


def trajectory(request: dict[str, Any]) -> dict[str, Any]:
    """Fit until the objective reaches the target; judging it costs no time on the clock.

    What is timed is the public `SoftImpute.fit`, so grouping the answers and centring count;
    the only change is that its solver shows its factors after every sweep.
    """
    problem, start = load(request["problem"]), request.get("start")
    start = None if start is None else Completion.load(start)
    estimator = SoftImpute(problem.penalty, tol=request["tol"], max_steps=MOST_STEPS)
    seen, points = observations(problem), []

    def judge(left: np.ndarray, right: np.ndarray) -> None:
        with clock.paused() as reading:
            points.append([*reading, objective(problem, left, right)])
        if points[-1][2] <= request["target"]:
            raise Reached

    shown = partial(nuclear.solve, trace=judge)
    with patch.object(nuclear, "solve", shown), suppress(Reached):
        clock = Clock()
        estimator.fit(seen, start=start)
    return {"trajectory": points}


def replayed(request: dict[str, Any]) -> dict[str, Any]:
    """Give the wall-clock time of as many sweeps as reached the target, without a pause.

    A fit has the same bits every time, so they reach it again; to judge each of them would put
    the other core to sleep in between.
    """
    problem, sweeps = load(request["problem"]), iter(range(request["sweeps"] - 1))
    estimator = SoftImpute(problem.penalty, tol=request["tol"], max_steps=MOST_STEPS)
    seen = observations(problem)

    def count(_: np.ndarray, __: np.ndarray) -> None:
        if next(sweeps, None) is None:
            raise Reached

    with patch.object(nuclear, "solve", partial(nuclear.solve, trace=count)), suppress(Reached):
        clock = Clock()
        estimator.fit(seen)
    return {"wall": clock.read()[1]}


def fit(request: dict[str, Any]) -> dict[str, Any]:
    """Fit to a certified gap, all included; keep the completion if a path is given."""
    problem, start = load(request["problem"]), request.get("start")
    start = None if start is None else Completion.load(start)
    seen = observations(problem)
    clock = Clock()
    steps = request.get("max_steps", MOST_STEPS)
    estimator = SoftImpute(penalty=problem.penalty, tol=request["tol"], max_steps=steps)
    done = estimator.fit(seen, start=start)
    cpu, wall = clock.read()
    peak = peak_memory()
    if "save" in request:
        done.save(request["save"])
    reached = objective(problem, *done.factors)
    told = {"cpu": cpu, "wall": wall, "peak": peak, "objective": reached}
    return {**told, "gap": done.gap, "rank": done.rank}


def peak_memory() -> float:
    """The most memory this process has held so far, in megabytes of a million bytes.

    Linux hands `ru_maxrss` on to a started program, so that a large parent would count: the
    program's own peak is in /proc.
    """
    status = Path("/proc/self/status")
    if status.exists():
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
        if found is not None:
            return int(found[1]) * 1024 / 1e6
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


JOBS = {"compile": compile_kernels, "trajectory": trajectory, "replayed": replayed, "fit": fit}


def answer(request: dict[str, Any]) -> dict[str, Any]:
    set_num_threads(request.get("threads", 1))
    return JOBS[request["job"]](request)


if __name__ == "__main__":
    serve(answer)
