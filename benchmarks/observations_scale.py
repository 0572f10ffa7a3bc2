"""Whether 10⁸ answers can be held, grouped by entry and fitted: processor seconds and peak memory.

python benchmarks/observations_scale.py                 # 10⁸ answers; needs about 12 GB
python benchmarks/observations_scale.py 5_000_000       # as many as you like
python benchmarks/observations_scale.py --quick         # 10⁶ answers

One process does it all, on one thread: it asks a hidden matrix of rank 5 (noise .1, 100,000 ×
20,000, so that nearly every answer is at a cell of its own), makes `Observations`, groups them
and fits `LowRankLeastSquares` with given rank, ridge and centre. Peak memory is that of the
process up to the end of the stage; the answers as they were made are gone before the fit.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
import tables

from malocate import Completion, LowRankLeastSquares, Observations, Synthetic

Result = TypeVar("Result")
Row = dict[str, Any]

ANSWERS, SHAPE = 100_000_000, (100_000, 20_000)
QUICK_ANSWERS, QUICK_SHAPE = 1_000_000, (10_000, 2_000)
RANK, NOISE = 5, 0.1
SHRINKAGE = 0.1
"""The ridge, as a share of what a component's singular value would be if all were alike."""

CHUNK, JUDGED = 2_000_000, 1_000_000
BYTES_PER_ANSWER = 140  # of memory that should be free before the run is tried
FITTED = "fit LowRankLeastSquares"


class Stages:
    """Rows for the stages of one run: each with its seconds and the peak memory so far."""

    def __init__(self, answers: int, shape: tuple[int, int]) -> None:
        self.rows: list[Row] = []
        self._problem = {"answers": answers, "shape": f"{shape[0]:,} × {shape[1]:,}"}

    def run(self, stage: str, job: Callable[[], Result]) -> Result:
        before = time.process_time()
        result = job()
        spent = time.process_time() - before
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
        print(f"{stage:<28} {spent:8.2f} s CPU   peak {peak:6.2f} GB", flush=True)
        measured = {"stage": stage, "seconds": spent, "peak_gb": peak}
        self.rows.append(self._problem | measured | {"rank": "", "error": "", "status": ""})
        return result


def asked(source: Synthetic, answers: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Answers at random cells, made in chunks."""
    rng = np.random.default_rng(880_001)
    rows, cols = (rng.integers(0, side, answers, dtype=np.int32) for side in source.shape)
    values = NOISE * rng.standard_normal(answers)
    for at in range(0, answers, CHUNK):
        part = slice(at, at + CHUNK)
        values[part] += source.truth_at(rows[part], cols[part])
    return rows, cols, values


def observed(stages: Stages, source: Synthetic, answers: int) -> Observations:
    made = stages.run("make the answers", lambda: asked(source, answers))
    return stages.run("Observations", lambda: Observations(*made, shape=source.shape))


def fitted(stages: Stages, observations: Observations) -> Completion:
    d1, d2 = observations.shape
    ridge = SHRINKAGE * len(observations) / (d1 * d2 * RANK) ** 0.5
    estimator = LowRankLeastSquares(rank=RANK, ridge=ridge, centre="none")
    return stages.run(FITTED, lambda: estimator.fit(observations))


def error(source: Synthetic, done: Completion) -> float:
    """Mean squared error at random cells; the mean square of the truth is about 1."""
    rng = np.random.default_rng(880_002)
    rows, cols = (rng.integers(0, side, JUDGED) for side in source.shape)
    return float(np.mean((done.predict(rows, cols) - source.truth_at(rows, cols)) ** 2))


def measure(answers: int, shape: tuple[int, int]) -> list[Row]:
    stages = Stages(answers, shape)
    source = Synthetic.low_rank(shape, rank=RANK, noise=NOISE, rng=880_000)
    observations = observed(stages, source, answers)
    entries = stages.run("group by entry", lambda: observations.entries)
    done = fitted(stages, observations)
    found = {"rank": done.rank, "error": error(source, done), "status": done.status.value}
    stages.rows[-1] |= found
    print(f"{observations!r}; error {found['error']:.2g}, {found['status']}")
    held = sum(each.nbytes for each in (observations.rows, observations.cols, observations.values))
    grouped = sum(each.nbytes for each in vars(entries).values() if isinstance(each, np.ndarray))
    print(f"the answers hold {held / 1e9:.2f} GB, their entries {grouped / 1e9:.2f} GB")
    return stages.rows


def summary(rows: list[dict[str, str]]) -> list[Row]:
    """A line for each stage of each run."""
    return [
        {
            "answers": f"{int(row['answers']):,}",
            "shape": row["shape"],
            "stage": row["stage"],
            "seconds": f"{float(row['seconds']):.3g}",
            "peak memory so far": f"{float(row['peak_gb']):.1f} GB",
            "mean squared error": f"{float(row['error']):.2g}" if row["error"] else "",
        }
        for row in rows
    ]


def free_bytes() -> int:
    listing = Path("/proc/meminfo")
    if listing.exists():
        for line in listing.read_text().splitlines():
            if line.startswith("MemAvailable"):
                return int(line.split()[1]) * 1024
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("answers", type=int, nargs="?")
    parser.add_argument("--shape", type=int, nargs=2)
    parser.add_argument("--quick", action="store_true", help="a million answers")
    chosen = parser.parse_args()
    answers = chosen.answers or (QUICK_ANSWERS if chosen.quick else ANSWERS)
    shape = tuple(chosen.shape or (QUICK_SHAPE if chosen.quick else SHAPE))
    if free_bytes() < BYTES_PER_ANSWER * answers:
        needed = BYTES_PER_ANSWER * answers / 1e9
        print(f"Left out: {answers:,} answers want {needed:.0f} GB of free memory.")
        return
    numba.set_num_threads(1)
    LowRankLeastSquares().fit(Synthetic.low_rank((30, 30), rank=2).observe(300))  # compiles
    made = [row | tables.machine() for row in measure(answers, shape)]
    path = tables.folder(chosen.quick) / "observations_scale.csv"
    known = tables.read(path)
    again = tables.matching(known, {name: made[0][name] for name in ("answers", "shape")})
    tables.write(path, [*(row for row in known if row not in again), *made])


if __name__ == "__main__":
    main()
