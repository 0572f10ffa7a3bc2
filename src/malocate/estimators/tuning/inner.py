"""The inner split: a place on the path is judged by entries that the walk there did not see.

Entries fall into folds by a hash of the entry itself. So the order of the answers changes
nothing, repeats of an entry never stand on both sides, and an entry keeps its fold as answers
come in: a fold's factors from an earlier look have never seen what they are judged on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from malocate.estimators.centring import Centre, CentreKind, fit_centre
from malocate.estimators.engine.cells import Cells
from malocate.estimators.engine.factored import product_at
from malocate.estimators.tuning.ridge_path import NOWHERE, Grid, Pair, Place, Walk
from malocate.problem import Entries
from malocate.problem.hashing import hashed_folds

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Scale = tuple[float, float] | None

SHARES = (0.025, 0.05, 0.1, 0.2)
"""Shares of the entries in one fold: small, since near the recovery threshold each one counts."""

JUDGES = 60
"""Entries that a fold should hold at least; the first share that gives as many is taken."""

ENOUGH_JUDGES = 400
"""Entries whose judgement decides what all the folds need to look at."""

ENTRIES_WALKED, MOST = 30_000, 8
"""The folds are about so many entries' worth, and so many at most: more for fewer entries,
whose judgement is noisier and whose walks are cheaper."""

PLENTY = 400_000
"""Entries from which a single fold is enough; there are two at least below."""


@dataclass(frozen=True, eq=False)
class Split:
    """Entries with their inner folds (-1: in none), and the scale that predictions keep to."""

    entries: Entries
    folds: Ints
    clip: Scale
    share: float

    @classmethod
    def of(cls, entries: Entries, clip: Scale) -> Split:
        """Split by a hash of the entry, so that nothing else decides."""
        seen = len(entries)
        share = next((share for share in SHARES if share * seen >= JUDGES), SHARES[-1])
        fewest = 1 if seen >= PLENTY else 2
        count = min(max(math.ceil(ENTRIES_WALKED / seen), fewest), MOST, round(1 / share))
        folds = hashed_folds(entries.cells, count, "inner", share=share)
        return cls(entries, folds, clip, share)

    @cached_property
    def usable(self) -> list[int]:
        """The folds that have judges and leave something to learn from."""
        sizes = np.bincount(self.folds + 1, minlength=1)[1:]
        return [int(fold) for fold in np.flatnonzero((sizes > 0) & (sizes < len(self.entries)))]


class Fold:
    """One inner fold: walks over the other entries, judged by its own."""

    def __init__(self, split: Split, fold: int, kind: CentreKind, grid: Grid, cap: int) -> None:
        """Nothing is fitted or walked before it is asked for."""
        self._split, self._ours = split, split.folds == fold
        self._kind, self._grid, self._cap = kind, grid, cap
        self._losses: dict[Place, Floats] = {}
        self.judges = int(np.count_nonzero(self._ours))
        self.weight = int(split.entries.visits[self._ours].sum())

    @cached_property
    def _centre(self) -> Centre:
        return fit_centre(self._others(), self._kind)

    @cached_property
    def walk(self) -> Walk:
        """The walks over the entries outside the fold."""
        return Walk(Cells.above(self._others(), self._centre), self._grid, self._cap)

    def losses(self, place: Place) -> Floats:
        """Give the squared errors at a place, one per entry of the fold, times its visits."""
        if place not in self._losses:
            self._losses[place] = self._judge(None if place == NOWHERE else self.walk.at(place))
        return self._losses[place]

    @cached_property
    def _judging(self) -> Entries:
        return self._split.entries.subset(self._ours)

    def _others(self) -> Entries:
        return self._split.entries.subset(~self._ours)

    def _judge(self, pair: Pair | None) -> Floats:
        ours, values = self._judging, self._centred
        if pair is not None:
            values = values + product_at(ours.indptr, ours.cols, *pair)
        if self._split.clip is not None:
            low, high = self._split.clip
            values = np.minimum(np.maximum(values, low), high)
        return np.asarray(ours.visits * (ours.means - values) ** 2)

    @cached_property
    def _centred(self) -> Floats:
        return self._centre.at(self._judging.rows, self._judging.cols)


@dataclass(frozen=True, eq=False)
class Panel:
    """Inner folds that judge together, all with one kind of centring."""

    folds: list[Fold]

    @classmethod
    def of(cls, split: Split, kind: CentreKind, grid: Grid, cap: int, most: int = MOST) -> Panel:
        """Gather the usable folds of a split, `most` of them at most."""
        return cls([Fold(split, fold, kind, grid, cap) for fold in split.usable[:most]])

    def first(self, count: int) -> Panel:
        """Give the first folds only; what they walk stays walked for the whole panel."""
        return Panel(self.folds[:count])

    def few(self, judges: int = ENOUGH_JUDGES, least: int = 3) -> Panel:
        """Give as many folds as it takes to have so many judges, and so many folds at least."""
        total = np.cumsum([fold.judges for fold in self.folds])
        return self.first(max(least, 1 + int(np.count_nonzero(total < judges))))

    def error(self, place: Place) -> float:
        """Give the mean squared held-out error at a place."""
        weight = sum(fold.weight for fold in self.folds)
        return sum(float(fold.losses(place).sum()) for fold in self.folds) / weight

    def prefers(self, place: Place, other: Place) -> bool:
        """Tell whether a place has the lower error, by more than the standard error of both."""
        gains = np.concatenate([fold.losses(other) - fold.losses(place) for fold in self.folds])
        gains /= max(np.max(np.abs(gains)), np.finfo(np.float64).tiny)  # squares may overflow
        return bool(gains.sum() > math.sqrt(gains @ gains))

    def pairs(self, place: Place) -> list[Pair]:
        """Give each fold's factors at a place."""
        return [fold.walk.at(place) for fold in self.folds]
