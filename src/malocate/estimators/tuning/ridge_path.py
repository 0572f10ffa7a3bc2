"""The reweighted ridge path: how a low-rank fit is walked to without knowing its rank.

The *plain* path solves the factored ridge problem at ridges that fall by a constant ratio, each
from the solution before. With enough columns this is the convex nuclear-norm path: it finds the
large components, but it also keeps components of the noise and shrinks all of them alike. So at
some place, the *departure*, the walk leaves it, and component i of singular value s_i gets

    ridge · √(level / (s_i + level / 5)),    level = 3 · ridge at the departure / sampled share,

the reweighting of a Schatten-½ penalty. (A ridge takes ridge / share off every singular value,
so the level is three times what the departure's ridge takes off.) Components above the level
are shrunk less, those below it more and more until they are empty and dropped: the rank falls
out by itself. Then the ridge comes down further, with the level kept, and what remains loses
its bias. A `Place` names the departure and the end; `Walk.at` gives the factors there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from malocate.estimators.engine.cells import Cells
from malocate.estimators.engine.factored import CG_STEPS, balanced, descend, fitted
from malocate.estimators.engine.orthogonal import basis_of
from malocate.estimators.engine.spectrum import largest_singular_value, leading
from malocate.estimators.engine.table import Table

Floats = npt.NDArray[np.float64]
Pair = tuple[Floats, Floats]
Parts = tuple[Floats, Floats, Floats]

RATIO = 1.5
"""Ratio of one ridge of the grid to the next."""

TOP = 0.7
"""The first ridge, as a share of the one that leaves nothing."""

DEEPEST = 40
"""The last place of a grid without a floor: a ridge ten million times below the first."""

LEVEL, SOFTENING, EMPTY = 3.0, 0.2, 0.02
"""The level over what the ridge takes off; what softens it; the share of it that is empty."""

PRUNING_ROUNDS, PRUNING_STEPS = 6, 8
STEPS, FEW_STEPS = 40, 3

TOL, PASSING_TOL = 3e-4, 1e-3
"""The gain of a step at which a descent ends, where it is judged and where it is only passed."""

PASSING_CG_STEPS = 2
"""Conjugate-gradient steps on each line, where it is only passed."""

PATIENCE = 1
"""Steps with little gain after which a descent ends: the next place goes on from there."""


@dataclass(frozen=True, order=True)
class Place:
    """Where a walk stands: at `end` on the grid, having left the plain path at `departure`.

    >>> Place(12, departure=9).is_plain, Place(5).is_plain
    (False, True)
    """

    end: int
    departure: int = -1

    @property
    def is_plain(self) -> bool:
        """Whether the walk has not left the plain path."""
        return self.departure < 0

    @property
    def before(self) -> Place:
        """The place passed before this one."""
        return (
            Place(self.end) if self.end == self.departure else Place(self.end - 1, self.departure)
        )


NOWHERE = Place(-1)
"""Before the first ridge, where there are no components: the fit is its centre."""


@dataclass(frozen=True)
class Grid:
    """Falling ridges, from `top` down to `floor` and no further where there is a floor.

    >>> grid = Grid(top=9.0, floor=3.0)
    >>> [grid[place] for place in range(grid.last + 1)]
    [9.0, 6.0, 4.0, 3.0]
    """

    top: float
    floor: float = 0.0

    @classmethod
    def of(cls, cells: Cells, floor: float = 0.0) -> Grid:
        """Begin just below the ridge that leaves nothing of the cells' targets."""
        nothing_left = largest_singular_value(Table(cells, cells.weights * cells.targets))
        return cls(max(TOP * nothing_left, floor), floor)

    def __getitem__(self, place: int) -> float:
        return max(self.top * RATIO**-place, self.floor)

    @property
    def last(self) -> int:
        """The last place, the first at which the ridge is the floor's."""
        if self.floor <= 0.0:
            return DEEPEST
        return max(0, math.ceil(math.log(self.top / self.floor) / math.log(RATIO) - 1e-9))


