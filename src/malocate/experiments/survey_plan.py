"""What a plan says: errors at a budget, the price of a target, in numbers, words and a picture."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from malocate.design import Design
from malocate.experiments.playing import Path, between
from malocate.problem.arrays import Floats
from malocate.problem.plain import finite
from malocate.theory import Problem

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

UNIFORM, GOOD = "uniform", "good allocation"
WORST = "worst"
LEVEL = 0.9
STEPS = 24
"""Budgets at which errors are told, for the picture."""


@dataclass(frozen=True)
class Range:
    """The median over the twins, and the ends between which another twin would be."""

    middle: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float] | Floats) -> Range:
        """Give the range of one number for each twin; of few, it is their lowest and highest.

        >>> Range.of([3.0, 1.0, 2.0])
        Range(middle=2.0, low=1.0, high=3.0)
        """
        ranked = np.sort(np.asarray(values, dtype=np.float64))
        out = left_out(len(ranked))
        return cls(float(np.median(ranked)), float(ranked[out - 1]), float(ranked[-out]))


def left_out(runs: int) -> int:
    """Give the place, from either end, of the numbers that bound a range."""
    return max(1, math.floor((runs + 1) * (1 - LEVEL) / 2 + 1e-9))


@dataclass(frozen=True, eq=False)
class Played:
    """One run: each strategy's path, the errors at the sizes that were fitted, and the noise."""

    paths: Mapping[str, Path]
    known: tuple[dict[int, float], ...]
    noise: tuple[float, ...]  # standard deviation of an answer, by segment

    def rmse(self, strategy: str, budget: float) -> list[float]:
        """Give each segment's root mean squared error at a budget."""
        asked = self.paths[strategy].at(budget)
        return [math.sqrt(between(own, n)) for own, n in zip(self.known, asked, strict=True)]


