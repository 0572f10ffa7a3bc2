"""How wide is a band? The certified bound of every estimator, one look, against the true error.

python benchmarks/widths.py            # goes on where it was stopped; about five minutes
python benchmarks/widths.py --quick

Ratings 1–5 of a 200 × 200 matrix of rank 10, 5,000 answers. `U` is the bound of the fold average,
then of the refit that is delivered by default; the paper's bound stands beside SoftImpute's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import numpy as np
import tables
from threadpoolctl import threadpool_limits

from malocate import (
    Estimator,
    LowRankLeastSquares,
    OnlineLeastSquares,
    ProjectedLeastSquares,
    SoftImpute,
    SquareRootLasso,
    Synthetic,
    error_band,
)

SEEDS, FIRST_SEED, ANSWERS = 3, 990_000, 5000
ESTIMATORS: dict[str, Estimator] = {
    'SoftImpute("universal")': SoftImpute("universal"),
    "LowRankLeastSquares()": LowRankLeastSquares(),
    "SquareRootLasso()": SquareRootLasso(),
    'ProjectedLeastSquares(centre="mean")': ProjectedLeastSquares(centre="mean"),
    "OnlineLeastSquares()": OnlineLeastSquares(),
}


def measure(estimator: str, seed: int, side: int) -> dict[str, float]:
    """Make one band and hold it against the truth."""
    source = Synthetic.ratings((side, side), rank=10, rng=FIRST_SEED + seed)
    seen = source.observe(ANSWERS, rng=seed)
    with threadpool_limits(1):
        band = error_band(ESTIMATORS[estimator], seen)
    average, refit = (
        float(np.mean((done.dense() - source.truth) ** 2))
        for done in (band.ensemble, band.completion)
    )
    found = {"average": average, "upper_average": band.ensemble_upper}
    return found | {"refit": refit, "upper_refit": band.upper}


def jobs(quick: bool) -> Iterator[tuple[dict[str, Any], Callable[[], dict[str, float]]]]:
    for estimator in list(ESTIMATORS)[: 1 if quick else None]:
        for seed in range(1 if quick else SEEDS):
            told = estimator, seed, 60 if quick else 200
            key = {"estimator": estimator, "seed": seed}
            yield key, lambda told=told: measure(*told)


def summary(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """One line for each estimator: medians of the seeds."""
    return [
        _line(name, [row for row in rows if row["estimator"] == name])
        for name in dict.fromkeys(row["estimator"] for row in rows)
    ]


def _line(name: str, rows: list[dict[str, str]]) -> dict[str, str]:
    made = {"estimator": f"`{name}`"}
    for what, words in (("average", "fold average"), ("refit", "refit")):
        pairs = [(float(row[what]), float(row[f"upper_{what}"])) for row in rows]
        made[f"R, {words}"] = f"{median(error for error, _ in pairs):.3g}"
        made[f"U − R, {words}"] = f"{median(upper - error for error, upper in pairs):.3g}"
        made[f"U / R, {words}"] = f"{median(upper / error for error, upper in pairs):.2f}"
    return made | {"seeds": str(len(rows))}


def main() -> None:
    chosen = tables.arguments(__doc__)
    rows = tables.fill(tables.folder(chosen.quick) / "widths.csv", jobs(chosen.quick), chosen.anew)
    print(tables.markdown(summary(rows)))


if __name__ == "__main__":
    main()
