"""SquareRootLasso inside its box: against Clarabel's objective, and processor seconds at 200 × 200.

python benchmarks/square_root_lasso.py            # about five minutes
python benchmarks/square_root_lasso.py --quick    # one small problem and one timing

Clarabel (through cvxpy) solves the same constrained problem on random non-square matrices of 20
to 40 a side: loose, tight and heavily active boxes, zero inside and far outside. At 200 × 200 the
fit runs to a certified gap of 1e−3 on one thread, its default penalty simulated on the way.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from typing import Any

import cvxpy
import numba
import numpy as np
import tables

from malocate import Completion, Observations, SquareRootLasso, Synthetic

Row = dict[str, Any]

SHAPES = ((20, 30), (30, 20), (25, 40), (40, 30))
GOAL = 1e-3
SEEDS = 3


def random_answers(shape: tuple[int, int], scale: tuple[float, float], steep: float, seed: int):
    """Answers of a rank-3 matrix around the middle of the scale, clipped to it; half of it seen."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((shape[0], 3)) @ rng.standard_normal((3, shape[1])) / math.sqrt(3)
    n = math.prod(shape) // 2
    rows, cols = rng.integers(shape[0], size=n), rng.integers(shape[1], size=n)
    units = 0.5 + steep * truth[rows, cols] + rng.normal(0, 0.1, n)
    values = np.clip(scale[0] + (scale[1] - scale[0]) * units, *scale)
    return Observations(rows, cols, values, shape=shape, scale=scale)


def small_problems(quick: bool) -> Iterator[tuple[str, Observations, float]]:
    """Boxes from inactive to heavily active, penalties as shares of the paper's rule."""
    kinds = (
        ("inactive box", (-10.0, 10.0), 0.05, 1.0),
        ("saturated ±1", (-1.0, 1.0), 1.5, 0.1),
        ("ratings 1–5", (1.0, 5.0), 0.4, 0.5),
        ("zero far outside", (1.0, 5.0), 0.4, 3.0),
    )
    for number, shape in enumerate(SHAPES[:1] if quick else SHAPES):
        for name, scale, steep, constant in kinds[:1] if quick else kinds:
            yield name, random_answers(shape, scale, steep, 100 + number), constant


def clarabel(observations: Observations, penalty: float) -> tuple[float, float]:
    """Clarabel's objective and its processor seconds."""
    began = time.process_time()
    matrix = cvxpy.Variable(observations.shape)
    misses = observations.values - matrix[observations.rows, observations.cols]
    loss = cvxpy.norm(misses) / math.sqrt(len(observations))
    low, high = observations.scale
    problem = cvxpy.Problem(
        cvxpy.Minimize(loss + penalty * cvxpy.normNuc(matrix)), [matrix >= low, matrix <= high]
    )
    problem.solve(solver=cvxpy.CLARABEL)
    return float(problem.value), time.process_time() - began


def objective(observations: Observations, done: Completion) -> float:
    """The objective from the delivered dense matrix, answer by answer."""
    matrix = done.dense()
    misses = observations.values - matrix[observations.rows, observations.cols]
    nuclear = np.linalg.svd(matrix, compute_uv=False).sum()
    return float(math.sqrt(np.mean(misses**2)) + done.memory["penalty"] * nuclear)


def timed(lasso: SquareRootLasso, observations: Observations) -> tuple[Completion, float]:
    began = time.process_time()
    done = lasso.fit(observations)
    return done, time.process_time() - began


def described(part: str, name: str, observations: Observations, done: Completion) -> Row:
    low, high = done.clip
    matrix, margin = done.dense(), 1e-4 * (high - low)
    d1, d2 = observations.shape
    return {
        "part": part,
        "problem": name,
        "shape": f"{d1} × {d2}",
        "answers": len(observations),
        "penalty": done.memory["penalty"],
        "rule": done.memory["rule"],
        "rank": done.rank,
        "at_the_walls": float(np.mean((matrix <= low + margin) | (matrix >= high - margin))),
        "objective": objective(observations, done),
        "gap": done.gap,
        "steps": done.memory["steps"],
    }


def against_clarabel(quick: bool) -> Iterator[Row]:
    for name, observations, constant in small_problems(quick):
        lasso = SquareRootLasso(C=constant, tol=1e-7)
        done, seconds = timed(lasso, observations)
        theirs, their_seconds = clarabel(observations, done.memory["penalty"])
        row = described("against Clarabel", name, observations, done)
        above = row["objective"] / theirs - 1
        yield row | _times(seconds, above, their_seconds)


def _times(seconds: float, above: float | str = "", their_seconds: float | str = "") -> Row:
    return {"seconds": seconds, "above_clarabel": above, "clarabel_seconds": their_seconds}


def large_problems(quick: bool) -> Iterator[tuple[str, Observations]]:
    """Ratings 1–5, and the paper's model with answers cut to ±1 and ±.5, where the box is tight."""
    for seed in range(1 if quick else SEEDS):
        for n in (8_000, 20_000):
            ratings = Synthetic.ratings(shape=(200, 200), rank=3, rng=500 + seed)
            yield "ratings 1–5", ratings.observe(n, rng=seed)
            model = Synthetic.low_rank(shape=(200, 200), rank=10, noise=0.1, rng=600 + seed)
            answers = model.observe(n, rng=seed)
            for wall in (1.0, 0.5):
                values = np.clip(answers.values, -wall, wall)
                places = answers.rows, answers.cols
                yield (
                    f"model, ±{wall}",
                    Observations(*places, values, shape=(200, 200), scale=(-wall, wall)),
                )
            if quick:
                return


def at_200(quick: bool) -> Iterator[Row]:
    for name, observations in large_problems(quick):
        for constant in (None, 0.3, 0.1):
            done, seconds = timed(SquareRootLasso(C=constant, tol=GOAL), observations)
            assert done.gap <= GOAL, f"{name}: the gap is {done.gap:.1e}"
            row = described("200 × 200 to gap 1e-3", name, observations, done)
            yield row | _times(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    numba.set_num_threads(1)
    SquareRootLasso().fit(Synthetic.ratings(shape=(30, 20), rng=0).observe(200))  # compiles
    rows, machine = [], tables.machine() | {"cvxpy": cvxpy.__version__}
    for part in (against_clarabel, at_200):
        for row in part(quick):
            shown = (
                f"{value:.3g}" if isinstance(value, float) else value for value in row.values()
            )
            print(*shown, sep="  ", flush=True)
            rows.append(row | machine)
    worst = max(abs(row["above_clarabel"]) for row in rows if row["clarabel_seconds"])
    slowest = max(row["seconds"] for row in rows if not row["clarabel_seconds"])
    print(f"objective / Clarabel's − 1: at most {worst:.1e}")
    print(f"200 × 200 to a certified gap of {GOAL:g}: at most {slowest:.2f} processor seconds")
    tables.write(tables.folder(quick) / "square_root_lasso.csv", rows)


if __name__ == "__main__":
    main()
