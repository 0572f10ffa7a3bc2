"""When the paper's theorem says something: its conditions, checked and named."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from malocate.theory.rates import Shape, first_batch, logarithm

_SHORTEST = 55  # from here on log²d ≥ 16, which makes the first batch hold a pair


class TheoryWarning(UserWarning):
    """A bound was asked for whose conditions fail; the number then has the right form only.

    >>> issubclass(TheoryWarning, UserWarning)
    True
    """


@dataclass(frozen=True)
class Condition:
    """A condition of a theorem: its name, whether it holds, and a sentence with the numbers."""

    name: str
    holds: bool
    sentence: str


def warn_of(conditions: Iterable[Condition]) -> None:
    """Warn once of all conditions that fail, at the place that called the calculator."""
    failed = [f"{each.name}: {each.sentence}" for each in conditions if not each.holds]
    if failed:
        warnings.warn(
            "The bound is not proven here; these conditions fail. " + "; ".join(failed) + ".",
            TheoryWarning,
            stacklevel=3,
        )


def upper_conditions(
    shapes: Sequence[Shape], costs: Sequence[float], budget: float, answers: Sequence[float]
) -> list[Condition]:
    """Give the conditions of the paper's upper bound, `answers` being the good allocation."""
    return [
        *_budget(shapes, costs, budget),
        *_probability(shapes),
        _side(shapes),
        _regime(shapes, answers),
    ]


def stated_chance(shapes: Iterable[Shape]) -> float:
    """Give 1 − Σ 16 log d/d, the chance with which the theorem is stated.

    >>> round(stated_chance([(200, 200)] * 3), 2)
    -0.27
    """
    return 1 - sum(16 * logarithm(shape) / max(shape) for shape in shapes)


def proven_chance(shapes: Iterable[Shape], c: float = 1.0) -> float:
    """Give the chance that the theorem's proof ends with; `c` is a constant that nobody knows.

    It is 1 − Σ 2 log₂d·(5/d + 2exp(−c·d·log d) + exp(−log²d/372)). The last term, the chance
    that the first batch has too few pairs, is .93 at d = 200.

    >>> round(proven_chance([(200, 200)]))
    -14
    """
    return 1 - sum(_chance_of_failing(max(2, *shape), c) for shape in shapes)


def _chance_of_failing(d: int, c: float) -> float:
    few_pairs = math.exp(-(math.log(d) ** 2) / 372)
    return 2 * math.log2(d) * (5 / d + 2 * math.exp(-c * d * math.log(d)) + few_pairs)


def _budget(shapes: Sequence[Shape], costs: Sequence[float], budget: float) -> list[Condition]:
    pairs = list(zip(shapes, costs, strict=True))
    needed = 6 * math.fsum(cost * first_batch(shape) for shape, cost in pairs)
    stated = 48 * math.fsum(cost * max(shape) * logarithm(shape) for shape, cost in pairs)
    least = f"12 Σ T^I = {needed:,.0f} at least"
    told = f"48 Σ d log d = {stated:,.0f} at least, as the theorem says"
    return [
        Condition("budget", budget >= needed, f"it is {budget:,.0f}, the proof needs {least}"),
        Condition(
            "stated budget", budget >= stated, f"it is {budget:,.0f} and must be {told}, or {least}"
        ),
    ]


def _probability(shapes: Sequence[Shape]) -> list[Condition]:
    stated, proven = stated_chance(shapes), proven_chance(shapes)
    return [
        Condition(
            "probability", stated > 0, f"the stated one is 1 − Σ 16 log d/d = {stated:.2f}, vacuous"
        ),
        Condition(
            "lemma", proven > 0, f"the proof ends with a probability of {proven:.1f}, vacuous"
        ),
    ]


def _side(shapes: Sequence[Shape]) -> Condition:
    shortest = min(max(shape) for shape in shapes)
    words = (
        f"the longer side is {shortest}; the proof wants {_SHORTEST}, for a pair in first batches"
    )
    return Condition("side", shortest >= _SHORTEST, words)


def _regime(shapes: Sequence[Shape], answers: Sequence[float]) -> Condition:
    fullest = max(zip(answers, shapes, strict=True), key=lambda pair: pair[0] / math.prod(pair[1]))
    words = f"a segment of shape {fullest[1]} gets {fullest[0]:,.0f} answers, more than entries"
    return Condition("regime", fullest[0] <= math.prod(fullest[1]), words)
