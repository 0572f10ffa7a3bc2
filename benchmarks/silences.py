"""What the paper's experiments leave unsaid, and how much each of it decides.

python benchmarks/silences.py [--runs 3]

Experiment 1 with the recipe `paper`, one unsaid default changed at a time. Written to
benchmarks/results/silences.csv: the maximum loss of MALocate(∞) over the oracle's and over
uniform's, averaged over the run on a log scale, and both at the end.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

import numpy as np
import tables

from malocate import Design, MALocate, SoftImpute, simulate
from malocate.experiments.claims import Curves, interval
from malocate.experiments.paper import STRATEGIES, Experiment, design_of, experiment
from malocate.experiments.reproduce import COLUMNS, Task
from malocate.experiments.sharing import SharedFits

VARIANTS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "bound: R̂ alone": {"confidence": 0.0},
    "bound: R̂ + 1 standard error": {"confidence": 1.0},
    "bound: R̂ + 4 standard errors": {"confidence": 4.0},
    "keep only if lower": {"keep": "best"},
    "penalty: universal": {"estimator": SoftImpute(penalty="universal")},
    "no cap": {"cap": None},
    "deliver a fit to all answers": {"deliver": "refit"},
}


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


def rows_of(problem: Experiment, run: int, change: dict[str, Any]) -> Any:
    import pandas

    task = Task(problem.number, "paper", run, 0)
    sources, shared, frames = problem.sources(0), SharedFits(), []
    for strategy in ("malocate-inf", "oracle", "uniform"):
        assert strategy in STRATEGIES
        design = varied(design_of(problem, "paper", strategy, task.draws_seed), change)
        maps = {} if design.keep == "best" else {"map_of": shared.map_of}
        frame = simulate(design, sources, progress=False, **maps).frame()
        frames.append(frame.assign(strategy=strategy))
    rows = pandas.concat(frames, ignore_index=True)
    return rows.assign(experiment=problem.number, recipe="paper", run=run)[COLUMNS]


def summary(variant: str, rows: Any) -> dict[str, object]:
    curves = Curves(rows)
    line: dict[str, object] = {"changed": variant, "runs": rows["run"].nunique()}
    for rival in ("oracle", "uniform"):
        mean, low, high = interval(curves.ratio("malocate-inf", rival, "loss_inf"))
        line |= {f"over {rival}": mean, f"over {rival}, low": low, f"over {rival}, high": high}
    last = curves.of("malocate-inf", "loss_inf")[:, -1]
    return line | {"loss_inf at the end": float(np.mean(last))}


def main() -> None:
    import pandas

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    runs = parser.parse_args().runs
    problem, lines = experiment(1), []
    for variant, change in VARIANTS.items():
        rows = pandas.concat([rows_of(problem, run, change) for run in range(runs)])
        lines.append(summary(variant, rows))
        print(lines[-1], flush=True)
    tables.write(tables.RESULTS / "silences.csv", lines)


if __name__ == "__main__":
    main()
