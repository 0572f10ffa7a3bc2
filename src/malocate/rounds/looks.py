"""Looks: complete and judge one segment from what was answered so far.

Fixed here once, for simulations and live campaigns alike:

- A look judges the answers of the segment's draws numbered below what was asked for so far, as
  they are known when the round closes; with fresh samples, those since the last look alone.
- An answer that comes later counts at the segment's next look, where its draw number puts it.
- A warm start is the same fold's fit of the segment's previous look, and nothing else; so looks
  taken anew from the answers are the looks that were taken.
- Answers that were there before the campaign have numbers from `BEFORE` on; they count at every
  look, but for schedules that judge fresh draws alone.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from malocate.confidence.band import Band
from malocate.confidence.ensemble import Ensemble
from malocate.confidence.judgement import Map, error_band, fit_all
from malocate.design import Design
from malocate.estimators.base import Completion
from malocate.problem import Observations
from malocate.problem.arrays import Int64s
from malocate.problem.draws import BEFORE

Cells = tuple[Int64s, Int64s]
"""Rows and columns."""

TRAIL = 8
"""How many past looks a forecast goes by."""


@dataclass(frozen=True, eq=False)
class Finding:
    """What a segment's looks have found so far.

    - `asked`: how many draws were asked for; `number`: how many looks were taken.
    - `completion`: what is delivered now, and `band` its band; None where nobody judged.
    - `on_grid`: whether that band is of a look whose size the design had fixed. A batch that was
      cut to what the budget left is no such size: its band is approximate, and ends nothing.
    - `latest`: the last look's own band, from which the next one starts.
    - `noise`: the latest band's noise level, the entries that tell it, and their spread.
    - `scatter`: the squared standard error of the mean squared miss, before noise is taken off.
    - `trail`: (asked, upper) of the last looks on the grid.
    """

    asked: int
    number: int
    completion: Completion | Ensemble
    band: Band | None
    on_grid: bool
    latest: Band | None
    noise: tuple[float, float, float] = (0.0, 0.0, 0.0)
    scatter: float = math.inf
    trail: tuple[tuple[int, float], ...] = ()

    @property
    def upper(self) -> float:
        """The bound on what is delivered, infinite where there is none."""
        return math.inf if self.band is None else self.band.upper

    @property
    def final(self) -> float:
        """The bound that a stop may go by: that of a look on the grid, or else infinite."""
        return self.upper if self.on_grid else math.inf


@dataclass(frozen=True, eq=False)
class Look:
    """What to look at: the segment at `place` after `asked` draws; `before` is its last look.

    Without `judge`, and with fewer answers than folds, the matrix is completed and nothing is
    said of its error. `unanswered` are the cells of draws that ended without an answer, for the
    audit; a `doubt` is a reason why no band of this look may be called certified.
    """

    place: int
    asked: int
    answers: Observations
    before: Finding | None = None
    judge: bool = True
    unanswered: Cells | None = None
    doubt: str = ""


def take_look(design: Design, look: Look, map: Map = map) -> Finding:  # noqa: A002
    """Complete and judge a segment; `map` runs the fits."""
    asked, before = look.asked, look.before
    seen = _seen(design, asked, look.answers, before)
    unjudged = design.deliver == "refit" and not look.judge
    if unjudged or len(seen) < getattr(design.scheme, "folds", 1):
        return _completed(design, asked, seen, before, map)
    band = _judged(design, look, seen, map)
    on_grid = grid_place(design, look.place, asked)[1]
    for reason in (look.doubt, "" if on_grid else CUT):
        if reason:
            band = replace(band, label="approximate", reason=f"{band.reason} {reason}".strip())
    return _noted(design, asked, band, on_grid, before)


def _seen(
    design: Design, asked: int, answers: Observations, before: Finding | None
) -> Observations:
    """Give the answers that a look judges."""
    if design.schedule.fresh:
        seen = answers.take(answers.draws < asked)
        return seen if before is None else seen.since(before.asked)
    counted = (answers.draws < asked) | (answers.draws >= BEFORE)
    return answers if counted.all() else answers.take(counted)


def grid_place(design: Design, place: int, asked: int) -> tuple[int, bool]:
    """Give the number of grid sizes reached after `asked` draws, and whether it is one exactly."""
    reached = design.grids[place].reached(asked)
    return (0, False) if reached is None else (reached.number, reached.size == asked)


CUT = "The last batch was cut to what the budget left, which no look had been fixed for."
"""Why a band of a look off the grid is approximate."""


def _judged(design: Design, look: Look, seen: Observations, map: Map) -> Band:  # noqa: A002
    segment, grid, before = design.segments[look.place], design.grids[look.place], look.before
    reached, on_grid = grid_place(design, look.place, look.asked)
    start = None
    if before is not None and design.scheme.permanent and not design.schedule.fresh:
        start = before.latest
    band = error_band(
        design.estimator,
        seen,
        delta=grid.delta_at(reached if on_grid else reached + 1),
        scheme=design.scheme,
        estimate=design.estimate,
        bound=design.bound,
        noise_variance=design.noise_variance,
        deliver=design.deliver,
        unanswered=look.unanswered,
        start=start,
        salt=design.seed,
        segment=segment.name,
        map=map,
    )
    return replace(band, certainty=1 - design.delta)


def _completed(
    design: Design,
    asked: int,
    seen: Observations,
    before: Finding | None,
    map: Map,  # noqa: A002
) -> Finding:
    """Give a finding without a band."""
    start = None if before is None or design.schedule.fresh else before.completion
    start = start if isinstance(start, Completion) else None
    done = fit_all(design.estimator, seen, start, map)
    return Finding(asked, _next(before), done, None, on_grid=False, latest=None)


def _noted(
    design: Design, asked: int, band: Band, on_grid: bool, before: Finding | None
) -> Finding:
    """Give what is known after a look: the new band, or a better one from before if kept."""
    trail = before.trail if before is not None else ()
    if on_grid:
        trail = (*trail, (asked, band.upper))[-TRAIL:]
    if design.keep == "best" and before is not None and band.upper > before.upper:
        return replace(before, asked=asked, number=_next(before), latest=band, trail=trail)
    return Finding(
        asked=asked,
        number=_next(before),
        completion=band.completion,
        band=band,
        on_grid=on_grid,
        latest=band,
        noise=_noise(band),
        scatter=_scatter(band),
        trail=trail,
    )


def _noise(band: Band) -> tuple[float, float, float]:
    noise = band.evidence.noise
    if not noise.entries:
        return 0.0, 0.0, 0.0
    spread = float(noise.variances.var(ddof=1)) if noise.entries > 1 else 0.0
    return noise.value, float(noise.entries), spread


def _scatter(band: Band) -> float:
    folds = [fold.units.squares for fold in band.evidence.folds]
    if not folds or min(map(len, folds)) < 2:
        return math.inf
    return sum(float(each.var(ddof=1)) / len(each) for each in folds) / len(folds) ** 2


def _next(before: Finding | None) -> int:
    return 1 if before is None else before.number + 1
