"""The square-root lasso: low rank without knowing the level of the noise, inside the scale."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from malocate.estimators.base import (
    Completion,
    Status,
    check_start,
    empty_completion,
    factors_above,
)
from malocate.estimators.centring import Centre, CentreKind, check_kind, fit_centre
from malocate.estimators.convex.box import Box, Problem, Solution, clipped_objective
from malocate.estimators.convex.pivotal import paper_penalty, pivotal_penalty
from malocate.estimators.convex.splitting import Start, solve, zero_solution
from malocate.estimators.engine.blas import pinned
from malocate.estimators.engine.cells import Cells
from malocate.estimators.engine.threads import in_threads
from malocate.problem import Entries, Observations
from malocate.problem.settings import check_count, check_positive, check_share, check_switch

Floats = npt.NDArray[np.float64]

_NOTHING: dict[str, Any] = {
    "sigma": math.nan,
    "objective": math.nan,
    "steps": 0,
    "balance": 1.0,
    "wall_cells": np.zeros(0, dtype=np.int64),
    "wall_forces": np.zeros(0),
}

NEGLIGIBLE = 1e-12
"""Answers that differ from their centre by less than this share of their size equal it."""


@dataclass(frozen=True)
class SquareRootLasso:
    """Root mean square residual plus `penalty` times the nuclear norm, inside the scale.

    Minimises √(Σ_i (y_i − M_i)² / n) + penalty · ‖M‖_* over all matrices whose every cell, seen
    or not, lies inside the observations' scale; repeated answers count one by one. The penalty
    does not depend on the level of the noise. Unless `penalty` is given, it is C·√(log max(d1,
    d2) / (min(d1, d2) · n)), the paper's rule, if `C` is given, and otherwise 1.1 times the
    .95 quantile of the noise's own slope, simulated on the seen entries (pivotal). An explicit
    `penalty` always wins over a rule.

    `box` is True for the exact problem (without a declared scale there is no box), False for the
    problem without one, "clip" to solve without the box and clip after: a fast heuristic, and
    the status says so. `tol` is a certified relative duality gap. Inside a box the delivered
    matrix is the clipped one, and the gap is of that matrix; for "clip" too, where it says how
    far above the optimum inside the box clipping may have landed.

    With a `centre` the nuclear norm is of what is left when the centre is taken off; the box
    stays the scale. `memory` holds the penalty and its rule, `sigma` (the root mean square
    residual, which estimates the noise), the objective and the steps taken.

    >>> from malocate import Synthetic
    >>> source = Synthetic.ratings(shape=(40, 30), rank=2, rng=0)
    >>> done = SquareRootLasso(C=0.5).fit(source.observe(600, rng=1))
    >>> done.status.value, done.gap <= 1e-3, done.clip
    ('converged', True, (1.0, 5.0))
    """

    C: float | None = None
    penalty: float | None = None
    box: bool | Literal["clip"] = True
    centre: CentreKind = "none"
    tol: float = 1e-3
    max_steps: int = 5000

    def __post_init__(self) -> None:
        check_kind(self.centre)
        for name in ("C", "penalty"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name))
        check_share("tol", self.tol)
        check_count("max_steps", self.max_steps)
        check_switch("box", self.box, instead="clip")

    def fit(self, observations: Observations, *, start: Completion | None = None) -> Completion:
        """Solve to the tolerance, from the start's factors and multipliers if there are any."""
        check_start(observations, start)
        entries = observations.grouped(in_threads)
        if len(entries) == 0:
            return empty_completion(observations, self._memory(observations, math.nan) | _NOTHING)
        with pinned():
            penalty = self._penalty(entries)
            centre = fit_centre(entries, self.centre)
            scale = observations.scale if self.box else None
            problem = _problem(entries, penalty, centre, scale)
            solution, status = self._solve(problem, _start(problem, centre, start))
        left, right = solution.matrix.factors
        memory = self._memory(observations, penalty) | _memory(solution)
        labels = observations.labels
        return Completion(left, right, centre, status, solution.gap, scale, labels, memory)

    def _penalty(self, entries: Entries) -> float:
        if self.penalty is not None:
            return float(self.penalty)
        if self.C is not None:
            return paper_penalty(entries.shape, entries.n_answers, float(self.C))
        return pivotal_penalty(entries)

    def _memory(self, observations: Observations, penalty: float) -> dict[str, Any]:
        by_rule = "pivotal" if self.C is None else "paper"
        return {
            "answers": len(observations),
            "centre": self.centre,
            "penalty": penalty if self.penalty is None else float(self.penalty),
            "rule": by_rule if self.penalty is None else "given",
        }

    def _solve(self, problem: Problem, start: Start) -> tuple[Solution, Status]:
        if (zero := zero_solution(problem)) is not None:
            return zero, Status.CLOSED_FORM
        clip = problem.box is not None and self.box == "clip"
        posed = replace(problem, box=None) if clip else problem
        solution = solve(posed, start, tol=self.tol, max_steps=self.max_steps)
        status = Status.CONVERGED if solution.gap <= self.tol else Status.OUT_OF_STEPS
        if clip:
            sigma, objective = clipped_objective(problem, solution.matrix)
            if (sigma, objective) != (solution.sigma, solution.objective):
                solution = replace(solution, sigma=sigma, objective=objective)
                status = Status.CLIPPED if status is Status.CONVERGED else status
        return solution, status


