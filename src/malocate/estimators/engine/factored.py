"""Accelerated alternating ridge least squares on factors: the engine under the estimators.

    minimise over U, V:  ½ Σ_e w_e (y_e − u_i·v_j)² + ½ Σ_k ridge_k (‖U_k‖² + ‖V_k‖²)

One step extrapolates both factors (Nesterov), then moves every row of U and then every row
of V by a few preconditioned conjugate-gradient steps on its own ridge problem. A step that
raises the objective is taken back and the momentum starts anew.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from malocate.estimators.engine.cells import Cells, Side
from malocate.estimators.engine.kernels import sampled_product, solve_lines
from malocate.estimators.engine.threads import spread

Floats = npt.NDArray[np.float64]

CG_STEPS = 3

ROUNDING = 1e-14
"""Relative rise of the objective that is put down to rounding, not to a bad step."""


@dataclass(frozen=True, eq=False)
class Factors:
    """A pair of factors, the objective they reach and how the descent ended."""

    left: Floats
    right: Floats
    objective: float
    steps: int
    settled: bool

    def balanced(self) -> tuple[Floats, Floats, Floats]:
        """Give left vectors, singular values and right vectors of ``left @ right.T``."""
        return balanced(self.left, self.right)


def balanced(left: Floats, right: Floats) -> tuple[Floats, Floats, Floats]:
    """Give the thin singular value decomposition of ``left @ right.T`` without forming it."""
    q_left, r_left = np.linalg.qr(left)
    q_right, r_right = np.linalg.qr(right)
    u, values, vt = np.linalg.svd(r_left @ r_right.T)
    k = min(left.shape[1], len(values))
    return q_left @ u[:, :k], values[:k], q_right @ vt[:k].T


class Descent:
    """A descent under way: run some steps, look at it, run more with the momentum kept."""

    def __init__(self, cells: Cells, left: Floats, right: Floats, ridge: Floats) -> None:
        """Start at the given factors, which are copied."""
        self.cells = cells
        self.left, self.right, self.ridge = (
            np.array(a, dtype=np.float64, order="C") for a in (left, right, ridge)
        )
        self.objective = _objective(cells, self.left, self.right, self.ridge)
        self.steps = 0
        self._before = (self.left, self.right)
        self._momentum = 0

    def widen(self, left: Floats, right: Floats) -> None:
        """Append columns, at rest; the others keep their momentum."""
        self._before = (np.hstack([self._before[0], left]), np.hstack([self._before[1], right]))
        self.left, self.right = np.hstack([self.left, left]), np.hstack([self.right, right])
        self.ridge = np.append(self.ridge, np.full(left.shape[1], self.ridge[-1]))
        self.objective = _objective(self.cells, self.left, self.right, self.ridge)

    def run(self, steps: int, tol: float, cg_steps: int = CG_STEPS) -> bool:
        """Take up to `steps` steps; true once two in a row gain less than `tol`, or none can."""
        small = 0
        for _ in range(steps):
            before, momentum = self.objective, self._momentum
            if not self._step(cg_steps):
                if momentum == 0:
                    return True
                continue
            small = small + 1 if before - self.objective <= tol * abs(self.objective) else 0
            if small >= 2:
                return True
        return False

    def _step(self, cg_steps: int) -> bool:
        """Extrapolate and sweep both sides; keep the result if it lowers the objective."""
        self.steps += 1
        weight = self._momentum / (self._momentum + 3)
        left = self.left + weight * (self.left - self._before[0])
        right = self.right + weight * (self.right - self._before[1])
        sweep(self.cells.by_row, left, right, self.ridge, cg_steps)
        loss = sweep(self.cells.by_column, right, left, self.ridge, cg_steps)
        value = 0.5 * (loss + self.ridge @ (_squares(left) + _squares(right)))
        self._before = (self.left, self.right)
        if not value <= self.objective + ROUNDING * abs(self.objective):
            self._momentum = 0
            return False
        self.left, self.right, self.objective = left, right, float(value)
        self._momentum += 1
        return True


def descend(
    cells: Cells,
    left: Floats,
    right: Floats,
    ridge: Floats,
    *,
    max_steps: int,
    tol: float,
    cg_steps: int = CG_STEPS,
) -> Factors:
    """Descend from the given factors until two steps in a row gain less than `tol`."""
    descent = Descent(cells, left, right, ridge)
    settled = descent.run(max_steps, tol, cg_steps)
    return Factors(descent.left, descent.right, descent.objective, descent.steps, settled)


def sweep(side: Side, factor: Floats, other: Floats, ridge: Floats, cg_steps: int) -> float:
    """Move every line of `factor` in place; give Σ w (y − fit)² at the new factor."""
    losses = np.zeros(len(factor))
    power = _squares(other) / max(1, len(other))

    def work(first: int, last: int) -> None:
        solve_lines(
            side.indptr, side.index, side.weights, side.targets,
            factor, other, ridge, power, cg_steps, first, last, losses,
        )  # fmt: skip

    spread(work, side.indptr, (2 * cg_steps + 3) * factor.shape[1])
    return float(losses.sum())


def fitted(cells: Cells, left: Floats, right: Floats) -> Floats:
    """Give ``left @ right.T`` at the cells."""
    side, values = cells.by_row, np.empty(len(cells))

    def work(first: int, last: int) -> None:
        sampled_product(side.indptr, side.index, left, right, first, last, values)

    spread(work, side.indptr, left.shape[1])
    return values


def _objective(cells: Cells, left: Floats, right: Floats, ridge: Floats) -> float:
    miss = cells.targets - fitted(cells, left, right)
    penalty = ridge @ _squares(left) + ridge @ _squares(right)
    return float(0.5 * (cells.weights @ (miss * miss) + penalty))


def _squares(factor: Floats) -> Floats:
    return np.asarray(np.einsum("ik,ik->k", factor, factor))
