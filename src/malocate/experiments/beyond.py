"""Beyond the paper: how good our defaults get, against the paper's recipe and against the floor."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from malocate.experiments.claims import Claim, Curves, interval
from malocate.problem.arrays import Floats

if TYPE_CHECKING:
    import pandas

NUMBER = 5
"""Where these stand in the table, after the paper's four claims."""

EARLY = 0.45
"""The share of the budget at which the maximum loss is looked at before the end."""

OWN = {"loss_1": "malocate-1", "loss_inf": "malocate-inf"}
"""The strategy that was started for each loss."""


def beyond(rows: pandas.DataFrame) -> list[Claim]:
    """Give what the recipe `best` reaches, and where it passes the recipe `paper`."""
    best = rows[rows["recipe"] == "best"]
    if best.empty:
        return []
    curves = Curves(best)
    found = [*_reached(curves), *_over_the_floor(best)]
    paper = rows[rows["recipe"] == "paper"]
    return found if paper.empty else [*found, _passes(curves, Curves(paper))]


def _reached(curves: Curves) -> list[Claim]:
    """Give the losses at the end, and the maximum loss on the way there."""
    early = int(np.searchsorted(curves.budgets, EARLY * curves.budgets[-1] * (1 + 1e-9))) - 1
    found = []
    for loss, own in OWN.items():
        places = {"the end": -1} | ({f"{EARLY:.0%} of the budget": early} if "inf" in loss else {})
        for text, place in places.items():
            values = curves.of(own, loss)[:, place]
            found.append(_claim(f"{loss} of {own} at {text}", values))
    return found


def _over_the_floor(rows: pandas.DataFrame) -> list[Claim]:
    """Give how far above the floor the losses end."""
    found = []
    for loss, own in OWN.items():
        ends = [_last(rows, name, loss) for name in (own, own.replace("malocate", "floor"))]
        found.append(_claim(f"{loss} of {own} over the floor at the end", ends[0] / ends[1]))
    return found


def _last(rows: pandas.DataFrame, strategy: str, loss: str) -> Floats:
    own = rows[rows["strategy"] == strategy].sort_values("spent")
    return own.groupby("run")[loss].last().to_numpy(dtype=np.float64)


def _passes(best: Curves, paper: Curves) -> Claim:
    """Give the share of the budget with which the paper recipe's last maximum loss is passed."""
    goal = paper.of("malocate-inf", "loss_inf")[:, -1].mean()
    below = best.of("malocate-inf", "loss_inf") <= goal
    measure = "share of the budget to pass the paper recipe's last loss_inf"
    runs, never = len(below), int((~below.any(axis=1)).sum())
    if never:
        verdict = f"not reached in {never} of {runs} runs"
        return Claim(NUMBER, "best", measure, math.nan, math.nan, math.nan, verdict)
    return _claim(measure, best.budgets[below.argmax(axis=1)] / best.budgets[-1])


def _claim(measure: str, values: Floats) -> Claim:
    return Claim(NUMBER, "best", measure, *interval(values), "")
