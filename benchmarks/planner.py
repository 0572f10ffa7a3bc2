"""Does a plan's forecast, made from a pilot of a tenth, hold what the campaign then reaches?

python benchmarks/planner.py            # goes on where it was stopped; some eight minutes
python benchmarks/planner.py --quick

50 made-up campaigns of various sizes, noises and ranks, some with fading spectra, some with ratings
from 1 to 5. Each is asked a tenth of its budget as a pilot, all segments alike; the plan sees that
alone. Then the campaign runs, with other draws and in full: MALocate, its folds, its bands. Its
true errors at the end are held against the ranges that the plan foretold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import tables
from joblib import Parallel, delayed

from malocate import (
    Design,
    Loss,
    LowRankLeastSquares,
    Observations,
    SoftImpute,
    Synthetic,
    simulate,
)
from malocate.experiments.planner import plan_survey
from malocate.experiments.simulation import Panel
from malocate.rounds import Batch

CAMPAIGNS = 50
FIRST_SEED = 7_310_000
PILOT = 0.1
JOBS = 2
TARGET = 0.8
ESTIMATORS = {
    "default": LowRankLeastSquares(tune="auto"),
    "SoftImpute": SoftImpute(centre="mean"),
    "rank 6": LowRankLeastSquares(rank=6, centre="mean"),
}
DEFAULT, OTHER = 25, 5
"""Of 25 campaigns one has the default estimator, whose fits take longest; of 5 one "rank 6"."""


@dataclass(frozen=True)
class Campaign:
    """A made-up market, and the design of a survey there."""

    estimator: str
    kinds: tuple[str, ...]
    design: Design
    sources: dict[str, Synthetic]

    @classmethod
    def of(cls, seed: int) -> Campaign:
        rng = np.random.default_rng(seed)
        estimator = _estimator(seed)
        rated, count = bool(rng.random() < 0.5), 2 + int(rng.random() < 0.3)
        made = [_segment(rated, rng) for _ in range(count)]
        sources = {f"town {place}": source for place, (_, source) in enumerate(made, start=1)}
        segments = [source.segment(name) for name, source in sources.items()]
        budget = round(sum(each.n_askable for each in segments) * rng.uniform(0.8, 2.0))
        design = Design(
            segments,
            budget,
            loss=Loss(weights="per_entry"),
            estimator=ESTIMATORS[estimator],
            seed=int(rng.integers(2**31)),
        )
        return cls(estimator, tuple(kind for kind, _ in made), design, sources)

    def pilot(self) -> dict[str, Observations]:
        """Ask a tenth of the budget, all segments alike, with draws of its own."""
        design = replace(self.design, seed=self.design.seed + 1)
        each = round(PILOT * design.budget / len(design.segments))
        found = {}
        for place, segment in enumerate(design.segments):
            panel = Panel(segment, self.sources[segment.name])
            panel.ask(design, Batch(place, segment.name, 0, each))
            found[segment.name] = panel.answers
        return found

    def reached(self) -> dict[str, float]:
        """Run the campaign in full; give each segment's true root mean squared error."""
        run = simulate(self.design, self.sources, progress=False)
        last = run.frame().iloc[-1]
        return {name: float(last[f"error_{name}"]) ** 0.5 for name in self.sources}


def _estimator(seed: int) -> str:
    if seed % DEFAULT == 1:
        return "default"
    return "SoftImpute" if seed % OTHER else "rank 6"


def _segment(rated: bool, rng: np.random.Generator) -> tuple[str, Synthetic]:
    shape = (int(rng.integers(15, 25)), int(rng.integers(12, 20)))
    seed, rank = int(rng.integers(2**31)), int(rng.integers(1, 5))
    if rated:
        noise = float(rng.uniform(0.3, 1.0))
        return f"ratings, rank {rank}", Synthetic.ratings(shape, rank, noise, rng=seed)
    noise = float(np.exp(rng.uniform(np.log(0.1), np.log(0.8))))
    if rng.random() < 0.5:
        return f"rank {rank}", Synthetic.low_rank(shape, rank, noise, rng=seed)
    exponent = float(rng.uniform(1.0, 2.0))
    return f"fading by {exponent:.1f}", Synthetic.decaying(shape, exponent, noise, rng=seed)


def measure(seed: int) -> dict[str, Any]:
    """Plan from the pilot, run in full, compare."""
    campaign = Campaign.of(seed)
    plan = plan_survey(replace(campaign.design, seed=campaign.design.seed + 2), campaign.pilot())
    reached = campaign.reached()
    own = plan.strategies[0]
    told, worst = plan.forecast(own), plan.worst(own)
    inside = [told[name].low <= error <= told[name].high for name, error in reached.items()]
    largest = max(reached.values())
    return {
        "estimator": campaign.estimator,
        "segments": len(reached),
        "kinds": "; ".join(campaign.kinds),
        "budget": campaign.design.budget,
        "pilot": sum(len(each) for each in campaign.pilot().values()),
        "low": worst.low,
        "middle": worst.middle,
        "high": worst.high,
        "reached": largest,
        "inside": worst.low <= largest <= worst.high,
        "segments_inside": sum(inside),
    }


def summary(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """One line for all campaigns, for ratings and for numbers without a scale."""
    rated = [row for row in rows if "ratings" in row["kinds"]]
    free = [row for row in rows if "ratings" not in row["kinds"]]
    groups = {"all": rows, "ratings from 1 to 5": rated, "numbers without a scale": free}
    return [_line(name, own) for name, own in groups.items() if own]


def _line(name: str, rows: list[dict[str, str]]) -> dict[str, str]:
    held = sum(row["inside"] == "True" for row in rows)
    parts = sum(int(row["segments_inside"]) for row in rows), sum(int(r["segments"]) for r in rows)
    wide = tables.median(float(row["high"]) / float(row["low"]) for row in rows)
    ratios = [float(row["reached"]) / float(row["middle"]) for row in rows]
    off = tables.median(max(ratio, 1 / ratio) for ratio in ratios)
    return {
        "campaigns": name,
        "worst RMSE inside its range": f"{held} of {len(rows)} ({held / len(rows):.0%})",
        "target": f"≥ {TARGET:.0%}" if name == "all" else "",
        "segments inside theirs": f"{parts[0]} of {parts[1]} ({parts[0] / parts[1]:.0%})",
        "range, high / low": f"{wide:.2f}",
        "middle off by": f"{off:.2f}×",
    }


def jobs(quick: bool) -> Iterator[tuple[dict[str, Any], Callable[[], dict[str, Any]]]]:
    """Give the campaigns; those of one pair of processes are measured together."""
    for number in range(2 if quick else CAMPAIGNS):
        yield {"campaign": number}, lambda seed=FIRST_SEED + number: measure(seed)


def main() -> None:
    chosen = tables.arguments(__doc__)
    path = tables.folder(chosen.quick) / "planner.csv"
    waiting = [
        (key, job)
        for key, job in jobs(chosen.quick)
        if chosen.anew or not tables.matching(tables.read(path), key)
    ]
    found = Parallel(n_jobs=JOBS, return_as="generator")(delayed(job)() for _, job in waiting)
    done = ((key, lambda row=row: row) for (key, _), row in zip(waiting, found, strict=True))
    rows = tables.fill(path, done, chosen.anew)
    print(tables.markdown(summary(rows)))


if __name__ == "__main__":
    main()
