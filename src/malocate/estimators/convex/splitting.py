"""The square-root loss with the nuclear norm inside a box, by operator splitting.

    minimise over low ≤ M ≤ high:  √((Σ_e w_e (y_e − M_e)² + within) / answers) + penalty · ‖M‖_*

Two copies of the matrix are kept: one that the box and the loss pull, cell by cell, and one
of low rank that the nuclear norm shrinks. Multipliers draw them together (the alternating
direction method). They live on the seen cells, as `pulls`, and on the few unseen cells that
press against a wall of the box, as `walls`, so that neither copy is ever formed densely.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import sparse

from malocate.estimators.convex.box import (
    Box,
    Multipliers,
    Problem,
    Solution,
    certified_bound,
    clipped_objective,
    relative_gap,
    spectral_bound,
)
from malocate.estimators.convex.concomitant import solve_by_scales
from malocate.estimators.engine.factored import fitted
from malocate.estimators.engine.shrinkage import Shrinker, Shrunk, is_short
from malocate.estimators.engine.spectrum import leading

Floats = npt.NDArray[np.float64]

CHECK_STEPS = 5

SETTLING = 50
"""Steps after which the balancing of the two copies has lost half of its freedom."""

NEWTON_STEPS = 60
LEADING = 8
ZERO_SLACK = 1e-6


@dataclass(frozen=True, eq=False)
class Start:
    """Where to begin: factors, and what the last solution knew besides."""

    left: Floats
    right: Floats
    walls: sparse.csr_matrix | None = None
    balance: float = 1.0


def solve(problem: Problem, start: Start, *, tol: float, max_steps: int) -> Solution:
    """Solve to a certified relative duality gap of `tol`, or until `max_steps` are spent.

    Long matrices without a box are solved on factors where that works; inside a box they begin
    from there, unless the start knows better.
    """
    found = None
    if not is_short(problem.cells.shape) and (problem.box is None or start.walls is None):
        free, near = replace(problem, box=None), (start.left, start.right)
        found = solve_by_scales(free, near, tol=tol, max_steps=max_steps)
        if problem.box is None and found.gap <= tol:
            return found
        left, right = found.matrix.factors
        start = replace(start, left=left, right=right)
    steps = 0 if found is None else found.steps
    solver = _Solver(problem, start, tol)
    solver.run(max(1, max_steps - steps))
    split = Solution(
        solver.shrunk,
        solver.sigma,
        solver.objective,
        solver.bound,
        steps + solver.steps,
        solver.balance,
        solver.multipliers,
    )
    return split if found is None else _better(problem, found, split)


def _better(problem: Problem, found: Solution, split: Solution) -> Solution:
    """Keep the lower objective; a bound without the box holds inside it too."""
    bound = max(found.bound, split.bound)
    if problem.box is None and found.objective < split.objective:
        return replace(found, bound=bound, steps=split.steps)
    return replace(split, bound=bound)


def zero_solution(problem: Problem) -> Solution | None:
    """Give the zero matrix if it is the optimum: inside the box, the loss's slope too small.

    Without a penalty below the slope's spectral norm nothing is worth fitting.
    """
    cells, empty = problem.cells, sparse.csr_matrix(problem.cells.shape)
    loss = problem.loss(cells.targets)
    none = Shrunk(np.zeros((cells.shape[0], 0)), np.zeros(0), np.zeros((cells.shape[1], 0)))
    zero = Solution(none, loss, loss, loss, 0, 1.0, Multipliers(np.zeros(len(cells)), empty))
    if problem.box is not None and not problem.box.holds_zero:
        return None
    if loss == 0:
        return zero
    slope = cells.matrix(problem.slopes(cells.targets))
    found = leading(slope, LEADING, rounds=2)
    if found.largest > problem.penalty:
        return None
    norm = spectral_bound(slope, (found.left, found.right), ZERO_SLACK)
    return zero if norm <= problem.penalty else None


class _Solver:
    """The loop of `solve`: pull, shrink, balance, certify."""

    def __init__(self, problem: Problem, start: Start, tol: float) -> None:
        self.problem, self.tol, self.shrinker = problem, tol, Shrinker()
        self.factors = start.left, start.right
        self.steps, self.bound, self.gap = 0, 0.0, math.inf
        cells = problem.cells
        misses = cells.targets - self._values()
        self.sigma = problem.loss(misses)
        pulls = problem.slopes(misses) if self.sigma > 0 else np.zeros(len(cells))
        walls = None if problem.box is None else start.walls
        self.multipliers = Multipliers(
            pulls, sparse.csr_matrix(cells.shape if walls is None else walls)
        )
        self.step = start.balance / (self._unit * problem.answers)

    @property
    def balance(self) -> float:
        """The step, freed of the units and the number of the answers."""
        return self.step * self.problem.answers * self._unit

    @property
    def _unit(self) -> float:
        return self.sigma or self.problem.loss(self.problem.cells.targets) or 1.0

    def run(self, max_steps: int) -> None:
        """Advance until the gap is certified or the steps are spent."""
        while self.gap > self.tol and self.steps < max_steps:
            self.advance()
            if self.steps % CHECK_STEPS == 0 or self.steps == max_steps:
                self.certify()

    def advance(self) -> None:
        """Pull one copy to the answers and into the box, shrink the other towards it."""
        before, old = self.multipliers, self.factors
        self.multipliers = self._pull()
        change = self.multipliers.ahead_of(before).matrix(self.problem.cells) * (1 / self.step)
        self.shrunk = self.shrinker.shrink(old, change, self.problem.penalty / self.step)
        self.factors = self.shrunk.factors
        self.steps += 1
        if self.steps % CHECK_STEPS == 0:
            self._balance(before, old)

    def certify(self) -> None:
        """Compute the objective of the clipped matrix and the best lower bound so far."""
        problem = self.problem
        bases = self.shrunk.bases
        bound = certified_bound(problem, self.slopes, self.multipliers, bases, self.tol)
        self.bound = max(self.bound, bound)
        self.sigma, self.objective = clipped_objective(problem, self.shrunk)
        self.gap = relative_gap(self.objective, self.bound)

    def _values(self) -> Floats:
        return fitted(self.problem.cells, *self.factors)

    def _pull(self) -> Multipliers:
        """Move the loss's copy to its proximal point; its multipliers are what holds it there."""
        problem = self.problem
        free = self._values() - self.multipliers.pulls / self.step
        misses = closest(problem, free, self.step)
        pulls = self.step * (problem.cells.targets - misses - free)
        self.slopes = _slopes(problem, misses, pulls)
        if problem.box is None:
            return Multipliers(self.slopes, self.multipliers.walls)
        return Multipliers(pulls, self._walls(problem.box))

    def _walls(self, box: Box) -> sparse.csr_matrix:
        """Find, block by block, the unseen cells that press against a wall, and how hard."""
        (left, right), cells, before = self.factors, self.problem.cells, self.multipliers.walls
        indptr, parts = cells.indptr, []
        for first, last in box.row_blocks():
            held = before[first:last].tocoo()
            seen = slice(indptr[first], indptr[last])
            free = left[first:last] @ right.T
            free[held.row, held.col] -= held.data / self.step
            push = np.clip(free, *box.block(first, last)) - free
            push[cells.rows[seen] - first, cells.cols[seen]] = 0.0
            parts.append(sparse.csr_matrix(push) * self.step)
        return sparse.vstack(parts, format="csr") if len(parts) > 1 else parts[0]

    def _balance(self, before: Multipliers, old: tuple[Floats, Floats]) -> None:
        """Change the step so that both copies settle at about the same relative pace."""
        size, norm = float(np.linalg.norm(self.shrunk.values)), self.multipliers.norm
        apart = self.multipliers.distance(before) / self.step
        moved = self.step * _distance(self.factors, old)
        if apart * norm > 0 and moved * size > 0:
            freedom = 1 + 1 / (1 + self.steps / SETTLING)
            ratio = math.sqrt(apart * norm / (moved * size))
            self.step *= min(max(ratio, 1 / freedom), freedom)


