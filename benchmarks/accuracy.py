"""LowRankLeastSquares against what could be done at best, on seeds that no tuning ever saw.

python benchmarks/accuracy.py                 # every setting; goes on where it was stopped
python benchmarks/accuracy.py --ours          # our fits anew; the yardsticks' errors are kept
python benchmarks/accuracy.py --quick         # two settings, one seed

The oracle is ridge least squares that is told the true rank and takes the ridge of least true
error on its path (ratings: and the best centring). Where no rank is true, and where a skewed or
non-square sample could hurt, SoftImpute at the penalty of least true error is the yardstick.
Errors are mean squared per entry; seconds are processor time on one thread.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import tables

from malocate import Completion, LowRankLeastSquares, Observations, SoftImpute, Synthetic
from malocate.estimators.centring import fit_centre
from malocate.estimators.engine.blas import pinned
from malocate.estimators.engine.cells import Cells
from malocate.estimators.engine.factored import descend
from malocate.estimators.engine.spectrum import leading

Row = dict[str, Any]

SEEDS = 10
FIRST_SEED = 770_000
STEP = 1.25
"""Ratio of one ridge or penalty to the next on the yardsticks' grids."""

PATIENCE = 4
"""Places without a new least error after which a yardstick's path is not followed further."""


@dataclass(frozen=True)
class Setting:
    """One kind of problem, how many answers there are, and what its error is held against."""

    name: str
    make: Callable[[int], Synthetic]
    answers: int
    rank: int | None = None  # told to the oracle; None: the yardstick is SoftImpute
    skewed: bool = False
    target: float = 1.1

    def problem(self, seed: int) -> tuple[Synthetic, Observations]:
        source = self.make(seed)
        weights = np.random.default_rng(seed + 2).lognormal(0, 0.8, source.shape[0])
        return source, source.observe(
            self.answers, rng=seed + 1, row_weights=weights if self.skewed else None
        )


def low_rank(rank: int, answers: int, noise: float = 0.1) -> Setting:
    name = f"rank {rank}, n = {answers:,}" + ("" if noise == 0.1 else f", noise {noise:g}")
    return Setting(
        name, lambda seed: Synthetic.low_rank(rank=rank, noise=noise, rng=seed), answers, rank
    )


def against_soft_impute(
    name: str, make: Callable[[int], Synthetic], n: int, **more: Any
) -> Setting:
    return Setting(name, make, n, target=1.02, **more)


SETTINGS = (
    low_rank(10, 4_000),
    low_rank(10, 5_000),
    low_rank(10, 12_000),
    low_rank(20, 8_000),
    low_rank(40, 16_000),
    low_rank(40, 20_000),
    low_rank(40, 40_000),
    low_rank(10, 12_000, noise=1.0),
    Setting("ratings 1–5", lambda seed: Synthetic.ratings((200, 200), rank=3, rng=seed), 8_000, 3),
    against_soft_impute(
        "singular values 1/i",
        lambda seed: Synthetic.decaying((200, 200), exponent=1.0, noise=0.1, rng=seed),
        12_000,
    ),
    against_soft_impute(
        "singular values 1/i²",
        lambda seed: Synthetic.decaying((200, 200), exponent=2.0, noise=0.1, rng=seed),
        12_000,
    ),
    against_soft_impute(
        "100 × 400", lambda seed: Synthetic.low_rank((100, 400), rank=10, rng=seed), 8_000
    ),
    against_soft_impute(
        "rows skewed", lambda seed: Synthetic.low_rank(rank=10, rng=seed), 8_000, skewed=True
    ),
)
LOCAL = ("rank 10, n = 5,000", "rank 10, n = 12,000", "rank 40, n = 20,000")


def error(source: Synthetic, completion: Completion) -> float:
    return float(np.mean((completion.dense() - source.truth) ** 2))


def falling(first: float) -> Iterator[float]:
    while True:
        yield first
        first /= STEP


def least_error(errors: Iterator[float]) -> float:
    """Follow a path until the error has not fallen for a while."""
    best, waited = math.inf, 0
    for each in errors:
        waited = 0 if each < best else waited + 1
        best = min(best, each)
        if waited == PATIENCE:
            break
    return best


def oracle_error(source: Synthetic, answers: Observations, rank: int) -> float:
    """The least error along the ridge path of the true rank, and of the best centring."""
    kinds = ("none",) if answers.scale is None else ("none", "mean", "additive")
    return min(least_error(oracle_path(source, answers, rank, kind)) for kind in kinds)


def oracle_path(source: Synthetic, answers: Observations, rank: int, kind: str) -> Iterator[float]:
    entries = answers.entries
    centre = fit_centre(entries, kind)
    cells = Cells.from_entries(entries, entries.means - centre.at(entries.rows, entries.cols))
    first = leading(cells.matrix(cells.weights * cells.targets), rank, rounds=8)
    ridge = 0.7 * first.largest
    share = cells.weights.sum() / math.prod(cells.shape)
    root = np.sqrt(np.maximum(first.values - ridge, 0.01 * first.largest) / share)
    left, right = first.left * root, first.right * root
    for level in falling(ridge):
        done = descend(cells, left, right, np.full(rank, level), max_steps=150, tol=1e-6)
        left, right = done.left, done.right
        yield error(source, Completion(left, right, centre, clip=answers.scale))


