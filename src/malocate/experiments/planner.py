"""Plan a survey: what a budget will buy, and what a target will cost, seen on many twins.

Each run plays three strategies on one set of twins: the design's own, asking all alike, and the
good allocation of somebody who knew the ranks. Intervals run over the runs: with N of them, the
lowest and the highest of N numbers hold another one of their kind with a chance of (N − 1)/(N + 1).
That is the chance for a real campaign, too, if it is like the twins.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace

from malocate.compute import Compute
from malocate.design import Design
from malocate.errors import InvalidInput
from malocate.experiments.pilot import plausible_twins
from malocate.experiments.playing import Curve, Path, play
from malocate.experiments.survey_plan import GOOD, UNIFORM, Played, SurveyPlan
from malocate.experiments.twins import twins
from malocate.problem import Observations
from malocate.problem.settings import check_count, check_positive
from malocate.sources import Synthetic
from malocate.strategies import GoodAllocation, Strategy, Uniform
from malocate.strategies.choosing import at_once

RUNS = 20
"""Twins by default: their range holds another of its kind in 9 of 10 cases."""

MOST = 4.0
"""How many times the budget may be spent to meet a target."""

Target = float | Mapping[str, float]
Show = Callable[[str, float], None]


def plan_survey(
    design: Design,
    pilot: Mapping[str, Observations] | None = None,
    *,
    target: Target | None = None,
    budget: float | None = None,
    ranks: Mapping[str, int] | int | None = None,
    noise: float | None = None,
    runs: int = RUNS,
    compute: Compute | None = None,
    most: float = MOST,
    show: Show = lambda *_: None,
) -> SurveyPlan:
    """Foretell the errors of a survey at each budget, and what a target will take.

    - `pilot`: answers by segment, from which twins are made that may all be behind them. Without
      one, twins have the `ranks` and the `noise` that are given; see `twins`.
    - `target`: the root mean squared error that every segment is to reach, or one for each name;
      by default the design's `rmse`.
    - `budget`: by default the design's. For a target, up to `most` times as much is tried.
    - `runs`: how many twins.
    - `compute`: where they are played, by default as the design says.

    It is seen in simulation, and promises nothing.

    >>> from malocate import Design, Segment, SoftImpute
    >>> segments = [Segment("north", (20, 15), scale=(1, 5)), Segment("south", (15, 15))]
    >>> design = Design(segments, budget=900, estimator=SoftImpute())
    >>> plan = plan_survey(design, ranks={"north": 3, "south": 1}, runs=3)
    >>> plan.level, sorted(plan.forecast("uniform"))
    (0.5, ['north', 'south'])
    """
    check_count("runs", runs, least=2)
    design = _planned(design, target, budget)
    check_positive("most", most)
    sets = _twins(design, pilot, ranks, noise, runs)
    cap = max(1.0, most) * design.budget if design.targets is not None else design.budget
    tasks = [(replace(design, seed=design.seed + run), *each, cap) for run, each in enumerate(sets)]
    played = []
    compute = design.compute if compute is None else compute
    with closing(compute.each(_played, tasks)) as twins:
        for done, each in enumerate(twins, start=1):
            played.append(each)
            show("twins", done)
    known = [] if pilot is None else [name for name, each in pilot.items() if len(each)]
    told = tuple(own for own, _ in sets)
    return SurveyPlan(design, tuple(played), told, cap, None if pilot is None else tuple(known))


def _planned(design: Design, target: Target | None, budget: float | None) -> Design:
    """Give the design with the budget and the target that are asked about."""
    if design.schedule.fresh:
        raise InvalidInput(
            "The schedule judges fresh draws alone; a plan is for designs that use every answer. "
            "Simulate this one instead."
        )
    rmse = design.rmse if target is None else target
    budget = design.budget if budget is None else budget
    return replace(design, rmse=rmse, budget=budget, epsilon=None)


def _twins(
    design: Design,
    pilot: Mapping[str, Observations] | None,
    ranks: Mapping[str, int] | int | None,
    noise: float | None,
    runs: int,
) -> list[tuple[dict[str, int], dict[str, Synthetic]]]:
    """Give each run's twins, and the ranks that the good allocation is told."""
    if pilot is not None:
        if ranks is not None or noise is not None:
            raise InvalidInput("A pilot tells ranks and noise; give it, or them, not both.")
        shapes = {segment.name: segment.shape for segment in design.segments}
        return [
            ({name: like.effective_rank(shapes[name]) for name, like in likes.items()}, sources)
            for likes, sources in plausible_twins(design, pilot, runs, design.seed)
        ]
    made = [twins(design, ranks, noise=noise, seed=design.seed + run) for run in range(runs)]
    return [({name: each.left.shape[1] for name, each in set_.items()}, set_) for set_ in made]


Task = tuple[Design, dict[str, int], dict[str, Synthetic], float]


def _played(task: Task) -> Played:
    """Play the strategies on one set of twins."""
    design, ranks, sources, cap = task
    places = {segment.name: place for place, segment in enumerate(design.segments)}
    curves = [Curve.of(design, place, sources[name]) for name, place in places.items()]
    several = at_once(design.strategy)
    strategies: dict[str, Strategy] = {
        type(design.strategy).__name__: design.strategy,
        UNIFORM: Uniform(parallel_segments=several),
        GOOD: GoodAllocation.of(design.segments, ranks, design.loss.p, several),
    }
    paths: dict[str, Path] = {
        name: play(design, each, curves, budget=design.budget, most=cap, targets=design.targets)
        for name, each in strategies.items()
    }
    noises = [curve.noise for curve in curves]
    return Played(paths, tuple(curve.known for curve in curves), tuple(map(math.sqrt, noises)))
