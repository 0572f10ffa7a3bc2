"""Hold a design's strategy against another one: at the same budget, on the same answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from malocate.compute import Compute
from malocate.confidence.judgement import Map
from malocate.design import Design
from malocate.experiments.run import Run
from malocate.experiments.sharing import SharedFits
from malocate.experiments.simulation import Sources, simulate
from malocate.problem import Loss
from malocate.rounds.step import MapOf
from malocate.strategies import Allocation, Standing, Strategy, Uniform
from malocate.strategies.choosing import at_once

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 8.0
"""How many times the budget a rival may spend to get as good."""

Show = Callable[[str, float], None]
"""Told, at every look, which run is under way and what it has spent."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """A run, its rival's at the same budget, and the rival's that goes on until it is as good."""

    names: tuple[str, str]
    run: Run
    rival: Run
    beyond: Run | None

    @property
    def losses(self) -> tuple[float, float]:
        """The true losses at the end, the run's and the rival's; NaN where the truth is unknown."""
        return _final(self.run, "loss"), _final(self.rival, "loss")

    @property
    def more(self) -> float:
        """What the rival would have had to spend on top to get as good; 0 where it already is."""
        if self.beyond is None:
            return 0.0
        return _final(self.beyond, "spent") - _final(self.run, "spent")

    @property
    def reached(self) -> bool:
        """Whether the rival, going on, got as good; if not, it would need more than `more`."""
        return self.beyond is None or _final(self.beyond, "loss") <= self.losses[0]

    def words(self) -> str:
        """Say what asking in the right place was worth."""
        (own, other), (name, rival) = self.losses, self.names
        if math.isnan(own) or math.isnan(other):
            return "The truth is not known, so the runs can only be compared by their bounds."
        if self.beyond is None:
            return f"{rival} does as well here: its loss is {other:.3g}, that of {name} {own:.3g}."
        spent = _final(self.run, "spent")
        times = (spent + self.more) / spent
        unit = "answers" if _costs_are_one(self.run.design) else "units of the budget"
        least = "" if self.reached else "more than "
        return (
            f"To get as low as {name}, {rival} would have needed {least}{self.more:,.0f} {unit} "
            f"more: {least}{times:.1f} times as many."
        )

    def plot(self, title: str = "") -> Figure:
        """Draw both runs side by side."""
        from malocate.plots import comparison_picture

        frames = dict(zip(self.names, (self.run.frame(), self.rival.frame()), strict=True))
        beyond = None if self.beyond is None else self.beyond.frame()
        names = [segment.name for segment in self.run.design.segments]
        return comparison_picture(frames, names, beyond=beyond, title=title)


def compare(
    design: Design,
    sources: Sources,
    rival: Strategy | None = None,
    *,
    names: tuple[str, str] | None = None,
    compute: Compute | None = None,
    most: float = MOST,
    show: Show = lambda *_: None,
) -> Comparison:
    """Simulate a design, and the same one with a rival strategy, by default `Uniform`.

    By default the rival asks as many segments at once as the design's own strategy.

    Both see the same answers in the same order. Where the rival ends with the larger loss, it
    goes on, without bands, until it is as good or has spent `most` times as much. `names` are by
    default those of the strategies. `compute` is where fits are done; by default it is as the
    design says.

    >>> from malocate import Batches, Design, SoftImpute, Synthetic
    >>> sources = {
    ...     "easy": Synthetic.low_rank((30, 20), rank=1, rng=0),
    ...     "hard": Synthetic.low_rank((30, 20), rank=4, rng=1),
    ... }
    >>> segments = [source.segment(name) for name, source in sources.items()]
    >>> batches = Batches(size=100, first=200)
    >>> design = Design(segments, 1_500, estimator=SoftImpute(), schedule=batches)
    >>> compare(design, sources).more > 0
    True
    """
    rival = rival or Uniform(parallel_segments=at_once(design.strategy))
    names = names or names_of(design.strategy, type(rival).__name__)
    fits = SharedFits(map=(compute or design.compute).map)
    run = _simulated(design, sources, names[0], fits, show)
    spent = _final(run, "spent") or design.budget
    other = replace(design, strategy=rival, budget=spent, epsilon=None, rmse=None)
    held = _simulated(other, sources, names[1], fits, show)
    goal, beyond = _final(run, "loss"), None
    if _final(held, "loss") > goal:
        until = UntilAsGood(other.strategy, other.loss, goal)
        larger = replace(other, strategy=until, budget=most * spent)
        label = f"{names[1]}, going on"
        beyond = _simulated(larger, sources, label, fits, show, bands=False)
    return Comparison(names, run, held, beyond)


def names_of(strategy: Strategy, rival: str) -> tuple[str, str]:
    """Give the names of a strategy's run and its rival's; unlike as file names, too.

    >>> names_of(Uniform(), "oracle"), names_of(Uniform(), "uniform")
    (('Uniform', 'oracle'), ('Uniform', 'rival-uniform'))
    """
    own = type(strategy).__name__
    return own, f"rival-{rival}" if own.casefold() == rival.casefold() else rival


@dataclass(frozen=True)
class UntilAsGood:
    """Plans as a strategy does, until the true loss is no larger than `goal`."""

    strategy: Strategy
    loss: Loss
    goal: float

    def plan(self, standings: Sequence[Standing], budget: float, /) -> Allocation:
        """Allocate as the strategy does; nothing once the goal is reached."""
        errors = [math.inf if each.error is None else each.error for each in standings]
        frobenius = [each.entries * e for each, e in zip(standings, errors, strict=True)]
        if self.loss.of(frobenius, [each.weight for each in standings]) <= self.goal:
            return Allocation((0,) * len(standings), (0.0,) * len(standings))
        return self.strategy.plan(standings, budget)


def watched_run(
    design: Design,
    sources: Sources,
    label: str,
    compute: Compute | None = None,
    show: Show = lambda *_: None,
) -> Run:
    """Simulate a design alone, and tell at every look how far it is."""
    return _simulated(design, sources, label, SharedFits(map=(compute or design.compute).map), show)


def _simulated(
    design: Design, sources: Sources, label: str, fits: SharedFits, show: Show, bands: bool = True
) -> Run:
    """Simulate a design, tell at every look how far it is, and share what can be shared."""
    alike = not design.schedule.fresh and design.keep == "latest"  # as `SharedFits` needs it
    map_of: MapOf = fits.map_of if alike else lambda *_: fits.map
    costs = {segment.name: segment.cost for segment in design.segments}
    asked = dict.fromkeys(costs, 0)

    def watched(segment: str, before: int, draws: int) -> Map:
        asked[segment] = draws
        show(label, math.fsum(costs[name] * asked[name] for name in costs))
        return map_of(segment, before, draws)

    return simulate(design, sources, bands=bands, progress=False, map_of=watched)


def _final(run: Run, what: str) -> float:
    """Give what a run had spent at its end, or its true loss then; infinite if it never asked."""
    if not run.records:
        return 0.0 if what == "spent" else math.inf
    last = run.records[-1]
    return last.spent if what == "spent" else last.losses[what]


def _costs_are_one(design: Design) -> bool:
    return all(segment.cost == 1.0 for segment in design.segments)