@dataclass(frozen=True, eq=False)
class SurveyPlan:
    """What a survey will reach, as seen on many twins.

    `ranks` are those of each run's twins; `told` names the segments that a pilot told of, and is
    None without one. `cap` is the most that was tried to meet the target.
    """

    design: Design
    runs: tuple[Played, ...]
    ranks: tuple[Mapping[str, int], ...]
    cap: float
    told: tuple[str, ...] | None

    @property
    def strategies(self) -> list[str]:
        """The names of the strategies; the design's own comes first."""
        return list(self.runs[0].paths)

    @property
    def names(self) -> list[str]:
        """The segments' names."""
        return [segment.name for segment in self.design.segments]

    @property
    def level(self) -> float:
        """The chance with which a range holds another twin."""
        return 1 - 2 * left_out(len(self.runs)) / (len(self.runs) + 1)

    def forecast(self, strategy: str, budget: float | None = None) -> dict[str, Range]:
        """Give the range of each segment's root mean squared error; by default at the budget."""
        budget = self.design.budget if budget is None else budget
        errors = np.array([run.rmse(strategy, budget) for run in self.runs])
        return {name: Range.of(own) for name, own in zip(self.names, errors.T, strict=True)}

    def worst(self, strategy: str, budget: float | None = None) -> Range:
        """Give the range of the largest error of all segments, with their targets as units."""
        budget = self.design.budget if budget is None else budget
        return Range.of([max(run.rmse(strategy, budget)) for run in self.runs])

    def answers(self, strategy: str) -> dict[str, Range]:
        """Give the range of each segment's answers at the budget."""
        asked = np.array([run.paths[strategy].at(self.design.budget) for run in self.runs])
        return {name: Range.of(own) for name, own in zip(self.names, asked.T, strict=True)}

    def needed(self, strategy: str) -> Range | None:
        """Give the range of what meeting the target costs; infinite where it costs too much."""
        if self.design.targets is None:
            return None
        return Range.of([run.paths[strategy].reached for run in self.runs])

    def needed_answers(self, strategy: str) -> Range | None:
        """Give the range of how many answers meet the target; as the cost where each costs 1."""
        if self.design.targets is None:
            return None
        paths = [run.paths[strategy] for run in self.runs]
        asked = [
            math.inf if math.isinf(path.reached) else float(path.at(path.reached).sum())
            for path in paths
        ]
        return Range.of(asked)

    @cached_property
    def problem(self) -> Problem:
        """The theory's problem: shapes, loss and the middle of the twins' ranks."""
        middle = [
            max(1, round(float(np.median([each[name] for each in self.ranks]))))
            for name in self.names
        ]
        segments = self.design.segments
        return Problem(
            tuple(segment.shape for segment in segments),
            tuple(middle),
            self.design.loss.p,
            self.design.weights,
            tuple(segment.cost for segment in segments),
        )

    def frame(self) -> pandas.DataFrame:
        """Give one line per strategy, segment and budget: median and range of the RMSE.

        The segment "worst" is the largest error of all. Up to the budget, or as far as all
        twins were asked.
        """
        import pandas

        last = min(path.spent[-1] for run in self.runs for path in run.paths.values())
        first = sum(
            segment.cost * grid.size(1)
            for segment, grid in zip(self.design.segments, self.design.grids, strict=True)
        )
        budgets = np.geomspace(min(first, last), last, STEPS)
        lines = []
        for strategy in self.strategies:
            for budget in np.unique(np.append(budgets, min(self.design.budget, last))):
                told = self.forecast(strategy, budget) | {WORST: self.worst(strategy, budget)}
                for name, found in told.items():
                    about = {"strategy": strategy, "segment": name, "spent": float(budget)}
                    lines.append(about | asdict(found))
        return pandas.DataFrame(lines)

    def words(self) -> list[str]:
        """Say it as one would tell a field team."""
        from malocate.experiments import plan_words

        return plan_words.sentences(self)

    def plain(self) -> dict[str, Any]:
        """Give everything for machines; what is not known or infinite is null."""
        strategies = {
            name: {
                "segments": {
                    each: {"rmse": asdict(found), "answers": asdict(self.answers(name)[each])}
                    for each, found in self.forecast(name).items()
                },
                "worst_rmse": asdict(self.worst(name)),
                "needed_cost": _plain(self.needed(name)),
                "needed_answers": _plain(self.needed_answers(name)),
            }
            for name in self.strategies
        }
        told = {
            "label": "seen in simulation",
            "budget": self.design.budget,
            "targets": _targets(self.design),
            "cap": self.cap,
            "runs": len(self.runs),
            "level": self.level,
            "from_pilot": self.told is not None,
            "strategies": strategies,
            "theory": self._theory(),
            "words": self.words(),
            "curves": self.frame().to_dict("records"),
        }
        plain: dict[str, Any] = finite(told, lambda _: None)
        return plain

    def plot(self, title: str = "") -> Figure:
        """Draw each segment's error against the budget, with its range and the target."""
        from malocate.plots.plan import plan_picture

        needed = {name: self.needed(name) for name in self.strategies}
        prices = {
            name: (found.middle, found.low, found.high)
            for name, found in needed.items()
            if found is not None
        }
        targets = dict(zip(self.names, self.design.targets or (), strict=False))
        return plan_picture(
            self.frame(), self.names, budget=self.design.budget, targets=targets, prices=prices,
            title=title,
        )  # fmt: skip

    def _theory(self) -> dict[str, Any]:
        problem = self.problem
        conditions = problem.conditions(self.design.budget)
        return {
            "ranks": dict(zip(self.names, problem.ranks, strict=True)),
            "complexities": dict(zip(self.names, problem.complexities(), strict=True)),
            "good_allocation": dict(
                zip(self.names, problem.allocation(self.design.budget), strict=True)
            ),
            "advantage": problem.advantage(),
            "fails": {each.name: each.sentence for each in conditions if not each.holds},
        }


def _plain(found: Range | None) -> dict[str, float] | None:
    return None if found is None else asdict(found)


def _targets(design: Design) -> dict[str, float] | None:
    if design.targets is None:
        return None
    return {s.name: t for s, t in zip(design.segments, design.targets, strict=True)}