class Walk:
    """The walks over one set of cells; each goes on from places that were passed before."""

    def __init__(self, cells: Cells, grid: Grid, cap: int) -> None:
        """Prepare to walk with at most `cap` components."""
        self.cells, self.grid, self.cap = cells, grid, cap
        self.share = float(cells.weights.sum()) / (cells.shape[0] * cells.shape[1])
        self._passed = {NOWHERE: _no_components(cells.shape)}

    def at(self, place: Place) -> Pair:
        """Give the factors at a place, which is walked to from the nearest one passed before."""
        ahead = []
        while place not in self._passed:
            ahead.append(place)
            place = place.before
        for place in reversed(ahead):
            self._passed[place] = self._walk_on(self._passed[place.before], place)
        return self._passed[place]

    def resume(self, pair: Pair, place: Place) -> None:
        """Take factors of an earlier walk to a place directly, and count it as passed.

        What the factors lack is appended first, at the ridge of the departure, and pruned there.
        """
        if place.is_plain:
            self._passed[place] = self._solve_plain(pair, self.grid[place.end])
            return
        pair, _ = self._grow(pair, self.grid[place.departure])
        pair = self._pruned(pair, Place(place.departure, place.departure))
        self._passed[place] = self._reweighted(balanced(*pair), place)

    def ridges(self, values: Floats, place: Place) -> Floats:
        """Give the ridge of each component at a place, from the singular values."""
        ridge = self.grid[place.end]
        if place.is_plain or ridge == self.grid.floor:
            return np.full(len(values), ridge)
        level = self.level(place)
        return np.asarray(ridge * np.sqrt(level / (values + SOFTENING * level)))

    def level(self, place: Place) -> float:
        """Give the singular value above which a component counts as signal."""
        return LEVEL * self.grid[place.departure] / self.share

    def _walk_on(self, pair: Pair, place: Place) -> Pair:
        if place.is_plain:
            return self._solve_plain(pair, self.grid[place.end])
        if place.end == place.departure:
            return self._pruned(pair, place)
        return self._reweighted(balanced(*pair), place)

    def _pruned(self, pair: Pair, place: Place) -> Pair:
        """Reweight until every component is above the level, or often enough."""
        parts = balanced(*pair)
        for _ in range(PRUNING_ROUNDS):
            pair = self._reweighted(parts, place, PRUNING_STEPS, passing=True)
            parts = balanced(*pair)
            if np.all(parts[1] > self.level(place)):
                break
        return pair

    def _reweighted(
        self, parts: Parts, place: Place, steps: int = STEPS, *, passing: bool = False
    ) -> Pair:
        """Drop what is empty of the balanced factors, set the ridges and descend."""
        left, values, right = parts
        kept = values > EMPTY * self.level(place)
        root = np.sqrt(values[kept])
        pair = left[:, kept] * root, right[:, kept] * root
        return self._descend(pair, self.ridges(values[kept], place), steps, passing=passing)

    def _solve_plain(self, pair: Pair, ridge: float) -> Pair:
        """Solve at one ridge for all components, as many of them as it takes."""
        crowded = True
        while crowded:
            pair, crowded = self._grow(pair, ridge)
            ridges = np.full(pair[0].shape[1], ridge)
            steps = FEW_STEPS if crowded else STEPS
            pair = self._descend(pair, ridges, steps, passing=True)
        return pair

    def _grow(self, pair: Pair, ridge: float) -> tuple[Pair, bool]:
        """Append the residual's directions above the ridge; tell whether there may be more."""
        rank = pair[0].shape[1]
        room = min(self.cap - rank, max(8, rank // 2))
        if room <= 0:
            return pair, False
        residual = self.cells.weights * (self.cells.targets - fitted(self.cells, *pair))
        spans = basis_of(pair[0]), basis_of(pair[1])
        lacking = leading(Table(self.cells, residual), room, without=spans, rounds=2).above(ridge)
        root = np.sqrt((lacking.values - ridge) / self.share)
        left = np.hstack([pair[0], lacking.left * root])
        right = np.hstack([pair[1], lacking.right * root])
        return (left, right), len(root) == room

    def _descend(self, pair: Pair, ridges: Floats, steps: int, *, passing: bool) -> Pair:
        if len(ridges) == 0:
            return pair
        tol, cg_steps = (PASSING_TOL, PASSING_CG_STEPS) if passing else (TOL, CG_STEPS)
        done = descend(
            self.cells, *pair, ridges,
            max_steps=steps, tol=tol, cg_steps=cg_steps, patience=PATIENCE,
        )  # fmt: skip
        return done.left, done.right


def _no_components(shape: tuple[int, int]) -> Pair:
    return np.zeros((shape[0], 0)), np.zeros((shape[1], 0))
