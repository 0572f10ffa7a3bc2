"""The paper's two experiments: the problems, the strategies, and the recipes to solve them with."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from malocate.design import Design
from malocate.design.presets import ROUNDS, experiment_grid
from malocate.errors import InvalidInput
from malocate.problem import Loss, Segment
from malocate.sources import Synthetic
from malocate.strategies import MALocate, Oracle, Strategy, Uniform

Recipe = Literal["paper", "conservative", "best"]
RECIPES: tuple[Recipe, ...] = ("paper", "conservative", "best")

MARGINS: dict[Recipe, float] = {"paper": 2.0, "conservative": 16.0}
"""Standard errors above R̂ that decide where to ask; the paper says no more than: conservative."""

SIDE, NOISE = 200, 0.1
"""The side of every matrix, and the standard deviation of an answer's noise."""


@dataclass(frozen=True)
class Experiment:
    """Square matrices of known ranks, and as many answers as half of all their cells.

    >>> experiment(1).budget, max(experiment(2).ranks)
    (200000, 76)
    """

    number: int
    ranks: tuple[int, ...]
    side: int = SIDE
    rounds: int = ROUNDS
    noise: float = NOISE

    @property
    def budget(self) -> int:
        """The answers that may be asked, n = K d² / 2."""
        return len(self.ranks) * self.side**2 // 2

    @property
    def hardest(self) -> str:
        """The name of the segment with the largest rank."""
        return name_of(int(np.argmax(self.ranks)))

    def sources(self, seed: int) -> dict[str, Synthetic]:
        """Draw the problem, once for all runs with this seed."""
        seeds = np.random.SeedSequence([seed, self.number]).spawn(len(self.ranks))
        shape = (self.side, self.side)
        return {
            name_of(place): Synthetic.low_rank(shape, rank, self.noise, rng=own)
            for place, (rank, own) in enumerate(zip(self.ranks, seeds, strict=True))
        }

    def segments(self) -> tuple[Segment, ...]:
        """Give the segments, in the order of the ranks."""
        shape = (self.side, self.side)
        return tuple(Segment(name_of(place), shape) for place in range(len(self.ranks)))


def name_of(place: int) -> str:
    """Give the name of a segment, counted from 1 as in the paper."""
    return f"M{place + 1}"


def ranks_of_second() -> tuple[int, ...]:
    """Give the ranks of experiment 2, round(18 + .0015 k⁴) with k counted from 0.

    Counted from 1, as the paper writes, the last would be 94; counted from 0 it is the 76 that
    the paper's text names.

    >>> ranks_of_second()
    (18, 18, 18, 18, 18, 19, 20, 22, 24, 28, 33, 40, 49, 61, 76)
    """
    return tuple(round(18 + 0.0015 * k**4) for k in range(15))


def experiment(number: int) -> Experiment:
    """Give one of the paper's experiments."""
    known = {1: (40,) + 9 * (10,), 2: ranks_of_second()}
    if number not in known:
        raise InvalidInput(f"There is no experiment {number!r} in the paper; choose 1 or 2.")
    return Experiment(number, known[number])


STRATEGIES: dict[str, Callable[[], Strategy]] = {
    "malocate-1": lambda: MALocate(p=1),
    "malocate-inf": lambda: MALocate(p=math.inf),
    "uniform": Uniform,
    "oracle": lambda: Oracle(p=math.inf),
}
"""The strategies of the figures. The oracle is the one of the maximum loss."""


def design_of(experiment: Experiment, recipe: Recipe, strategy: str, seed: int) -> Design:
    """Give the design of one curve of a figure.

    `paper` is what the paper's experiments say, and our reading where they do not;
    `conservative` is the same with a wider bound; `best` is our defaults, asked for in the same
    sub-samples and without a cap.
    """
    chosen = STRATEGIES[strategy]()
    segments, budget = experiment.segments(), experiment.budget
    if recipe != "best":
        if isinstance(chosen, MALocate):
            chosen = replace(chosen, confidence=MARGINS[recipe])
        rounds = experiment.rounds
        return Design.paper_experiment(segments, budget, rounds=rounds, strategy=chosen, seed=seed)
    grid = experiment_grid(segments, budget, experiment.rounds)
    return Design(segments, budget, loss=Loss(), strategy=chosen, schedule=grid, seed=seed)


def needs_bands(recipe: Recipe, strategy: str) -> bool:
    """Tell whether a strategy goes by judgements: the others are spared the fits for them."""
    return recipe != "best" or strategy.startswith("malocate")
