"""How often the bounds hold, and how wide they are: many campaigns with a known truth.

python benchmarks/bands.py                 # every world; goes on where it was stopped
python benchmarks/bands.py --quick         # few campaigns, small
python benchmarks/bands.py --summary       # only writes docs/coverage.md and its picture anew

A campaign asks about one matrix and looks at it again and again, at sizes fixed beforehand;
every tenth draw re-asks the one before it. At each look the folds are fitted, from where they
stood at the last look, and every bound is held against the true error of the fold average.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Any

import bands_page
import numpy as np
import tables
from threadpoolctl import threadpool_limits

from malocate import (
    Anytime,
    Band,
    Estimator,
    LowRankLeastSquares,
    Observations,
    SoftImpute,
    error_band,
)
from malocate.confidence.bounds import BOUNDS, Bound
from malocate.confidence.estimates import ESTIMATES

SIDE, RANK, DELTA = 50, 3, 0.05
LOOKS, FIRST, LAST = 50, 250, 5000
SIZES = tuple(sorted({round(FIRST * (LAST / FIRST) ** (i / (LOOKS - 1))) for i in range(LOOKS)}))
SHOWN = (500, 1500, 5000)  # answers at which single looks are reported
EVERY = 10  # each draw of this number re-asks the one before
ESTIMATORS: dict[str, tuple[Estimator, str]] = {
    "SoftImpute": (SoftImpute("universal"), "crossfit"),
    "LowRankLeastSquares": (LowRankLeastSquares(tune="local"), "holdout"),
}

Noise = Callable[[np.random.Generator, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class World:
    """A kind of answer: noise around a low-rank matrix, or ratings on a scale."""

    name: str
    noise: Noise
    ratings: bool = False
    alike: float = 0.0  # correlation of a replicate's error with its draw's
    estimators: tuple[str, ...] = ("SoftImpute",)
    runs: int = 40
    bounds: tuple[str, ...] = ("skew", "normal", "moment")
    pace: int = 2  # of all sizes, each of this number is looked at

    @property
    def sizes(self) -> tuple[int, ...]:
        return SIZES[self.pace - 1 :: self.pace]

    def campaign(self, seed: int) -> tuple[np.ndarray, Observations]:
        """Give the truth, and all the answers that will ever be given."""
        rng = np.random.default_rng([seed, 4711])
        left, right = (RANK**-0.25 * rng.standard_normal((SIDE, RANK)) for _ in range(2))
        latent = left @ right.T
        rows, cols = rng.integers(SIDE, size=(2, LAST))
        repeats = np.full(LAST, -1)
        again = np.arange(EVERY - 1, LAST, EVERY)
        rows[again], cols[again], repeats[again] = rows[again - 1], cols[again - 1], again - 1
        normal = rng.standard_normal(LAST)
        kept = math.sqrt(1 - self.alike**2)
        normal[again] = self.alike * normal[again - 1] + kept * normal[again]
        spread = self.noise(rng, rows * SIDE + cols)
        settings: dict[str, Any] = {"shape": latent.shape, "repeats": repeats}
        if not self.ratings:
            return latent, Observations(
                rows, cols, latent[rows, cols] + spread * normal, **settings
            )
        values = np.clip(np.floor(latent[rows, cols] + 3.5 + spread * normal), 1, 5)
        return _mean_rating(latent, 0.5), Observations(rows, cols, values, scale=(1, 5), **settings)


def _steady(deviation: float) -> Noise:
    return lambda _, cells: np.full(len(cells), deviation)


def _heavy(rng: np.random.Generator, cells: np.ndarray) -> np.ndarray:
    """Deviations that make normal noise Student's t with three degrees of freedom."""
    return 0.5 / np.sqrt(rng.chisquare(3, size=len(cells)))


def _uneven(_: np.random.Generator, cells: np.ndarray) -> np.ndarray:
    """A deviation of each cell's own, from .1 to 1.5."""
    place = np.random.default_rng(99).permutation(SIDE * SIDE) / SIDE**2
    return 0.1 + 1.4 * place[cells]


def _mean_rating(latent: np.ndarray, noise: float) -> np.ndarray:
    from scipy.special import ndtr

    return 1 + sum(ndtr((latent + 3 - (answer - 0.5)) / noise) for answer in range(2, 6))


ON_A_SCALE = ("betting", "bernstein", "hoeffding", "skew", "normal", "moment", "paper")
WORLDS = (
    World(
        "ratings 1–5", _steady(0.5), ratings=True, bounds=ON_A_SCALE,
        estimators=("SoftImpute", "LowRankLeastSquares"), pace=1, runs=100,
    ),
    World("normal, σ = .1", _steady(0.1)),
    World("normal, σ = 1", _steady(1.0)),
    World("heavy tails (t₃)", _heavy),
    World("σ from .1 to 1.5 by cell", _uneven),
    World("ratings, replicates alike (+.5)", _steady(0.5), True, 0.5, bounds=ON_A_SCALE),
    World("ratings, replicates unlike (−.5)", _steady(0.5), True, -0.5, bounds=ON_A_SCALE),
)  # fmt: skip


