"""The step: plan the next round from the design and what was found, and close it when answered.

Nothing here reads a clock, writes a file or draws a random number: the same design and the same
answers give the same rounds, in one go, resumed, or taken anew.

A round is closed when every one of its draws is settled: answered, refused or given up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from malocate.compute import Compute
from malocate.confidence.judgement import Map
from malocate.design import Design
from malocate.problem import Observations
from malocate.rounds.checks import checked
from malocate.rounds.looks import Cells, Finding, Look, take_look
from malocate.rounds.standings import Findings, asked, done, short, spent, standings_of
from malocate.strategies.base import Allocation, Standing
from malocate.strategies.reasons import why

MapOf = Callable[[str, int, int], Map]
"""Gives the map that runs a look's fits: for a segment's name, the draws asked before, and now."""


@dataclass(frozen=True)
class Batch:
    """Draws of one segment: from number `first` up to `stop`, without it."""

    place: int
    segment: str
    first: int
    stop: int

    def __len__(self) -> int:
        """Count the draws."""
        return self.stop - self.first


@dataclass(frozen=True)
class Round:
    """What is asked next, and why: what the strategy saw, and the numbers it decided by."""

    batches: tuple[Batch, ...]
    standings: tuple[Standing, ...]
    allocation: Allocation
    why: str

    def closed(self, settled: Mapping[str, int]) -> bool:
        """Tell whether all its draws are settled; `settled` counts a segment's, from number 0."""
        return all(settled.get(batch.segment, 0) >= batch.stop for batch in self.batches)


@dataclass(frozen=True)
class Stop:
    """Nothing more is to be asked, and why.

    `reached` tells whether a goal was, rather than the budget's end, and `label` whether the bounds
    that say so are "certified" or "approximate"; it is empty where no goal was reached.
    """

    why: str
    reached: bool
    label: str = ""


def begin(design: Design) -> list[Finding | None]:
    """Give what is known before the first round: nothing."""
    return [None] * len(design.segments)


def plan(
    design: Design, findings: Findings, errors: Sequence[float | None] | None = None
) -> Round | Stop:
    """Plan the next round, or say why there is none.

    `errors` are the true mean squared errors, where a simulation knows them.

    >>> from malocate import Design, Segment
    >>> design = Design([Segment("north", (60, 40)), Segment("south", (30, 40))], budget=5_000)
    >>> [(batch.segment, len(batch)) for batch in plan(design, begin(design)).batches]
    [('north', 400), ('south', 280)]
    """
    goal = _reached(design, findings)
    if goal:
        label = bounds_label(findings)
        return Stop(f"{goal}, by {label} bounds", reached=True, label=label)
    now = standings_of(design, findings, errors)
    left = design.budget - spent(design, findings)
    allocation = checked(design.strategy.plan(now, left), now, left, design.strategy)
    if not allocation:
        return Stop(_exhausted(design, findings), reached=False)
    batches = tuple(
        Batch(place, standing.name, standing.answers, standing.answers + count)
        for place, (standing, count) in enumerate(zip(now, allocation.answers, strict=True))
        if count
    )
    return Round(batches, tuple(now), allocation, why(allocation, now, design.strategy))


def close(
    design: Design,
    round_: Round,
    findings: Findings,
    answers: Mapping[str, Observations],
    *,
    judge: bool = True,
    unanswered: Mapping[str, Cells] | None = None,
    doubts: Mapping[str, str] | None = None,
    compute: Compute | None = None,
    map_of: MapOf | None = None,
) -> list[Finding | None]:
    """Give what is known once a round's answers are in: only its segments are looked at.

    `unanswered` and `doubts` are, by segment, the cells of draws that ended without an answer and
    the reasons why no band may be called certified. `compute` is where looks are taken, by default
    as the design says: several segments at a time, or one segment's fits. `map_of` says it for
    each look on its own, which are then taken one after the other.
    """
    looks = [
        Look(
            batch.place,
            batch.stop,
            answers[batch.segment],
            findings[batch.place],
            judge=judge,
            unanswered=(unanswered or {}).get(batch.segment),
            doubt=(doubts or {}).get(batch.segment, ""),
        )
        for batch in round_.batches
    ]
    found = list(findings)
    for batch, finding in zip(
        round_.batches, _taken(design, looks, round_, compute, map_of), strict=True
    ):
        found[batch.place] = finding
    return found


def _taken(
    design: Design,
    looks: Sequence[Look],
    round_: Round,
    compute: Compute | None,
    map_of: MapOf | None,
) -> Iterable[Finding]:
    """Take all looks of a round."""
    compute = design.compute if compute is None else compute
    if map_of is None and len(looks) > 1:
        return compute.map(partial(take_look, design), looks)
    maps = [
        compute.map if map_of is None else map_of(batch.segment, batch.first, batch.stop)
        for batch in round_.batches
    ]
    return (take_look(design, look, map=map_) for look, map_ in zip(looks, maps, strict=True))


def loss_bound(design: Design, findings: Findings) -> float:
    """Give the loss of the bounds on what is delivered; infinite while a segment has none.

    With chance 1 − delta it bounds the true loss at all looks at once, where all bands are
    certified; see `bounds_label`.
    """
    return loss_of(design, [math.inf if each is None else each.upper for each in findings])


def bounds_label(findings: Findings) -> str:
    """Give "certified" where the bounds on all that is delivered are, else "approximate"."""
    bands = [None if finding is None else finding.band for finding in findings]
    proven = all(band is not None and band.label == "certified" for band in bands)
    return "certified" if proven else "approximate"


def loss_of(design: Design, errors: Sequence[float]) -> float:
    """Give the loss of mean squared errors."""
    each = zip(design.segments, errors, strict=True)
    frobenius = [segment.n_askable * error for segment, error in each]
    return design.loss.of(frobenius, design.weights)


def _reached(design: Design, findings: Findings) -> str:
    """Say which goal is reached; nothing while none is, or while a floor is not."""
    places = range(len(design.segments))
    if any(short(design, place, findings[place]) for place in places):
        return ""
    if design.epsilon is not None:
        bound = loss_of(design, [math.inf if each is None else each.final for each in findings])
        if bound <= design.epsilon:
            return f"the loss is at most {bound:.4g}, the goal was {design.epsilon:g}"
    if design.targets is not None and all(done(design, k, findings[k]) for k in places):
        return "every segment has reached its target"
    return ""


def _exhausted(design: Design, findings: Findings) -> str:
    left = design.budget - spent(design, findings)
    cheapest = min(segment.cost for segment in design.segments)
    if left < cheapest * (1 - 1e-9):
        return "the budget is spent"
    if all(
        segment.cap is not None and asked(finding) >= segment.cap
        for segment, finding in zip(design.segments, findings, strict=True)
    ):
        return f"every segment has reached its cap; {left:,g} of the budget are left"
    return f"nobody can be asked any more; {left:,g} of the budget are left"
