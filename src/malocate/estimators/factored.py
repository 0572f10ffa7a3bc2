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

from malocate.estimators.cells import Cells, Side
from malocate.estimators.kernels import sampled_product, solve_lines
from malocate.estimators.threads import spread

Floats = npt.NDArray[np.float64]

CG_STEPS = 3


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
    """Descend from the given factors until a step gains less than `tol` of the objective."""
    left, right, ridge = (np.array(a, dtype=np.float64, order="C") for a in (left, right, ridge))
    last_left, last_right = left, right
    best, momentum, small = _objective(cells, left, right, ridge), 0, 0
    for step in range(1, max_steps + 1):
        weight = momentum / (momentum + 3)
        new_left = left + weight * (left - last_left)
        new_right = right + weight * (right - last_right)
        sweep(cells.by_row, new_left, new_right, ridge, cg_steps)
        loss = sweep(cells.by_column, new_right, new_left, ridge, cg_steps)
        value = 0.5 * (loss + ridge @ _squares(new_left) + ridge @ _squares(new_right))
        if value > best:
            if momentum == 0:
                return Factors(left, right, best, step, True)
            last_left, last_right, momentum = left, right, 0
            continue
        small = small + 1 if best - value <= tol * abs(value) else 0
        last_left, last_right, left, right = left, right, new_left, new_right
        best, momentum = value, momentum + 1
        if small >= 2:
            return Factors(left, right, best, step, True)
    return Factors(left, right, best, max_steps, False)


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
