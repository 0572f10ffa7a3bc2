"""The paper's two ways to run: its Algorithm 1, and its experiments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from malocate.confidence.bounds import Paper
from malocate.confidence.schemes import Halves, OnceVsMulti
from malocate.design.design import Design
from malocate.design.schedules import Batches, Doubling
from malocate.errors import InvalidInput
from malocate.estimators.soft_impute import SoftImpute
from malocate.estimators.square_root_lasso import SquareRootLasso
from malocate.problem import Loss, Segment
from malocate.strategies import MALocate

ROUNDS = 100
"""About how many sub-samples the experiments cut the budget into, after the first answers."""

PER_LINE = 8
"""Answers for each line of the longer side with which the experiments begin."""


def paper_algorithm(
    segments: Iterable[Segment],
    budget: float,
    p: float,
    *,
    C: float = 1.0,
    largest: float | None = None,
    epsilon: float | None = None,
    **settings: Any,
) -> Design:
    """Give Algorithm 1: doubling with fresh answers, square-root lasso, halves, the best kept.

    `C` is the penalty's constant, which the paper leaves open, and `largest` the paper's A: by
    default half of a segment's scale, and without a scale the largest answer seen. With an
    `epsilon`, log(1/δ) takes the place of log d in the bound.

    >>> from malocate import Design, Segment
    >>> design = Design.paper_algorithm([Segment("a", (20, 20), scale=(-1, 1))], budget=1_000)
    >>> design.grids[0].size(1), design.keep, design.bound.name
    (124, 'best', 'paper')
    """
    chosen: dict[str, Any] = {
        "loss": Loss(p),
        "estimator": SquareRootLasso(C=C),
        "validation": Halves(),
        "estimate": "pairs",
        "bound": Paper(largest=largest, by="dimension" if epsilon is None else "delta"),
        "deliver": "ensemble",
        "strategy": MALocate(p=p, by="upper"),
        "schedule": Doubling(),
        "replicates": 0.0,
        "pooled": False,
        "keep": "best",
        "epsilon": epsilon,
    }
    return Design(tuple(segments), budget, **(chosen | settings))


def paper_experiment(
    segments: Iterable[Segment],
    budget: float,
    p: float,
    *,
    rounds: int = ROUNDS,
    **settings: Any,
) -> Design:
    """Give the experiments' design: 8 d answers first, then about `rounds` equal sub-samples.

    All answers of a segment are used at every look: entries seen once train SoftImpute with
    fancyimpute's penalty, those seen twice or more judge it, R̂ + 2 standard errors decides, and
    a segment may be asked as often as it has cells.

    >>> from malocate import Design, Segment
    >>> segments = [Segment(str(k), (200, 200)) for k in range(10)]
    >>> design = Design.paper_experiment(segments, budget=200_000)
    >>> design.schedule, design.segments[0].cap
    (Batches(size=1840, first=None), 40000)
    """
    listed = tuple(
        replace(each, cap=each.n_askable) if each.cap is None else each for each in segments
    )
    chosen: dict[str, Any] = {
        "loss": Loss(p),
        "estimator": SoftImpute(penalty="fancyimpute"),
        "validation": OnceVsMulti(),
        "estimate": "pairs",
        "bound": "normal",
        "deliver": "ensemble",
        "strategy": MALocate(p=p, confidence=2.0),
        "schedule": experiment_grid(listed, budget, rounds),
        "replicates": 0.0,
        "pooled": False,
    }
    return Design(listed, budget, **(chosen | settings))


def experiment_grid(segments: Iterable[Segment], budget: float, rounds: int = ROUNDS) -> Batches:
    """Give the sub-samples of the experiments: what the first answers leave, in equal parts."""
    first = sum(_first(segment) * segment.cost for segment in segments)
    if first >= budget:
        raise InvalidInput(
            f"The first answers, {PER_LINE} for each line, cost {first:,g} and the budget is "
            f"{budget:,g}; raise it, or choose another schedule."
        )
    return Batches(size=max(1, round((budget - first) / rounds)))


def _first(segment: Segment) -> int:
    """Give how many answers a segment begins with: no more than its cap."""
    wanted = PER_LINE * segment.longest
    return wanted if segment.cap is None else min(wanted, segment.cap)