@dataclass
class Record:
    """How one bound fared in one campaign."""

    first_spent: int = 0  # the first look at which it failed, with its share of delta; 0: none
    first_fixed: int = 0  # the same with the whole of delta at every look
    held: dict[int, bool] = field(default_factory=dict)  # single looks, with the whole of delta
    width: dict[int, float] = field(default_factory=dict)  # bound over error at them

    def row(self) -> dict[str, Any]:
        single = {f"held_{size}": int(held) for size, held in self.held.items()}
        widths = {f"width_{size}": width for size, width in self.width.items()}
        failed = {"failed_spent": self.first_spent, "failed_fixed": self.first_fixed}
        return failed | single | widths


def campaign(world: World, estimator: str, seed: int, looks: int) -> list[dict[str, Any]]:
    """Run one campaign; give a row for each bound."""
    truth, answers = world.campaign(seed)
    grid, band = Anytime(DELTA, sizes=world.sizes), None
    records = {name: Record() for name in world.bounds}
    with threadpool_limits(1):
        for number, size in enumerate(world.sizes[:looks], 1):
            band = look(estimator, answers.take(slice(0, size)), band)
            error = float(np.mean((band.ensemble.dense() - truth) ** 2))
            for name, record in records.items():
                judge(record, BOUNDS[name](), band, error, number, grid)
    key = {"world": world.name, "estimator": estimator, "seed": seed}
    return [key | {"bound": name} | record.row() for name, record in records.items()]


def look(name: str, seen: Observations, before: Band | None) -> Band:
    estimator, scheme = ESTIMATORS[name]
    settings: dict[str, Any] = {"deliver": "ensemble", "bound": "normal", "check_uniform": False}
    return error_band(estimator, seen, scheme=scheme, start=before, **settings)


def judge(
    record: Record, bound: Bound, band: Band, error: float, number: int, grid: Anytime
) -> None:
    kind = "pairs" if bound.name == "paper" else "residual"
    estimate = ESTIMATES[kind](band.evidence)
    fixed = bound.of(band.evidence, estimate, DELTA)
    spent = bound.of(band.evidence, estimate, grid.delta_at(number))
    if spent < error and not record.first_spent:
        record.first_spent = number
    if fixed < error and not record.first_fixed:
        record.first_fixed = number
    size = grid.size(number)
    for shown in SHOWN:
        if size == min(grid.sizes or (), key=lambda each, shown=shown: abs(each - shown)):
            record.held[shown], record.width[shown] = fixed >= error, fixed / error


def jobs(quick: bool) -> Iterator[tuple[World, str, int, int]]:
    for world in WORLDS[:2] if quick else WORLDS:
        for estimator in world.estimators[: 1 if quick else None]:
            for seed in range(1, 3 if quick else world.runs + 1):
                yield world, estimator, seed, 12 if quick else LOOKS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few campaigns with few looks")
    parser.add_argument("--anew", action="store_true", help="forget earlier rows")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at a time")
    parser.add_argument("--summary", action="store_true", help="only write the page anew")
    chosen = parser.parse_args()
    path = tables.folder(chosen.quick) / "coverage.csv"
    rows: list[dict[str, Any]] = [] if chosen.anew else tables.read(path)
    known = {(row["world"], row["estimator"], int(row["seed"])) for row in rows}
    todo = [job for job in jobs(chosen.quick) if (job[0].name, *job[1:3]) not in known]
    if not chosen.summary:
        os.environ["NUMBA_NUM_THREADS"] = "1"
        with ProcessPoolExecutor(chosen.jobs) as pool:
            for count, done in enumerate(as_completed([pool.submit(*_call(job)) for job in todo])):
                rows += [row | tables.machine() for row in done.result()]
                if count % 10 == 9 or count == len(todo) - 1:
                    tables.write(path, sorted(rows, key=_order))
    if not chosen.quick:
        bands_page.write()


def _call(job: tuple[World, str, int, int]) -> tuple[Any, ...]:
    world, *rest = job
    return campaign_of, WORLDS.index(world), *rest


def campaign_of(world: int, estimator: str, seed: int, looks: int) -> list[dict[str, Any]]:
    """Run one campaign in another process, which knows the worlds by their place."""
    return campaign(WORLDS[world], estimator, seed, looks)


def _order(row: dict[str, Any]) -> tuple[Any, ...]:
    names = [world.name for world in WORLDS]
    return names.index(row["world"]), row["estimator"], row["bound"], int(row["seed"])


if __name__ == "__main__":
    main()
