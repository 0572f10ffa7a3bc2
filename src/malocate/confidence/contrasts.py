"""Differences of means: values that are right on average, whatever was completed before them.

Answers come in stages, each behind a fit to the stages before. A side is a column, a row or all
cells; over two sides of n₁ and n₂ cells, n together, the contrast is their means' difference. A
draw that lands on either is a uniform one among the n cells, so with *any* guess g made before,

    value = mean of g over side 1 − mean of g over side 2 ± (n / n₁ or n₂) · (answer − g there)

has the contrast as its mean. A good guess only makes the values vary less. There are two: the
completion, and the plain mean of the side's earlier answers; each stage goes by the one that was
nearer to the answers of the stages before.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from malocate.confidence.tails import student_reach
from malocate.confidence.weights import draw_weights
from malocate.estimators.base import Completion
from malocate.problem import Observations
from malocate.problem.arrays import Bools, Floats

Scale = tuple[float, float]
FEWEST = 10
"""Values from which on an interval that is right in the limit of many is given at all."""


@dataclass(frozen=True, eq=False)
class Stage:
    """Answers, and a completion of all that came before them."""

    before: Observations
    completion: Completion
    answers: Observations


@dataclass(frozen=True)
class Spread:
    """The mean, the least and the largest of a guess over the askable cells of a side."""

    mean: float
    least: float
    largest: float


@dataclass(frozen=True)
class Side:
    """One side of a comparison: a row (axis 0), a column (axis 1) or all cells (no axis)."""

    axis: int | None = None
    place: int = 0
    sign: float = 1.0

    def has(self, answers: Observations) -> Bools:
        """Tell which answers are of this side."""
        if self.axis is None:
            return np.ones(len(answers), dtype=np.bool_)
        found: Bools = (answers.cols if self.axis else answers.rows) == self.place
        return found

    def cells(self, answers: Observations) -> int:
        """Count its askable cells."""
        if self.axis is None:
            return answers.n_askable
        if answers.mask is None:
            return answers.shape[1 - self.axis]
        return int((~np.take(answers.mask, self.place, self.axis)).sum())

    def spread(self, completion: Completion, mask: Bools | None) -> Spread:
        """Give how a completion spreads over the side."""
        total, count, least, largest = 0.0, 0, math.inf, -math.inf
        for values in self._values(completion, mask):
            if len(values):
                total, count = total + float(values.sum()), count + len(values)
                least, largest = min(least, float(values.min())), max(largest, float(values.max()))
        return Spread(total / count, least, largest)

    def _values(self, completion: Completion, mask: Bools | None) -> Iterable[Floats]:
        """Give a completion's values at the askable cells, some at a time."""
        if self.axis is None:
            blocks = completion.blocks()
            return (block[True if mask is None else ~mask[rows]].ravel() for rows, block in blocks)
        along = np.arange(completion.shape[1 - self.axis])
        if mask is not None:
            along = along[~np.take(mask, self.place, self.axis)]
        cells = (along, self.place) if self.axis else (self.place, along)
        return [completion.predict(*cells)]


@dataclass(frozen=True, eq=False)
class Guess:
    """What is expected, before the answers, at each answer of each side, and over the side."""

    at: list[Floats]
    spreads: list[Spread]

    def misses(self, told: Sequence[Observations]) -> list[Floats]:
        """Give what each answer is above the guess."""
        return [each.values - at for each, at in zip(told, self.at, strict=True)]


@dataclass(frozen=True, eq=False)
class Part:
    """Values of one stage, whose mean is the contrast, and the limits that they cannot leave."""

    values: Floats
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Contrast:
    """A difference of means of sides, or a mean, as seen by stages of answers."""

    parts: list[Part]
    alike: bool = False
    """Whether the answers of some side were all equal: then they tell nothing of their error."""

    @cached_property
    def values(self) -> Floats:
        """The values of all stages, in ascending order: whatever that of the answers was."""
        return np.sort(np.concatenate([np.zeros(0), *(part.values for part in self.parts)]))

    @property
    def estimate(self) -> float:
        """The mean of the values: right on average; nan without any."""
        return float(self.values.mean()) if len(self.values) else math.nan

    @property
    def se(self) -> float:
        """Its standard error; infinite with fewer than two values."""
        if len(self.values) < 2:
            return math.inf
        return float(self.values.std(ddof=1)) / math.sqrt(len(self.values))

    def certified(self, delta: float) -> tuple[float, float]:
        """Give an interval by betting that fails with chance δ at most; proven on a scale."""
        from malocate.confidence.betting import upper_mean_of_parts  # numba loads here

        above = [(part.values, part.high) for part in self.parts]
        below = [(-part.values, -part.low) for part in self.parts]
        high = upper_mean_of_parts(above, delta / 2)
        low = -upper_mean_of_parts(below, delta / 2)
        if len(self.values):  # it may be wider than proven, but not beside its own estimate
            low, high = min(low, self.estimate), max(high, self.estimate)
        return low, high

    def approximate(self, delta: float) -> tuple[float, float]:
        """Give Student's interval: right in the limit of many; endless with few or equal ones."""
        reach = self.reach(delta)
        if math.isinf(reach):
            return -math.inf, math.inf
        return self.estimate - reach, self.estimate + reach

    def reach(self, delta: float) -> float:
        """Give how far Student's interval reaches to either side."""
        untold = len(self.values) < FEWEST or self.alike
        return math.inf if untold else float(student_reach(self.values, delta))


