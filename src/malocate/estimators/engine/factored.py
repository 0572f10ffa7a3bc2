"""Accelerated alternating ridge least squares on factors: the engine under the estimators.

    minimise over U, V:  ½ Σ_e w_e (y_e − u_i·v_j)² + ½ Σ_k ridge_k (‖U_k‖² + ‖V_k‖²)

One step extrapolates both factors (Nesterov), then moves every row of U and then every row
of V by a few preconditioned conjugate-gradient steps on its own ridge problem. A step that
raises the objective is taken back and the momentum starts anew.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from malocate.estimators.engine.cells import Cells, Reals, Side
from malocate.estimators.engine.kernels import pull_lines, sampled_product, solve_lines
from malocate.estimators.engine.momentum import extrapolate, mean_squares, penalised
from malocate.estimators.engine.orthogonal import orthogonal
from malocate.estimators.engine.tall import along
from malocate.estimators.engine.threads import FETCH, spread
from malocate.estimators.engine.turns import Turns
from malocate.problem.arrays import read_only

Floats = npt.NDArray[np.float64]

CG_STEPS, PATIENCE = 3, 2
"""Conjugate-gradient steps on each line; steps in a row that gain little before a descent ends."""

ROUNDING, COARSE_ROUNDING = 1e-14, 1e-7
"""Relative rise of the objective that is put down to rounding, not to a bad step."""

COARSE = 1e-6
"""Relative gain of a step below which single precision is left for double."""


@dataclass(frozen=True, eq=False)
class Factors:
    """A pair of factors, the objective they reach and how the descent ended."""

    left: Floats
    right: Floats
    objective: float
    steps: int
    settled: bool


def balanced(left: Floats, right: Floats) -> tuple[Floats, Floats, Floats]:
    """Give the thin singular value decomposition of ``left @ right.T`` without forming it."""
    (p, a), (q, b) = orthogonal(left), orthogonal(right)
    u, values, vt = np.linalg.svd(a @ b.T, full_matrices=False)
    return along(p, u), values, along(q, vt.T)


class Descent:
    """A descent under way: run some steps, look at it, run more with the momentum kept.

    It begins in single precision, which is faster, and goes over to double once a step gains
    less than single precision can tell.
    """

    def __init__(self, cells: Cells, left: Floats, right: Floats, ridge: Floats) -> None:
        """Start at the given factors, which are copied."""
        self.cells = cells
        self.left, self.right, self.ridge = (
            np.array(a, dtype=np.float64, order="C") for a in (left, right, ridge)
        )
        self.objective = _objective(cells, self.left, self.right, self.ridge)
        self.steps = 0
        self._before = (self.left, self.right)
        self.coarse = cells.fits_single
        self._momentum = 0

    def widen(self, left: Floats, right: Floats) -> None:
        """Append columns, at rest; the others keep their momentum."""
        self._before = _joined(self._before[0], left), _joined(self._before[1], right)
        self.left, self.right = _joined(self.left, left), _joined(self.right, right)
        self.ridge = np.append(self.ridge, np.full(left.shape[1], self.ridge[-1]))
        self.objective = _objective(self.cells, self.left, self.right, self.ridge)

    def go_on_from(
        self, left: Floats, right: Floats, turns: tuple[Floats, Floats], loss: float
    ) -> None:
        """Go over to other factors and their loss; the momentum is turned along, each by its turn.

        All columns must have the same ridge.
        """
        moves = (
            along(self.left - self._before[0], turns[0]),
            along(self.right - self._before[1], turns[1]),
        )
        self.left, self.right = left, right
        self._before = (left - moves[0], right - moves[1])
        self.ridge = np.full(left.shape[1], self.ridge[0])
        self.objective = float(penalised(np.array([loss]), self.ridge, left, right))

    def run(
        self, steps: int, tol: float, cg_steps: int = CG_STEPS, patience: int = PATIENCE
    ) -> bool:
        """Take up to `steps` steps; true once a few in a row gain less than `tol`, or none can."""
        small = 0
        for _ in range(steps):
            before, momentum = self.objective, self._momentum
            kept = self._step(cg_steps)
            if not kept and momentum == 0 and not self.coarse:
                return True
            gain = before - self.objective
            small = small + 1 if kept and gain <= tol * abs(self.objective) else 0
            if small >= patience:
                return True
            if self.coarse and gain <= COARSE * abs(self.objective):
                self._refine()
        return False

    def _refine(self) -> None:
        """Go over to double precision."""
        self.coarse = False
        self.objective = _objective(self.cells, self.left, self.right, self.ridge)

    def _step(self, cg_steps: int) -> bool:
        """Extrapolate and sweep both sides; keep the result if it lowers the objective."""
        self.steps += 1
        weight = self._momentum / (self._momentum + 3)
        left, right, value = self._swept(weight, cg_steps)
        self._before = (self.left, self.right)
        rounding = COARSE_ROUNDING if self.coarse else ROUNDING
        if not value <= self.objective + rounding * abs(self.objective):
            self._momentum = 0
            return False
        self.left, self.right, self.objective = left, right, float(value)
        self._momentum += 1
        return True

    def _swept(self, weight: float, cg_steps: int) -> tuple[Floats, Floats, float]:
        """Give both factors after a step, and their objective."""
        precision: type[np.floating[Any]] = np.float32 if self.coarse else np.float64
        sides, ridge = self.cells.sides(precision), self.ridge.astype(precision)
        first, second = np.empty(self.left.shape, precision), np.empty(self.right.shape, precision)
        extrapolate(self.left, self._before[0], weight, first)
        extrapolate(self.right, self._before[1], weight, second)
        sweep(sides.by_row, first, second, ridge, cg_steps)
        losses = sweep(sides.by_column, second, first, ridge, cg_steps)
        value = penalised(losses, self.ridge, first, second)
        return first.astype(np.float64, copy=False), second.astype(np.float64, copy=False), value


def descend(
    cells: Cells,
    left: Floats,
    right: Floats,
    ridge: Floats,
    *,
    max_steps: int,
    tol: float,
    cg_steps: int = CG_STEPS,
    patience: int = PATIENCE,
) -> Factors:
    """Descend from the given factors until a few steps in a row gain less than `tol`."""
    descent = Descent(cells, left, right, ridge)
    settled = descent.run(max_steps, tol, cg_steps, patience)
    return Factors(descent.left, descent.right, descent.objective, descent.steps, settled)


def sweep(side: Side, factor: Reals, other: Reals, ridge: Reals, cg_steps: int) -> Floats:
    """Move every line of `factor` in place, over threads; give each line's loss there."""
    losses, power = np.empty(len(factor)), mean_squares(other)

    def work(turns: Turns) -> None:
        solve_lines(
            side.indptr, side.index, side.weights, side.targets,
            factor, other, ridge, power, cg_steps, turns, losses,
        )  # fmt: skip

    spread(work, side.indptr, (2 * cg_steps + 3) * len(ridge))
    return losses


