"""Replays of three real data sets: MALocate and Uniform on the same answers, judged by others.

python benchmarks/real_data.py            # goes on where it was stopped; about three minutes
python benchmarks/real_data.py --quick

A replay holds out about half of each cell's answers by chance, asks for the others, each once, and
judges the completions by the means of those held out, less the noise in these means. Both
strategies see the same split and the same answers in the same order. The `loss` is the design's:
the sum over the segments of the mean squared error of a cell. Fits are shared between the two
strategies, and between the band that is approximate (`skew`) and the one that is certified
(`betting`). A third replay asks uniformly in a single round, so that no look decides anything.
Written to benchmarks/results/real_data.csv.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tables
from threadpoolctl import threadpool_limits

from malocate import (
    Batches,
    Design,
    Growing,
    Loss,
    MALocate,
    Observations,
    Replay,
    Run,
    SoftImpute,
    Uniform,
    examples,
    simulate,
)
from malocate.confidence.tails import student_reach
from malocate.experiments.sharing import SharedFits
from malocate.problem.arrays import Floats

Row = dict[str, Any]
SEEDS = 20
STRATEGIES = {"MALocate": MALocate(), "Uniform": Uniform()}
AT_ONCE = "Uniform in one round"
"""No look decides anything: what the estimates of the error are worth by themselves."""
WORSE = 1.05  # a loss over uniform's that would be too much


@dataclass(frozen=True)
class DataSet:
    """What is replayed: where it comes from, its scale, what may be asked, and in which unit."""

    load: Callable[[], Any]
    scale: tuple[float, float]
    budget: int
    unit: str
    times: float = 1.0


DATA = {
    "french fries": DataSet(examples.french_fries, (0, 15), 600, "points of 15"),
    "polls": DataSet(examples.us_polls, (0, 1), 800, "percentage points", 100.0),
    "spending": DataSet(examples.spending, (-1, 1), 1_000, "points from −1 to 1"),
}


@dataclass(frozen=True)
class World:
    """One split of a data set: who answers, what is held out, and the design to be replayed."""

    sources: dict[str, Replay]
    held: dict[str, Observations]
    design: Design
    fits: SharedFits


def world(name: str, seed: int, budget: int) -> World:
    """Split a data set by chance; the design is the one on the data set's page."""
    data = DATA[name]
    asked, held = examples.split(data.load(), rng=seed)
    sources = Replay.from_frame(asked, replace=False, scale=data.scale)
    kept = Observations.from_frame(held, segment="segment", scale=data.scale)
    design = Design(
        [source.segment(segment) for segment, source in sources.items()],
        budget=budget,
        loss=Loss(p=1, weights="per_entry"),
        estimator=SoftImpute(centre="additive"),
        schedule=Growing(per_side=2),
        bound="skew",
        seed=seed,
    )
    return World(sources, kept, design, SharedFits())


def measure(name: str, seed: int, budget: int, wanted: Sequence[str]) -> dict[str, Row]:
    """Replay one split of a data set by each strategy, and judge it."""
    made = world(name, seed, budget)
    with threadpool_limits(1):
        return {strategy: judged(made, replayed(made, strategy)) for strategy in wanted}


def replayed(made: World, strategy: str) -> dict[str, Run]:
    """Replay a split by one strategy, once for each kind of band."""
    design = replace(made.design, strategy=STRATEGIES.get(strategy, Uniform()))
    if strategy == AT_ONCE:
        whole = int(design.budget)
        design = replace(design, schedule=Batches(size=whole, first=whole))
    told = {"progress": False, "map_of": made.fits.map_of}
    return {
        bound: simulate(replace(design, bound=bound), made.sources, **told)
        for bound in ("skew", "betting")
    }


def judged(made: World, runs: dict[str, Run]) -> Row:
    """Hold completions and bands against the answers that were held out."""
    run, certified = runs["skew"], runs["betting"]
    errors, averages = (
        np.array([_error(made, name, found) for name, found in each.items()])
        for each in (run.completions, {name: band.ensemble for name, band in run.bands.items()})
    )
    bands = list(run.bands.values())
    uppers, sure = (np.array([b.upper for b in r.bands.values()]) for r in (run, certified))
    last = run.frame().iloc[-1]
    return {
        "loss": float(errors.sum()),
        "loss of the fold averages": float(averages.sum()),
        "estimated": math.fsum(band.estimate for band in bands),
        "segments": len(errors),
        "held": int((uppers >= errors).sum()),
        "certified held": int((sure >= errors).sum()),
        "bound": float(uppers.sum()),
        "certified bound": float(sure.sum()),
        "answers": " ".join(str(int(last[f"n_{name}"])) for name in run.completions),
    }


def _error(made: World, name: str, found: Any) -> float:
    return examples.held_out_error(found, made.sources[name].pool, made.held[name]).error


