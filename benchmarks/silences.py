"""What the paper's experiments leave unsaid, and how much each of it decides.

python benchmarks/silences.py [--runs 6] [--experiment 2]

The experiments with the recipe `paper`, one unsaid default changed at a time. Written to
benchmarks/results/silences.csv: the maximum loss of MALocate(∞) over the oracle's, uniform's and
MALocate(1)'s; the summed loss of MALocate(1), and of the oracle for p = 1, over uniform's; all
averaged over the run on a log scale. Also by which factor the maximum loss of MALocate(∞) falls
after the hardest matrix's cap, and where it ends.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import tables

from malocate import Compute, Design, MALocate, Oracle, SoftImpute, simulate
from malocate.experiments.claims import Curves, around_the_caps, interval
from malocate.experiments.paper import STRATEGIES, Experiment, design_of, experiment
from malocate.experiments.reproduce import COLUMNS, Task
from malocate.experiments.sharing import SharedFits

VARIANTS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "bound: R̂ alone": {"confidence": 0.0},
    "bound: R̂ + 1 standard error": {"confidence": 1.0},
    "bound: R̂ + 4 standard errors": {"confidence": 4.0},
    "bound: R̂ + 8 standard errors": {"confidence": 8.0},
    "bound: R̂ + 16 standard errors": {"confidence": 16.0},
    "keep only if lower": {"keep": "best"},
    "penalty: universal": {"estimator": SoftImpute(penalty="universal")},
    "no cap": {"cap": None},
    "seen cells keep their answers": {"seen": "answered"},
    "deliver a fit to all answers": {"deliver": "refit"},
}


SUMMED = "oracle-1"
"""The oracle for p = 1: true errors in MALocate(1)'s rule."""


def varied(design: Design, change: dict[str, Any]) -> Design:
    """Give the design with one default changed; all but MALocate ignore its confidence."""
    change = dict(change)
    if "cap" in change:
        cap = change.pop("cap")
        design = replace(design, segments=tuple(replace(s, cap=cap) for s in design.segments))
    if "confidence" in change:
        confidence = change.pop("confidence")
        if isinstance(design.strategy, MALocate):
            change["strategy"] = replace(design.strategy, confidence=confidence)
    return replace(design, **change)


def rows_of(problem: Experiment, change: dict[str, Any], run: int) -> Any:
    import pandas

    task = Task(problem.number, "paper", run, 0)
    change = dict(change)
    seen = change.pop("seen", "completed")
    sources, shared, frames = problem.sources(0), SharedFits(), []
    designs = {name: design_of(problem, "paper", name, task.draws_seed) for name in STRATEGIES}
    designs[SUMMED] = replace(designs["oracle"], strategy=Oracle(p=1))
    for strategy, as_it_is in designs.items():
        design = varied(as_it_is, change)
        maps = {} if design.keep == "best" else {"map_of": shared.map_of}
        frame = simulate(design, sources, progress=False, seen=seen, **maps).frame()
        caps = {each.name: each.cap for each in design.segments}
        capped = frame[f"n_{problem.hardest}"] == caps[problem.hardest]
        frames.append(frame.assign(strategy=strategy, capped=capped))
    rows = pandas.concat(frames, ignore_index=True)
    rows = rows.assign(experiment=problem.number, recipe="paper", run=run)
    return rows[[*COLUMNS, "capped"]]


RATIOS = (
    ("over oracle", "malocate-inf", "oracle", "loss_inf"),
    ("over uniform", "malocate-inf", "uniform", "loss_inf"),
    ("over MALocate(1)", "malocate-inf", "malocate-1", "loss_inf"),
    ("MALocate(1) over uniform", "malocate-1", "uniform", "loss_1"),
    ("oracle for p = 1 over uniform", SUMMED, "uniform", "loss_1"),
)


def summary(number: int, variant: str, rows: Any) -> dict[str, object]:
    curves = Curves(rows)
    line: dict[str, object] = {"experiment": number, "changed": variant}
    line["runs"] = rows["run"].nunique()
    for name, one, two, loss in RATIOS:
        mean, low, high = interval(curves.ratio(one, two, loss))
        line |= {name: mean, f"{name}, low": low, f"{name}, high": high}
    falls = around_the_caps(curves, "malocate-inf")
    after = interval(falls[:, 0]) if len(falls) else ("", "", "")
    names = ("after the cap", "after the cap, low", "after the cap, high")
    line |= dict(zip(names, after, strict=True))
    last = curves.of("malocate-inf", "loss_inf")[:, -1]
    return line | {"loss_inf at the end": float(np.mean(last))}


def main() -> None:
    import pandas

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--experiment", type=int, choices=(1, 2), action="append")
    chosen = parser.parse_args()
    path, numbers = tables.RESULTS / "silences.csv", chosen.experiment or [1, 2]
    kept = [dict(row) for row in tables.read(path) if int(row["experiment"]) not in numbers]
    for number, (variant, change) in product(numbers, VARIANTS.items()):
        rows = partial(rows_of, experiment(number), change)
        runs = Compute(jobs=-1).map(rows, range(chosen.runs))
        kept.append(summary(number, variant, pandas.concat(runs)))
        print(kept[-1], flush=True)
        columns = list(kept[-1])
        whole = [{name: row.get(name, "") for name in columns} for row in kept]
        tables.write(path, sorted(whole, key=lambda row: int(row["experiment"])))


if __name__ == "__main__":
    main()
