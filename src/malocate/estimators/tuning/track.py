"""One kind of centring on its way along the ridge path: how it is searched and how refitted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from malocate.estimators.centring import Centre, CentreKind, fit_centre
from malocate.estimators.engine.cells import Cells
from malocate.estimators.engine.factored import Factors, balanced, descend
from malocate.estimators.tuning import search
from malocate.estimators.tuning.inner import MOST, Panel, Split
from malocate.estimators.tuning.ridge_path import NOWHERE, Grid, Pair, Place, Walk
from malocate.problem import Entries

SUPPORT = 1.35
"""Free parameters of the largest rank tried, per seen entry."""

USUAL_RANK, WORK = 60, 3e8
"""Ranks up to this one are tried where the entries support them; rank times entries, at most."""

NEGLIGIBLE = 1e-12
"""What the centre leaves over, relative to the answers, below which it is rounding."""

UNJUDGED = 8
"""Where a fit of given rank ends on the plain path when too few entries can judge it."""

SURPLUS = 1.1
"""Ratio of the refit's rank to the folds' largest from which the refit has kept noise."""

FINAL_STEPS, FINAL_TOL = 500, 1e-5


@dataclass(frozen=True, eq=False)
class Track:
    """The data with one kind of centring taken off, and the inner folds that judge."""

    kind: CentreKind
    centre: Centre
    walk: Walk
    bounds: search.Bounds
    panel: Panel

    @classmethod
    def of(
        cls,
        split: Split,
        kind: CentreKind,
        rank: int | None = None,
        ridge: float | None = None,
        folds: int | None = None,
    ) -> Track:
        """Take the centre off; a rank or ridge that is not None is settled, not searched."""
        entries = split.entries
        centre = fit_centre(entries, kind)
        cells = Cells.above(entries, centre)
        grid = Grid.of(cells, ridge or 0.0)
        cap = largest_rank(entries) if rank is None else min(rank, *entries.shape)
        if np.max(np.abs(cells.targets)) <= NEGLIGIBLE * np.max(np.abs(entries.means)):
            cap = 0
        bounds = search.Bounds(grid.last, at_last=ridge is not None, plain=rank is not None)
        panel = Panel.of(split, kind, grid, cap, MOST if folds is None else folds)
        return cls(kind, centre, Walk(cells, grid, cap), bounds, panel)

    def explored(self) -> search.Errors:
        """Judge the places worth it by a few folds."""
        if self.walk.cap == 0:
            return {NOWHERE: self._error(NOWHERE)}
        if not self.panel.folds or (self.bounds.plain and self.bounds.at_last):
            place = self._unsearched()
            return {place: self._error(place)}
        return search.explore(self.panel.few(), self.bounds)

    def confirmed(self, found: search.Errors) -> search.Errors:
        """Judge by all folds what a few have found; drop it if it may be chance."""
        if len(found) == 1:
            return found
        if len(self.panel.folds) > len(self.panel.few().folds):
            found = search.confirm(self.panel, self.bounds, found)
        if self.panel.prefers(search.best(found), NOWHERE):
            return found
        return {NOWHERE: found[NOWHERE]}

    def retuned(self, start: Pair, folds: Sequence[Pair], place: Place) -> search.Errors:
        """Go on from an earlier fit and its folds, to places around its own.

        The ridges beside its own are judged, and a departure one place later, for more answers
        show more components: it is taken if it is better by more than chance.
        """
        errors = self._judged_around(place, folds)
        if folds and not self.bounds.plain:
            later = self._judged_around(self._later(place), folds)
            if self.panel.prefers(search.best(later), search.best(errors)):
                errors = later
        self.walk.resume(start, search.best(errors))
        return errors

    def refitted(self, place: Place) -> Factors:
        """Take the walk to a place with all of the data, and settle there."""
        left, values, right = balanced(*self.walk.at(place))
        if self.panel.folds and not place.is_plain:
            most = max(pair[0].shape[1] for pair in self.panel.pairs(place))
            kept = most if len(values) > SURPLUS * most + 1 else len(values)
            left, values, right = left[:, :kept], values[:kept], right[:, :kept]
        root, ridges = np.sqrt(values), self.walk.ridges(values, place)
        return descend(
            self.walk.cells, left * root, right * root, ridges,
            max_steps=FINAL_STEPS, tol=FINAL_TOL,
        )  # fmt: skip

    def _judged_around(self, place: Place, folds: Sequence[Pair]) -> search.Errors:
        """Let the folds go on from their earlier factors, and judge a place and those beside it."""
        first = self._beside(place)
        if not folds:
            return {first: math.nan}
        for fold, pair in zip(self.panel.folds, folds, strict=True):
            fold.walk.resume(pair, first)
        ends = range(first.end, min(place.end + 1, self.bounds.last) + 1)
        return search.follow(self.panel, (Place(end, place.departure) for end in ends))

    def _beside(self, place: Place) -> Place:
        """Give the place one ridge earlier, where there is one to choose."""
        if self.bounds.at_last:
            return Place(self.bounds.last, place.departure)
        return Place(max(0, place.departure, place.end - 1), place.departure)

    def _later(self, place: Place) -> Place:
        """Give the place with a departure one later; the plain path is left where it stands."""
        departure = place.end if place.is_plain else min(place.departure + 1, self.bounds.last)
        return Place(max(place.end, departure), departure)

    def _unsearched(self) -> Place:
        """Give the place of a fit that cannot be searched, or need not be."""
        if self.bounds.at_last:
            return Place(self.bounds.last)
        return Place(UNJUDGED) if self.bounds.plain else NOWHERE

    def _error(self, place: Place) -> float:
        return self.panel.error(place) if self.panel.folds else math.nan


def largest_rank(entries: Entries) -> int:
    """Give the largest rank worth trying: r (d1 + d2 − r) parameters need about as many entries."""
    shorter, both = min(entries.shape), sum(entries.shape)
    most = min(shorter, max(USUAL_RANK, shorter // 2), max(20, int(WORK / len(entries))))
    ranks = np.arange(1, most + 1)
    return max(1, int(np.count_nonzero(ranks * (both - ranks) <= SUPPORT * len(entries))))
