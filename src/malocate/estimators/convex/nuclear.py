"""Least squares with the nuclear norm, solved on factors, with a certificate.

    minimise over M:  ½ Σ_e w_e (y_e − M_e)² + penalty · ‖M‖_*

The optimum is also that of the factored ridge problem (`factored`) once the factors have enough
columns. The columns needed are found on the way: the residual's singular directions above the
penalty are those the factors lack, so they are appended; columns that the penalty has emptied
are dropped. From a cold start the penalty comes down in a few stages, which keeps the factors
thin. A dual point, the residual scaled down to spectral norm `penalty`, bounds how far the
objective can still fall: that bound is the certified gap.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from malocate.estimators.convex.core import Core
from malocate.estimators.convex.dual import Dual
from malocate.estimators.engine.cells import Cells
from malocate.estimators.engine.factored import Descent, balanced, energy, pull_cells
from malocate.estimators.engine.norms import norm_beside, norm_bound
from malocate.estimators.engine.orthogonal import basis_beside
from malocate.estimators.engine.spectrum import leading
from malocate.estimators.engine.table import Table
from malocate.estimators.engine.tall import across, along

Floats = npt.NDArray[np.float64]
Trace = Callable[[Floats, Floats], None]

STAGE = 8.0
"""Ratio of one penalty to the next on the way down to the one asked for."""

STAGE_STEPS = 3
CHECK_STEPS = 10
START_STEPS = 5  # from a start, before the first look for what it lacks
FIRST_DIRECTIONS = 16
FEW_DIRECTIONS = 8
MOST_DIRECTIONS = 64
FINAL_ROUNDS = 6
LONG_SIDE, LONG_DIRECTIONS, LONG_ROUNDS = 1000, 16, 8
"""Shorter sides from which singular values crowd, and what a look at their edge takes there."""

CROWDED = 0.75
"""Share of what a look found that is worth appending from which it may have missed as much."""

MOST_ROUNDS = 24
STANDSTILL = 1e-14
STANDING_LOOKS = 20
POLISH_STEPS = 2
NOTHING = 1e-12
"""Columns whose singular value is below this share of the largest are always dropped."""

EMPTY = 1e-4
"""Columns whose singular value is below this share of the largest may be dropped."""


@dataclass(frozen=True, eq=False)
class Solution:
    """Factors, the objective they reach, and the certified relative duality gap."""

    left: Floats
    right: Floats
    objective: float
    gap: float
    steps: int
    stalled: bool = False


def solve(
    cells: Cells,
    penalty: float,
    *,
    tol: float,
    max_steps: int,
    start: tuple[Floats, Floats] | None = None,
    trace: Trace | None = None,
) -> Solution:
    """Solve to a certified relative duality gap of `tol`, or until `max_steps` sweeps are spent.

    `trace`, if given, is shown the factors after every sweep at the final penalty.
    """
    work = _Solver(cells, penalty, tol, trace)
    work.begin(start, max_steps)
    while not (work.certified or work.stalled) and work.steps < max_steps:
        work.advance(max_steps)
    work.conclude()
    return Solution(work.left, work.right, work.objective, work.gap, work.steps, work.stalled)


class _Solver:
    """The loop of `solve`: grow, descend, drop, certify."""

    def __init__(self, cells: Cells, penalty: float, tol: float, trace: Trace | None) -> None:
        self.cells, self.penalty, self.tol, self.trace = cells, penalty, tol, trace
        self.level = penalty
        self.bound = 0.0  # of the minimum, from below
        self.steps = 0
        self.stalled = False
        self.standing, self.lowest = 0, math.inf
        is_long = min(cells.shape) >= LONG_SIDE
        self.rounds = LONG_ROUNDS if is_long else FINAL_ROUNDS
        self.few = LONG_DIRECTIONS if is_long else FEW_DIRECTIONS
        self.count = FIRST_DIRECTIONS
        self.curvature = 1.3 * float(cells.weights.sum()) / (cells.shape[0] * cells.shape[1])
        self.pulls, self.room = np.empty((2, len(cells)))  # for all residuals, by row and by column
        self.found: Floats | None = None  # right directions that the last look left out
        self.shown: Floats | None = None  # the left factor whose residual is in hand

    def begin(self, start: tuple[Floats, Floats] | None, max_steps: int) -> None:
        """Take the start's factors; none, and the first stage's penalty, if zero is better."""
        if start is not None:
            self._adopt(*start)
        if start is None or self.descent.objective >= self._objective_of_zero:
            self._adopt(*(np.zeros((side, 0)) for side in self.cells.shape))
            self.bases = (self.left, self.right)
            self._look(FIRST_DIRECTIONS)
            self.level = max(self.penalty, self.lacking.largest / STAGE)
        else:  # what a start lacks shows better once it has taken in the new answers
            self._descend(min(START_STEPS, max_steps), final=True)
            self._drop_empty()
            self._look(FIRST_DIRECTIONS)

    @property
    def gap(self) -> float:
        """The certified relative gap of the factors in hand."""
        primal = self.objective
        return max(0.0, (primal - self.bound) / primal) if primal > 0.0 else 0.0

    @property
    def certified(self) -> bool:
        return self.gap <= self.tol

    @property
    def _wanted(self) -> float:
        """The singular value from which a direction outside the factors is worth a column."""
        return self.level * (1 + min(1e-3, self.tol / 10))

    @property
    def _most_directions(self) -> int:
        """How many directions a look may be for without taking longer than some sweeps."""
        columns: int = self.left.shape[1]
        return min(max(2 * FIRST_DIRECTIONS, columns // 2), MOST_DIRECTIONS)

    @property
    def _objective_of_zero(self) -> float:
        return float(0.5 * self.cells.weights @ self.cells.targets**2)

    @property
    def objective(self) -> float:
        """The objective at the penalty asked for; the factors' norm bounds the nuclear norm."""
        norms = np.sum(self.left**2) + np.sum(self.right**2)
        return float(0.5 * (self.loss + self.penalty * norms))

    @property
    def _dual(self) -> Dual:
        return Dual(float(self.pulls @ self.cells.targets), self.loss, self.penalty)

    def advance(self, max_steps: int) -> None:
        """Append what is lacking, sweep a few times, drop what is empty, look again."""
        grown = self._grow()
        final = self.level <= self.penalty
        crowded = 0 < grown >= CROWDED * len(self.lacking.values)
        steps = STAGE_STEPS if crowded or not final else CHECK_STEPS
        self._descend(min(steps, max_steps - self.steps), final)
        self._drop_empty()
        if final:
            self._polish()
            if self.trace is not None:
                self.trace(self.left, self.right)
        self.count = min(2 * self.count, self._most_directions) if crowded else max(grown, self.few)
        if final:
            self._look(self.count, self.rounds)
        else:
            self.level = self.level if crowded else max(self.penalty, self.level / STAGE)
            self._look(max(self.count, self.left.shape[1] // 2, FIRST_DIRECTIONS))
        if final and not crowded:
            self._certify()
        self._notice_standstill(final and grown == 0)

    def _notice_standstill(self, settled: bool) -> None:
        """Tell a descent that rounding has stopped from one that is slow."""
        falls = self.objective < self.lowest * (1 - STANDSTILL)
        self.standing = 0 if falls or not settled else self.standing + 1
        self.lowest = min(self.lowest, self.objective)
        self.stalled = self.standing >= STANDING_LOOKS

    def conclude(self) -> None:
        """Give the gap that can be certified where the tolerance was not reached."""
        if not self.certified:
            self._drop_empty()
            self._look(self.few, self.rounds)
            lower = norm_beside(self.residual, self.bases, self.lacking)
            enough = lower * (1 + self.tol)
            upper = norm_bound(self.residual, lower, enough, self.bases, anyhow=True)
            self.bound = max(self.bound, self._dual.at(upper))

    def _adopt(self, left: Floats, right: Floats) -> None:
        ridge = np.full(left.shape[1], self.level)
        self.descent = Descent(self.cells, left, right, ridge)
        self.left, self.right = self.descent.left, self.descent.right

    def _descend(self, steps: int, final: bool) -> None:
        self._let_go()
        if self.descent.ridge.size and self.descent.ridge[0] != self.level:
            self._adopt(self.left, self.right)
        done = self.descent.steps
        while self.descent.steps < done + steps and not self.descent.run(1, 0.0):
            if self.trace is not None and final:
                self.trace(self.descent.left, self.descent.right)
        self.steps += self.descent.steps - done
        self.left, self.right = self.descent.left, self.descent.right

    def _grow(self) -> int:
        """Append the lacking directions, as far along them as lowers the objective most."""
        fresh = self.lacking.above(self._wanted)
        if len(fresh.values) == 0:
            return 0
        excess = fresh.values - self.level
        left, right = fresh.left * np.sqrt(excess), fresh.right * np.sqrt(excess)
        length = math.sqrt((excess @ excess) / energy(self.cells, left, right))
        if self.descent.ridge.size and self.descent.ridge[0] == self.level:
            self.descent.widen(length * left, length * right)
            self.left, self.right = self.descent.left, self.descent.right
        else:
            self._adopt(
                np.hstack([self.left, length * left]), np.hstack([self.right, length * right])
            )
        return len(fresh.values)

    def _drop_empty(self) -> None:
        """Drop columns that are nearly zero and that the residual pulls less than the penalty."""
        u, values, v = balanced(self.left, self.right)
        kept = values > EMPTY * max(values, default=0.0)
        if not kept.all():
            pull = np.einsum("ik,ik->k", u, self._residual() @ v)
            kept |= (pull >= 0.999 * self.level) & (values > NOTHING * max(values))
        self.values = values[kept]
        self.bases = np.compress(kept, u, axis=1), np.compress(kept, v, axis=1)
        if np.count_nonzero(kept) < self.left.shape[1]:
            self._turn(self.bases, self.values, self._turns(self.bases, self.values))

    def _polish(self) -> None:
        """Move the singular values and how the directions pair up, by proximal steps.

        Directions that come into being or go grow and shrink slowly as columns of factors; as
        singular values they move at once, and those that should be zero are. Slowest of all do the
        smallest turn towards directions beside the factors that the penalty only just keeps out,
        so those take part.
        """
        own = len(self.values)
        if own == 0:
            return
        u, v = self._with_near()
        best = Core.diagonal(self.values, u.shape[1])
        residual, known = self._residual(), True
        lowest = self._value_of(best)
        for _ in range(POLISH_STEPS):
            step = 1 / self.curvature
            pull = across(u, residual @ v)
            trial = Core.shrunken(best.matrix + step * pull, step * self.level)
            residual = self._residual_of(along(u, trial.matrix), v)
            value = self._value_of(trial)
            known = value <= lowest
            if not known:
                self.curvature *= 1.5
                break
            best, lowest = trial, value
        kept = best.values > 0.0
        to_left, to_right = self._turns(self.bases, self.values)  # as `_drop_empty` left them
        turns = to_left @ best.left[:own, kept], to_right @ best.right[:own, kept]
        self.bases = along(u, best.left[:, kept]), along(v, best.right[:, kept])
        self._turn(self.bases, best.values[kept], turns, known=known)

    def _with_near(self) -> tuple[Floats, Floats]:
        """Give the factors' bases, and beside them what the last look found and left out."""
        near = self.lacking.values <= self._wanted
        left, right = (
            basis_beside(np.compress(near, vectors, axis=1), basis)
            for vectors, basis in zip(
                (self.lacking.left, self.lacking.right), self.bases, strict=True
            )
        )
        count = min(left.shape[1], right.shape[1])
        u, v = self.bases
        return np.hstack([u, left[:, :count]]), np.hstack([v, right[:, :count]])

    def _turns(self, bases: tuple[Floats, Floats], values: Floats) -> tuple[Floats, Floats]:
        """Give what turns the factors in hand into balanced ones with these bases."""
        root = np.sqrt(values)
        return across(self.right, bases[1]) / root, across(self.left, bases[0]) / root

    def _turn(
        self,
        bases: tuple[Floats, Floats],
        values: Floats,
        turns: tuple[Floats, Floats],
        *,
        known: bool = False,
    ) -> None:
        """Go over to balanced factors, whose residual is `known` if it is the one in hand."""
        root = np.sqrt(values)
        self.left, self.right = bases[0] * root, bases[1] * root
        self.shown = self.left if known else None
        self._residual()
        self.descent.go_on_from(self.left, self.right, turns, self.loss)

    def _residual(self) -> Table:
        """Give what the factors in hand miss, which is computed once."""
        if self.shown is not self.left:
            self._residual_of(self.left, self.right)
            self.shown = self.left
        return Table(self.cells, self.pulls, self.room)

    def _residual_of(self, left: Floats, right: Floats) -> Table:
        """Give what some factors miss; no other residual is in hand any more."""
        self.shown = None
        self.loss = pull_cells(self.cells, left, right, self.pulls)
        return Table(self.cells, self.pulls, self.room)

    def _value_of(self, core: Core) -> float:
        return 0.5 * self.loss + self.level * float(core.values.sum())

    def _let_go(self) -> None:
        """Free what was made of the last residual, which is as large as the data."""
        self.shown = None
        self.__dict__.pop("residual", None)

    def _look(self, count: int, rounds: int = 1) -> None:
        """See the residual: what is missed at each cell, and the directions lacking."""
        self.residual = self._residual()
        self.lacking = leading(
            self.residual, count, without=self.bases, rounds=rounds, start=self.found
        )
        self.found = self.lacking.right[:, self.lacking.values < self.level]

    def _certify(self) -> None:
        """Raise the dual bound; the norm itself is computed only where it can decide."""
        lower = norm_beside(self.residual, self.bases, self.lacking)
        least = (1 - 0.98 * self.tol) * self.objective
        dual = self._dual
        if self.certified or dual.at(lower) < least:
            return
        if not self.descent.coarse:
            self.cells.forget_single()  # room for what the bound takes
        enough = max(lower, dual.norm_for(least))
        upper = norm_bound(self.residual, lower, enough, self.bases)
        self.bound = max(self.bound, dual.at(upper))
        if not self.certified:  # a direction is lacking that a quick look cannot see
            self.rounds = min(2 * self.rounds, MOST_ROUNDS)
            self._look(self.few, self.rounds)
