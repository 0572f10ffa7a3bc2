"""Strategies played on learning curves: a campaign's decisions without its many fits.

In a simulation nearly all time goes into fits that judge. Here each segment of a twin is fitted
at a few sizes only, as the design would fit it, and its true error in between is interpolated.
The strategies are the real ones; what they see is the true error, off by as much as an estimate
from replicates would be.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from malocate.confidence.judgement import fit_all
from malocate.confidence.schemes import CrossFit
from malocate.design import Design
from malocate.experiments.simulation import Panel
from malocate.problem.arrays import Floats
from malocate.rounds import Batch
from malocate.rounds.asking import LARGEST_SHARE
from malocate.rounds.checks import checked
from malocate.sources import Source, Synthetic
from malocate.sources.base import Asked
from malocate.strategies.base import Standing, Strategy

RATIO = 2.0
"""Sizes at which a segment is fitted grow by this factor."""


TAILS = 3.0
"""The variance of a squared miss over its squared mean; 2 if misses were normal."""


@dataclass(eq=False)
class Curve:
    """A segment's true mean squared error against its answers, fitted where it is needed."""

    design: Design
    place: int
    source: Source
    noise: float  # variance of an answer at its cell
    known: dict[int, float] = field(default_factory=dict)

    @classmethod
    def of(cls, design: Design, place: int, source: Synthetic) -> Curve:
        """Give the curve of a twin's segment; nothing is fitted yet."""
        return cls(design, place, source, noise_of(source))

    def error(self, answers: float) -> float:
        """Give the mean squared error after so many answers, on a line between two sizes."""
        if answers < 1:
            return math.inf
        for size in self._around(answers):
            if size not in self.known:
                self.known[size] = self._fitted(size)
        return between(self.known, answers)

    def _around(self, answers: float) -> tuple[int, ...]:
        first = self.design.grids[self.place].size(1)
        if answers < first:
            return (math.ceil(answers),)
        step = math.log(answers / first) / math.log(RATIO)
        sizes = [round(first * RATIO**number) for number in (math.floor(step), math.ceil(step))]
        return tuple(dict.fromkeys(sizes))

    def _fitted(self, size: int) -> float:
        """Ask and complete the segment, and hold the completion against the truth."""
        segment = self.design.segments[self.place]
        panel = Panel(segment, self.source)
        panel.ask(self.design, Batch(self.place, segment.name, 0, size))
        error = panel.error_of(fit_all(self.design.estimator, panel.answers))
        return math.nan if error is None else error


def between(known: Mapping[int, float], answers: float) -> float:
    """Give the error from the sizes that were fitted, on a line of logarithms.

    >>> round(between({100: 0.4, 400: 0.1}, 200), 3)
    0.2
    """
    if answers < 1 or not known:
        return math.inf
    sizes = np.array(sorted(known), dtype=np.float64)
    errors = np.array([max(known[int(size)], 1e-300) for size in sizes])
    return float(np.exp(np.interp(math.log(answers), np.log(sizes), np.log(errors))))


def noise_of(source: Synthetic) -> float:
    """Give the variance of two answers at one cell, on average over all cells.

    >>> round(noise_of(Synthetic.low_rank((60, 40), rank=2, noise=0.5)), 1)
    0.2
    """
    rows, cols = (each.ravel() for each in np.indices(source.shape))
    asked = Asked(rows, cols, np.arange(len(rows)), np.zeros(len(rows), dtype=np.int64))
    one, two = (source.answer(asked, key) for key in ("one", "two"))
    return float(((one - two) ** 2).mean()) / 2


@dataclass(frozen=True, eq=False)
class Path:
    """What a strategy had asked of each segment, round by round, and what it had spent."""

    spent: Floats
    answers: Floats  # rounds × segments
    reached: float  # what was spent when all targets were met; infinite if they never were

    def at(self, budget: float) -> Floats:
        """Give each segment's answers at a budget: of the round under way, a part."""
        return np.array([np.interp(budget, self.spent, each) for each in self.answers.T])


