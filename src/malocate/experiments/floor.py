"""The floor: what one could do who knew every rank, and so the good allocation too."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from malocate.confidence.judgement import fit_all
from malocate.design import Design
from malocate.estimators.low_rank import LowRankLeastSquares
from malocate.experiments.paper import Experiment, name_of
from malocate.experiments.simulation import Panel
from malocate.problem import Loss
from malocate.rounds import Batch
from malocate.sources import Synthetic
from malocate.strategies import GoodAllocation, Standing

if TYPE_CHECKING:
    import pandas

SHARES = (1.0,)
"""Shares of the budget at which the floor is measured: a static allocation is for one budget."""

FLOORS = {"floor-1": 1.0, "floor-inf": math.inf}
"""The floors by name, and the p of the loss that each allocates for."""


def frames(
    problem: Experiment, sources: Mapping[str, Synthetic], design: Design
) -> list[pandas.DataFrame]:
    """Give the losses of true-rank least squares with the good allocation, for p = 1 and ∞.

    The draws and answers are those of the other strategies with the design's seed.
    """
    import pandas

    found = []
    for name, p in FLOORS.items():
        targets = _targets(problem, p)
        errors = [
            _errors(problem, place, design, sources, [share * target for share in SHARES])
            for place, target in enumerate(targets)
        ]
        lines = [
            {"spent": share * problem.budget, **_losses(problem, each)}
            for share, each in zip(SHARES, zip(*errors, strict=True), strict=True)
        ]
        found.append(pandas.DataFrame(lines).assign(strategy=name, capped=False))
    return found


def _targets(problem: Experiment, p: float) -> list[float]:
    """Give each segment's share of the budget by the good allocation."""
    good = GoodAllocation.of(problem.segments(), problem.ranks, p=p)
    cells = problem.side**2
    wanted = [good.target(Standing(each.name, cells)) for each in problem.segments()]
    return [problem.budget * each / sum(wanted) for each in wanted]


def _errors(
    problem: Experiment,
    place: int,
    design: Design,
    sources: Mapping[str, Synthetic],
    sizes: list[float],
) -> list[float]:
    """Give one segment's true errors after each of the sizes, in rising order."""
    name = name_of(place)
    panel = Panel(design.segments[place], sources[name])
    estimator = LowRankLeastSquares(rank=problem.ranks[place])
    errors: list[float] = []
    asked = 0
    for size in map(round, sizes):
        panel.ask(design, Batch(place, name, asked, size))
        asked = size
        error = panel.error_of(fit_all(estimator, panel.answers))
        errors.append(math.nan if error is None else error)
    return errors


def _losses(problem: Experiment, errors: tuple[float, ...]) -> dict[str, float]:
    frobenius = [problem.side**2 * error for error in errors]
    return {"loss_1": Loss(1).of(frobenius), "loss_inf": Loss().of(frobenius)}