def closest(problem: Problem, free: Floats, step: float) -> Floats:
    """Minimise the loss plus step/2 · ‖M − free‖² over the seen cells; give the residuals y − M.

    The targets lie inside the box. With x = step · answers · loss, a cell's residual is
    x (y − free) / (x + w), but no larger than what is left once `free` is clipped to the box.
    So x solves Σ w (residual / x)² + within / x² = 1 / (answers · step²); Newton steps on the
    inverse root of the left side, which is nearly straight, find it. No positive x solves it
    when the loss's copy meets every answer: its residuals are then zero.
    """
    w, within = problem.cells.weights, problem.within
    wish = problem.cells.targets - free
    most = np.abs(problem.cells.targets - np.clip(free, *problem.walls))
    wanted = 1 / (step * math.sqrt(problem.answers))
    reach = np.where(most > 0, np.abs(wish), 0.0)
    if within == 0 and math.sqrt(reach @ (reach / w)) <= wanted:
        return np.zeros_like(wish)
    x, low, high = float(w.mean()), 0.0, math.inf
    for _ in range(NEWTON_STEPS):
        shares, slopes = _shares(reach, most, w, x)
        squares = float(w @ (shares * shares)) + within / x**2
        if abs(math.sqrt(squares) / wanted - 1) <= 1e-14:
            break
        low, high = (x, high) if math.sqrt(squares) > wanted else (low, x)
        slope = 2 * float(w @ (shares * slopes)) - 2 * within / x**3
        x += 2 * squares * (1 - math.sqrt(squares) / wanted) / slope
        if not low < x < high:
            x = (low + high) / 2 if high < math.inf else 2 * low
    return np.asarray(np.copysign(x * shares, wish))


def _shares(reach: Floats, most: Floats, w: Floats, x: float) -> tuple[Floats, Floats]:
    """Give each residual's size divided by x, and the slope of that in x."""
    free, held = reach / (x + w), most / x
    bound = held < free
    shares = np.where(bound, held, free)
    return shares, -shares / np.where(bound, x, x + w)


def _slopes(problem: Problem, misses: Floats, pulls: Floats) -> Floats:
    """Give minus the gradient of the loss, or at zero loss the part of the pulls that is its own.

    There every copy equals its answer, and what pushes an answer at a wall outwards is the box's.
    """
    if problem.loss(misses) > 0:
        return problem.slopes(misses)
    (low, high), targets = problem.walls, problem.cells.targets
    beyond = ((targets >= high) & (pulls < 0)) | ((targets <= low) & (pulls > 0))
    return np.where(beyond, 0.0, pulls)


def _distance(one: tuple[Floats, Floats], other: tuple[Floats, Floats]) -> float:
    """Give the Frobenius norm of the difference of two products of factors.

    By triangular factors: Gram matrices would lose differences below 1e−8 of the products.
    """
    left, right = np.hstack([one[0], other[0]]), np.hstack([one[1], -other[1]])
    triangles = [np.asarray(np.linalg.qr(factor, mode="r")) for factor in (left, right)]
    return float(np.linalg.norm(triangles[0] @ triangles[1].T))
