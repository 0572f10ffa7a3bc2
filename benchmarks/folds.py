"""Which folds? Five of a fifth, ten of a tenth, or four of a twentieth: accuracy, width, time.

python benchmarks/folds.py            # goes on where it was stopped; about ten minutes
python benchmarks/folds.py --quick

For each way of cutting: how far the estimate is off (against the true error of the fold average
that it is of), how much worse the fold average is than the refit to all answers, how wide the
certified bound of the delivered refit is, and the processor time of the whole band.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import mean, median
from typing import Any

import numpy as np
import tables
from threadpoolctl import threadpool_limits

from malocate import (
    CrossFit,
    Estimator,
    LowRankLeastSquares,
    Observations,
    SoftImpute,
    Synthetic,
    error_band,
)

SEEDS = 3
FIRST_SEED = 880_000
CUTS = {
    "5 folds of 20 %": CrossFit(5),
    "10 folds of 10 %": CrossFit(10),
    "4 folds of 5 %": CrossFit(4, 0.05),
}
ESTIMATORS: dict[str, Estimator] = {
    "SoftImpute": SoftImpute("universal"),
    "LowRankLeastSquares": LowRankLeastSquares(),
}


@dataclass(frozen=True)
class Problem:
    """Ratings of a panel, and how many of them were asked for."""

    name: str
    side: int
    rank: int
    answers: int

    def observe(self, seed: int) -> tuple[Synthetic, Observations]:
        source = Synthetic.ratings((self.side, self.side), self.rank, rng=seed)
        return source, source.observe(self.answers, rng=seed + 1)


PROBLEMS = (
    Problem("100 × 100, rank 3, 1,500 answers (few)", 100, 3, 1500),
    Problem("100 × 100, rank 3, 5,000 answers", 100, 3, 5000),
    Problem("50 × 50, rank 3, 5,000 answers (many)", 50, 3, 5000),
)


def measure(problem: Problem, estimator: str, cut: str, seed: int) -> dict[str, float]:
    """Make one band and hold it against the truth."""
    source, seen = problem.observe(FIRST_SEED + seed)
    with threadpool_limits(1):
        begun = time.process_time()
        band = error_band(ESTIMATORS[estimator], seen, scheme=CUTS[cut], check_uniform=False)
        spent = time.process_time() - begun
    average, refit = (
        float(np.mean((done.dense() - source.truth) ** 2))
        for done in (band.ensemble, band.completion)
    )
    off = band.estimate - average
    told = {"average": average, "refit": refit, "off": off, "upper": band.upper}
    return told | {"ensemble_upper": band.ensemble_upper, "seconds": spent}


def jobs(quick: bool) -> Iterator[tuple[dict[str, Any], Callable[[], dict[str, float]]]]:
    for problem in PROBLEMS[-1:] if quick else PROBLEMS:
        for estimator in list(ESTIMATORS)[: 1 if quick else None]:
            for seed in range(1 if quick else SEEDS):
                for cut in CUTS:
                    arguments = problem, estimator, cut, seed
                    key = {"problem": problem.name, "estimator": estimator, "cut": cut}
                    yield key | {"seed": seed}, lambda told=arguments: measure(*told)


def summary(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """One line for each problem, estimator and cut."""
    names = ("problem", "estimator", "cut")
    keys = dict.fromkeys(tuple(row[name] for name in names) for row in rows)
    return [_line(key, [r for r in rows if tuple(r[n] for n in names) == key]) for key in keys]


def _line(key: tuple[str, ...], rows: list[dict[str, str]]) -> dict[str, str]:
    number = {name: [float(row[name]) for row in rows] for name in ("average", "refit", "off")}
    off = mean(each**2 for each in number["off"]) ** 0.5 / mean(number["average"])
    worse = mean(number["average"]) / mean(number["refit"])
    width = median(float(row["upper"]) / float(row["refit"]) for row in rows)
    seconds = median(float(row["seconds"]) for row in rows)
    return dict(zip(("problem", "estimator", "folds"), key, strict=True)) | {
        "estimate off by": f"{off:.1%}",
        "error, average / refit": f"{worse:.2f}",
        "certified bound / error of the refit": f"{width:.2f}",
        "seconds": tables.number(seconds),
        "seeds": str(len(rows)),
    }


def main() -> None:
    chosen = tables.arguments(__doc__)
    rows = tables.fill(tables.folder(chosen.quick) / "folds.csv", jobs(chosen.quick), chosen.anew)
    print(tables.markdown(summary(rows)))


if __name__ == "__main__":
    main()