def play(
    design: Design,
    strategy: Strategy,
    curves: Sequence[Curve],
    *,
    budget: float,
    most: float,
    targets: Sequence[float] | None = None,
) -> Path:
    """Let a strategy spend a budget on curves; and more, up to `most`, until targets are met.

    `targets` are root mean squared errors, one for each segment.
    """
    asked = np.zeros(len(curves))
    costs = np.array([segment.cost for segment in design.segments])
    path, reached = [asked], math.inf
    while True:
        left = most - float(asked @ costs)
        now = [_standing(curve, int(n)) for curve, n in zip(curves, asked, strict=True)]
        more = np.array(checked(strategy.plan(now, left), now, left, strategy).answers)
        if not more.any():
            break
        before, asked = asked, asked + more
        path.append(asked)
        if targets is not None and math.isinf(reached) and _met(curves, asked, targets):
            share = _share(partial(_met_within, curves, before, more, targets))
            reached = float((before + share * more) @ costs)
        if float(asked @ costs) >= budget and (targets is None or reached < math.inf):
            break
    answers = np.array(path)
    return Path(answers @ costs, answers, reached)


def _met(curves: Sequence[Curve], asked: Floats, targets: Sequence[float]) -> bool:
    pairs = zip(curves, asked, targets, strict=True)
    return all(curve.error(float(n)) <= target**2 for curve, n, target in pairs)


def _met_within(
    curves: Sequence[Curve], before: Floats, more: Floats, targets: Sequence[float], part: float
) -> bool:
    """Tell whether the targets are met after a part of a round."""
    return _met(curves, before + part * more, targets)


def _share(met: Callable[[float], bool], steps: int = 10) -> float:
    """Give the part of a round after which the targets are met; they are at its end."""
    low, high = 0.0, 1.0
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (low, middle) if met(middle) else (middle, high)
    return high


def _standing(curve: Curve, asked: int) -> Standing:
    """Give what a strategy would see of a segment: an estimate that is off by chance."""
    design, segment = curve.design, curve.design.segments[curve.place]
    size = design.grids[curve.place].next_size(asked)
    fixed = Standing(
        segment.name,
        segment.n_askable,
        asked,
        batch=0 if size is None else size - asked,
        room=math.inf if segment.cap is None else segment.cap - asked,
        short=max(0, segment.floor - asked),
        multiple=design.schedule.multiple,
        weight=design.weights[curve.place],
        cost=segment.cost,
    )
    return fixed if asked == 0 else _judged(fixed, curve)


def judging_share(design: Design) -> float:
    """Give the share of the answers that judge a fit which did not see them.

    >>> from malocate import CrossFit, Segment
    >>> judging_share(Design([Segment("a", (9, 8))], 100, validation=CrossFit(4, 0.05)))
    0.2
    """
    scheme = design.scheme
    if isinstance(scheme, CrossFit):
        return min(1.0, scheme.folds * (scheme.share or 1 / scheme.folds))
    return 0.2


def _judged(fixed: Standing, curve: Curve) -> Standing:
    asked, design = fixed.answers, curve.design
    error, noise = curve.error(asked), curve.noise
    pairs = max(1.0, asked**2 / (2 * fixed.entries) + LARGEST_SHARE * asked)
    scatter = 0.0 if design.noise_variance is not None else 2 * noise**2 / pairs
    judging = max(1.0, asked * judging_share(design))
    se = math.sqrt(TAILS * (noise + error) ** 2 / judging + scatter)
    chance = np.random.default_rng([design.seed, curve.place, asked]).standard_normal()
    estimate = error + se * float(chance)
    told: Mapping[str, float] = {"estimate": estimate, "se": se, "upper": estimate + 2 * se}
    return Standing(**{**fixed.__dict__, **told, "error": error})
