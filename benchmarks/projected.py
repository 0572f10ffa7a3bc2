"""ProjectedLeastSquares: its error over the limit, the ranks that it finds, and on pure noise.

python benchmarks/projected.py            # a few minutes; goes on where it was stopped
python benchmarks/projected.py --quick    # one setting and one shape

The limit is σ² r (d1 + d2 − r) / n: the noise of an answer, times the free parameters of a matrix
of the true rank, over the number of answers. `LowRankLeastSquares` fits the same answers for
comparison. Errors are mean squared per entry; seconds are processor time of `fit` on one thread,
the answers grouped by cell beforehand.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numba
import numpy as np
import tables

from malocate import (
    Completion,
    LowRankLeastSquares,
    Observations,
    ProjectedLeastSquares,
    Synthetic,
)

Row = dict[str, Any]
Job = tuple[Row, Callable[[], Row]]

SEEDS = 5
FIRST_SEED = 920_000
NOISE_SHAPES = ((1, 1), (2, 2), (5, 5), (10, 10), (20, 20), (50, 50), (20, 200))
NOISE_FITS, NOISE_PER_CELL = 400, 5


@dataclass(frozen=True)
class Setting:
    """A hidden matrix of a given rank, and how many answers there are per cell."""

    shape: tuple[int, int]
    rank: int
    noise: float
    per_cell: int

    @property
    def key(self) -> Row:
        fields = {"rank": self.rank, "noise": self.noise, "per_cell": self.per_cell}
        return {"shape": named(self.shape)} | fields

    @property
    def answers(self) -> int:
        return self.per_cell * math.prod(self.shape)

    @property
    def limit(self) -> float:
        return self.noise**2 * self.rank * (sum(self.shape) - self.rank) / self.answers


SETTINGS = (
    Setting((200, 200), 10, 0.1, 2),
    Setting((200, 200), 10, 0.1, 5),
    Setting((200, 200), 10, 1.0, 5),
    Setting((200, 200), 10, 1.0, 20),
    Setting((200, 200), 40, 1.0, 5),
    Setting((100, 400), 10, 1.0, 5),
)


def named(shape: tuple[int, int]) -> str:
    return f"{shape[0]} × {shape[1]}"


def timed(
    estimator: ProjectedLeastSquares | LowRankLeastSquares, answers: Observations
) -> tuple[Completion, float]:
    began = time.process_time()
    done = estimator.fit(answers)
    return done, time.process_time() - began


def measured(setting: Setting, seed: int) -> Row:
    """Errors over the limit, ranks and seconds of both estimators on one seed."""
    source = Synthetic.low_rank(setting.shape, setting.rank, setting.noise, rng=seed)
    answers = source.observe(setting.answers, rng=seed + 1)
    assert len(answers.entries)
    row: Row = {}
    estimators = {"projected": ProjectedLeastSquares(), "low_rank": LowRankLeastSquares()}
    for name, estimator in estimators.items():
        done, seconds = timed(estimator, answers)
        error = float(np.mean((done.dense() - source.truth) ** 2))
        row |= {f"{name}_over_limit": error / setting.limit, f"{name}_rank": done.rank}
        row |= {f"{name}_seconds": seconds}
    return row


def false_directions(shape: tuple[int, int]) -> Row:
    """How often pure noise is given a rank above zero."""
    found, cells = 0, math.prod(shape)
    for number in range(NOISE_FITS):
        rng = np.random.default_rng([FIRST_SEED, number, *shape])
        n = NOISE_PER_CELL * cells
        rows, cols = (rng.integers(side, size=n) for side in shape)
        answers = Observations(rows, cols, rng.standard_normal(n), shape=shape)
        found += ProjectedLeastSquares().fit(answers).rank > 0
    return {"fits": NOISE_FITS, "above_zero": found}


def jobs(quick: bool) -> Iterator[Job]:
    for number in range(1, 2 if quick else SEEDS + 1):
        for setting in SETTINGS[1:2] if quick else SETTINGS:
            yield (
                setting.key | {"seed": number},
                partial(measured, setting, FIRST_SEED + 100 * number),
            )


def noise_jobs(quick: bool) -> Iterator[Job]:
    for shape in NOISE_SHAPES[:1] if quick else NOISE_SHAPES:
        key = {"shape": named(shape), "per_cell": NOISE_PER_CELL}
        yield key, partial(false_directions, shape)


def summary(rows: list[dict[str, str]]) -> list[Row]:
    """A line for each setting: means over the seeds, and the ranks found."""
    lines = []
    for setting in SETTINGS:
        mine = tables.matching(rows, setting.key)
        if not mine:
            continue
        ranks = [int(row["projected_rank"]) for row in mine]
        means = {
            name: float(np.mean([float(row[name]) for row in mine]))
            for name in mine[0]
            if name.endswith(("_limit", "_seconds"))
        }
        lines.append(
            {
                "shape": named(setting.shape),
                "rank": setting.rank,
                "noise": setting.noise,
                "answers per cell": setting.per_cell,
                "error / limit": f"{means['projected_over_limit']:.2f}",
                "ranks found": span(ranks),
                "time": f"{1000 * means['projected_seconds']:.0f} ms",
                "LowRankLeastSquares": f"{means['low_rank_over_limit']:.2f}",
                "its time": f"{1000 * means['low_rank_seconds']:,.0f} ms",
                "seeds": len(mine),
            }
        )
    return lines


def span(ranks: list[int]) -> str:
    low, high = min(ranks), max(ranks)
    return f"{low} in all" if low == high else f"{low} to {high}"


def noise_summary(rows: list[dict[str, str]]) -> list[Row]:
    """A line for each shape: how many fits of pure noise have a rank above zero."""
    return [
        {
            "shape": row["shape"],
            "answers per cell": row["per_cell"],
            "rank above 0": f"{row['above_zero']} of {row['fits']} fits",
        }
        for row in rows
    ]


def main() -> None:
    chosen = tables.arguments(__doc__)
    numba.set_num_threads(1)
    anew, folder = chosen.anew or chosen.quick, tables.folder(chosen.quick)
    small = Synthetic.low_rank((30, 30), rank=2).observe(300)
    for estimator in (ProjectedLeastSquares(), LowRankLeastSquares()):
        estimator.fit(small)  # compiles
    rows = tables.fill(folder / "projected.csv", jobs(chosen.quick), anew)
    print(tables.markdown(summary(rows)))
    rows = tables.fill(folder / "projected_noise.csv", noise_jobs(chosen.quick), anew)
    print(tables.markdown(noise_summary(rows)))


if __name__ == "__main__":
    main()