def contrast(stages: Sequence[Stage], sides: Sequence[Side]) -> Contrast:
    """Give the contrast of the sides: the sum of their means, each with its side's sign."""
    if not stages:
        return Contrast([])
    frame = stages[0].answers
    cells = [side.cells(frame) for side in sides]
    weights = [side.sign * sum(cells) / own for side, own in zip(sides, cells, strict=True)]
    told = [[stage.answers.take(side.has(stage.answers)) for side in sides] for stage in stages]
    usual = _usual_weight([each for stage in told for each in stage])
    errors, parts = np.zeros(2), []
    for stage, answers in zip(stages, told, strict=True):
        guesses = [_levels(stage, sides, answers), _completed(stage, sides, answers)]
        chosen = guesses[int(np.argmin(errors))]  # the plain mean at first, and at a tie
        parts.append(_part(chosen, sides, weights, answers, usual))
        errors += [sum(float(m @ m) for m in guess.misses(answers)) for guess in guesses]
    return Contrast(parts, any(map(_alike, zip(*told, strict=True))))


def _alike(answers: Sequence[Observations]) -> bool:
    """Tell whether all answers, those of each stage, are the same number."""
    values = np.concatenate([each.values for each in answers])
    return len(values) > 0 and bool(np.ptp(values) == 0)


def _levels(stage: Stage, sides: Sequence[Side], told: Sequence[Observations]) -> Guess:
    """Guess each side's mean of the answers before, drawn a little towards that of all."""
    overall = float(stage.before.values.mean())
    own = [stage.before.values[side.has(stage.before)] for side in sides]
    levels = [(float(each.sum()) + overall) / (len(each) + 1) for each in own]
    at = [np.full(len(each), level) for each, level in zip(told, levels, strict=True)]
    return Guess(at, [Spread(level, level, level) for level in levels])


def _completed(stage: Stage, sides: Sequence[Side], told: Sequence[Observations]) -> Guess:
    """Guess by the completion of the answers before."""
    mask, done = stage.before.mask, stage.completion
    spreads = [side.spread(done, mask) for side in sides]
    return Guess([done.predict(each.rows, each.cols) for each in told], spreads)


def _part(
    guess: Guess,
    sides: Sequence[Side],
    weights: Sequence[float],
    told: Sequence[Observations],
    usual: float,
) -> Part:
    """Give the values of a stage, one for each fresh draw, and their limits."""
    shift = sum(side.sign * each.mean for side, each in zip(sides, guess.spreads, strict=True))
    values, ends = [], []
    for answers, misses, weight, spread in zip(
        told, guess.misses(told), weights, guess.spreads, strict=True
    ):
        drawn = draw_weights(answers)
        drawn = np.ones(len(answers)) if drawn is None else drawn
        values.append(shift + weight * _units(answers, drawn / usual * misses))
        low, high = answers.scale or (-math.inf, math.inf)
        ends += [shift + weight * (low - spread.largest), shift + weight * (high - spread.least)]
    return Part(np.concatenate(values), min(ends), max(ends))


def _units(answers: Observations, values: Floats) -> Floats:
    """Give the mean over each fresh draw and its designed replicates."""
    _, unit, size = np.unique(answers.numbering.origins, return_inverse=True, return_counts=True)
    return np.asarray(np.bincount(unit, values) / size) if len(values) else values


def _usual_weight(told: Sequence[Observations]) -> float:
    """Give the mean weight of the answers: draws that were not uniform weigh relative to it."""
    found = [(draw_weights(each), len(each)) for each in told if len(each)]
    total = sum(float(len_) if w is None else float(w.sum()) for w, len_ in found)
    return total / max(1, sum(count for _, count in found)) or 1.0