def jobs(
    quick: bool, pool: Executor, there: Sequence[dict[str, str]]
) -> Iterator[tuple[Row, Callable[[], Row]]]:
    """One job for each data set, split and strategy; what a split has no rows of runs at once."""
    keys = [(name, seed) for seed in range(2 if quick else SEEDS) for name in DATA]
    begun = {}
    for name, seed in keys:
        key = {"data": name, "seed": seed}
        known = {row["strategy"] for row in tables.matching(there, key)}
        if missing := [each for each in (*STRATEGIES, AT_ONCE) if each not in known]:
            budget = DATA[name].budget // (2 if quick else 1)
            begun[name, seed] = missing, pool.submit(measure, name, seed, budget, missing)
    for (name, seed), (missing, done) in begun.items():
        for strategy in missing:
            key = {"data": name, "seed": seed, "strategy": strategy}
            yield key, lambda done=done, strategy=strategy: done.result()[strategy]


def summary(rows: Sequence[dict[str, str]], only: str | None = None) -> list[Row]:
    """One line for each data set: losses, their paired ratio, and the bands."""
    return [_line(name, rows) for name in DATA if only in (None, name) and _of(rows, name, "loss")]


def _line(name: str, rows: Sequence[dict[str, str]]) -> Row:
    own, other = (_column(rows, name, "loss", strategy) for strategy in STRATEGIES)
    mean, reach = ratio(own, other)
    rows = [row for row in rows if row["strategy"] in STRATEGIES]
    count = _column(rows, name, "segments").sum()
    return {
        "data": name,
        "RMSE, MALocate": _rmse(name, rows, "MALocate"),
        "RMSE, Uniform": _rmse(name, rows, "Uniform"),
        "MALocate's loss over Uniform's": f"{mean:.3f}",
        "95 % interval": f"{mean - reach:.3f} – {mean + reach:.3f}",
        "more than 5 % worse": "excluded" if mean + reach < WORSE else "**not excluded**",
        "replays": len(own),
    } | {
        f"{words} hold": f"{_column(rows, name, held).sum() / count:.3f}"
        for words, held in (("approximate bands", "held"), ("certified bands", "certified held"))
    }


def bands(rows: Sequence[dict[str, str]], only: str | None = None) -> list[Row]:
    """How wide the bands are, and how near the estimates of the error come."""
    lines = []
    for name in DATA:
        if only in (None, name) and _of(rows, name, "loss"):
            both = [row for row in rows if row["strategy"] in STRATEGIES]
            loss, bound, sure = (
                _column(both, name, what).mean() for what in ("loss", "bound", "certified bound")
            )
            lines.append(
                {
                    "data": name,
                    "approximate bound over the error": f"{math.sqrt(bound / loss):.2f}",
                    "certified bound over the error": f"{math.sqrt(sure / loss):.2f}",
                    **_estimated(rows, name),
                    "answers by MALocate": _answers(rows, name, "MALocate"),
                    "by Uniform": _answers(rows, name, "Uniform"),
                }
            )
    return lines


def _estimated(rows: Sequence[dict[str, str]], name: str) -> Row:
    """How near the estimates come: by a strategy that goes by them, and by some that do not."""
    found = {}
    for strategy in (*STRATEGIES, AT_ONCE):
        if _of(rows, name, "loss", strategy):
            average = _column(rows, name, "loss of the fold averages", strategy)
            told, reach = ratio(_column(rows, name, "estimated", strategy), average)
            words = f"estimate over held-out error, {strategy}"
            found[words] = f"{told:.3f} ± {reach:.3f}"
    return found


def ratio(one: Floats, two: Floats) -> tuple[float, float]:
    """The ratio of two paired means, and how far its 95 % interval reaches on each side."""
    mean = float(one.mean() / two.mean())
    return mean, float(student_reach((one - mean * two) / abs(float(two.mean()))))


def _of(rows: Sequence[dict[str, str]], name: str, what: str, strategy: str = "") -> list[str]:
    return [r[what] for r in rows if r["data"] == name and strategy in ("", r["strategy"])]


def _column(rows: Sequence[dict[str, str]], name: str, what: str, strategy: str = "") -> Floats:
    return np.array([float(value) for value in _of(rows, name, what, strategy)])


def _rmse(name: str, rows: Sequence[dict[str, str]], strategy: str) -> str:
    """The root of the mean error of a cell, segments counting alike, in the data's own unit."""
    errors = _column(rows, name, "loss", strategy) / _column(rows, name, "segments", strategy)
    return f"{DATA[name].times * math.sqrt(max(0.0, errors.mean())):.3g} {DATA[name].unit}"


def _answers(rows: Sequence[dict[str, str]], name: str, strategy: str) -> str:
    told = [[int(each) for each in text.split()] for text in _of(rows, name, "answers", strategy)]
    return ", ".join(f"{mean:.0f}" for mean in np.mean(told, axis=0))


def main() -> None:
    chosen = tables.arguments(__doc__)
    path = tables.folder(chosen.quick) / "real_data.csv"
    there = [] if chosen.anew else tables.read(path)
    with ProcessPoolExecutor(2) as pool:
        rows = tables.fill(path, jobs(chosen.quick, pool, there), chosen.anew)
    print(tables.markdown(summary(rows)))
    print(tables.markdown(bands(rows)))


if __name__ == "__main__":
    main()