def _problem(
    entries: Entries, penalty: float, centre: Centre, scale: tuple[float, float] | None
) -> Problem:
    """Take the centre off the answers and off the box."""
    targets = entries.means - centre.at(entries.rows, entries.cols)
    targets[np.abs(targets) <= NEGLIGIBLE * np.abs(entries.means).max()] = 0.0
    box = None if scale is None else Box(*scale, centre, entries.shape)
    within = float(entries.squares.sum())
    return Problem(Cells.from_entries(entries, targets), within, entries.n_answers, penalty, box)


def _start(problem: Problem, centre: Centre, start: Completion | None) -> Start:
    """Begin where the start left off, or at a constant matrix that lies inside the box."""
    cells, box = problem.cells, problem.box
    if start is not None and _is_closer_than_zero(cells, start, centre):
        left, right = factors_above(centre, start)
        balance = float(start.memory.get("balance", 1.0))
        return Start(left, right, _walls(cells, start), min(max(balance, 0.01), 100.0))
    if box is None or box.holds_zero or not box.is_level:
        return Start(np.zeros((cells.shape[0], 0)), np.zeros((cells.shape[1], 0)))
    level = float(np.average(cells.targets, weights=cells.weights))
    return Start(np.full((cells.shape[0], 1), level), np.ones((cells.shape[1], 1)))


def _is_closer_than_zero(cells: Cells, start: Completion, centre: Centre) -> bool:
    """Tell whether a start misses the answers by less than no start at all."""
    above = start.predict(cells.rows, cells.cols) - centre.at(cells.rows, cells.cols)
    missed = cells.weights @ (cells.targets - above) ** 2
    return bool(missed < cells.weights @ cells.targets**2)


def _walls(cells: Cells, start: Completion) -> sparse.csr_matrix | None:
    """Give the start's multipliers on the cells that are still unseen, if it kept any."""
    if len(start.memory.get("wall_cells", ())) == 0:
        return None
    places, forces = start.memory["wall_cells"], start.memory["wall_forces"]
    seen = cells.rows.astype(np.int64) * cells.shape[1] + cells.cols
    unseen = np.isin(places, seen, assume_unique=True, invert=True)
    rows, cols = np.divmod(places[unseen], cells.shape[1])
    return sparse.csr_matrix((forces[unseen], (rows, cols)), shape=cells.shape)


def _memory(solution: Solution) -> dict[str, Any]:
    """Give what is told, and what a start needs: multipliers only if fewer than the seen cells."""
    told = {name: getattr(solution, name) for name in ("sigma", "objective", "steps", "balance")}
    walls = solution.multipliers.walls.tocoo()
    if walls.nnz > len(solution.multipliers.pulls):
        return _NOTHING | told
    cells = walls.row.astype(np.int64) * walls.shape[1] + walls.col
    return told | {"wall_cells": cells, "wall_forces": walls.data}