def soft_impute_error(source: Synthetic, answers: Observations) -> float:
    entries = answers.entries
    cells = Cells.from_entries(entries)
    largest = leading(cells.matrix(cells.weights * cells.targets), 8, rounds=8).largest
    path = SoftImpute(tol=1e-3).path(answers, falling(0.7 * largest))
    return least_error(error(source, done) for done in path)


def seconds_of(work: Callable[[], Any]) -> tuple[Any, float]:
    began = time.process_time()
    result = work()
    return result, time.process_time() - began


def yardstick_error(setting: Setting, source: Synthetic, answers: Observations) -> float:
    with pinned():
        if setting.rank is not None:
            return oracle_error(source, answers, setting.rank)
        return soft_impute_error(source, answers)


def measured(setting: Setting, number: int, yardstick: float | None = None) -> Row:
    """One seed of a setting: our error over the yardstick's, and the seconds that ours took."""
    source, answers = setting.problem(FIRST_SEED + 100 * number)
    done, seconds = seconds_of(lambda: LowRankLeastSquares().fit(answers))
    if yardstick is None:
        yardstick = yardstick_error(setting, source, answers)
    return {
        "setting": setting.name,
        "seed": number,
        "error": error(source, done),
        "yardstick": "SoftImpute, best penalty" if setting.rank is None else "oracle",
        "yardstick_error": yardstick,
        "ratio": error(source, done) / yardstick,
        "rank": done.rank,
        "seconds": seconds,
        **(local_fit(setting, source, answers, seconds) if setting.name in LOCAL else EMPTY),
        "target": setting.target,
    }


EMPTY: Row = {"local_seconds": "", "local_speed_up": "", "local_error_over_full": ""}


def local_fit(setting: Setting, source: Synthetic, now: Observations, full: float) -> Row:
    """A look with 10 % fewer answers, then the local fit that goes on from it."""
    before = now.take(np.arange(round(setting.answers / 1.1)))
    earlier = LowRankLeastSquares().fit(before)
    done, seconds = seconds_of(lambda: LowRankLeastSquares(tune="local").fit(now, start=earlier))
    tuned = LowRankLeastSquares().fit(now)
    return {
        "local_seconds": seconds,
        "local_speed_up": full / seconds,
        "local_error_over_full": error(source, done) / error(source, tuned),
    }


def summary(rows: list[dict[str, str]]) -> list[Row]:
    """A line for each setting: paired mean, worst fit, and whether the targets are met."""
    lines = []
    for setting in SETTINGS:
        mine = [row for row in rows if row["setting"] == setting.name]
        if not mine:
            continue
        ratios = [float(row["ratio"]) for row in mine]
        worst = max(ratios)
        met = np.mean(ratios) <= setting.target and (setting.rank is None or worst <= 1.5)
        speed_ups = [float(row["local_speed_up"]) for row in mine if row["local_speed_up"]]
        lines.append(
            {
                "problem": setting.name,
                "against": mine[0]["yardstick"],
                "error ratio, mean of seeds": f"{np.mean(ratios):.3f}",
                "worst": f"{worst:.2f}",
                "target": f"≤ {setting.target}" + (", worst ≤ 1.5" if setting.rank else ""),
                "met": "yes" if met else "**no**",
                "seeds": len(mine),
                "seconds": f"{np.median([float(row['seconds']) for row in mine]):.2f}",
                "local fit": f"{np.median(speed_ups):.1f}× faster" if speed_ups else "",
            }
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="two settings, one seed")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--anew", action="store_true", help="forget earlier rows")
    parser.add_argument("--ours", action="store_true", help="forget all but the yardsticks' errors")
    chosen = parser.parse_args()
    numba.set_num_threads(1)
    path = tables.folder(chosen.quick) / "accuracy.csv"
    rows: list[Any] = [] if chosen.anew or chosen.quick else tables.read(path)
    known = {(row["setting"], str(row["seed"])): float(row["yardstick_error"]) for row in rows}
    rows = [] if chosen.ours else rows
    machine = tables.machine()
    LowRankLeastSquares().fit(Synthetic.low_rank((30, 30), rank=2).observe(300))  # compiles
    for number in range(1, 2 if chosen.quick else chosen.seeds + 1):
        for setting in SETTINGS[1:3] if chosen.quick else SETTINGS:
            yardstick = known.get((setting.name, str(number)))
            if yardstick is None or chosen.ours:
                rows.append(measured(setting, number, yardstick) | machine)
                print(f"{setting.name}, seed {number}: {rows[-1]['ratio']:.3f}", flush=True)
        tables.write(path, rows)
    print(tables.markdown(summary(tables.read(path))))


if __name__ == "__main__":
    main()