def fitted(cells: Cells, left: Floats, right: Floats) -> Floats:
    """Give ``left @ right.T`` at the cells."""
    return product_at(cells.indptr, cells.cols, left, right)


def product_at(
    indptr: npt.NDArray[np.int64], cols: npt.NDArray[np.int32], left: Floats, right: Floats
) -> Floats:
    """Give ``left @ right.T`` at places that come row by row."""
    left, right = _readable(left), _readable(right)
    values = np.empty(len(cols))

    def work(turns: Turns) -> None:
        sampled_product(indptr, cols, left, right, turns, values)

    spread(work, indptr, FETCH + left.shape[1])
    return values


def pull_cells(cells: Cells, left: Floats, right: Floats, pulls: Floats) -> float:
    """Put the weighted residual w (y − fit) at the cells into `pulls`; the loss Σ w (y − fit)²."""
    return float(_losses(cells, left, right, pulls).sum())


def energy(cells: Cells, left: Floats, right: Floats) -> float:
    """Give Σ w (left · right)² over the cells."""
    nothing = replace(cells, targets=np.zeros(len(cells)))
    return float(_losses(nothing, left, right, np.empty(0)).sum())


def _objective(cells: Cells, left: Floats, right: Floats, ridge: Floats) -> float:
    return float(penalised(_losses(cells, left, right, np.empty(0)), ridge, left, right))


def _losses(cells: Cells, left: Floats, right: Floats, pulls: Floats) -> Floats:
    left, right = _readable(left), _readable(right)
    losses = np.zeros(len(left))

    def work(turns: Turns) -> None:
        pull_lines(
            cells.indptr, cells.cols, cells.weights, cells.targets,
            left, right, turns, pulls, losses,
        )  # fmt: skip

    spread(work, cells.indptr, FETCH + left.shape[1])
    return losses


def _readable(factor: Floats) -> Floats:
    return read_only(np.ascontiguousarray(factor))


def _joined(factor: Floats, columns: Floats) -> Floats:
    return np.ascontiguousarray(np.hstack([factor, columns]))
