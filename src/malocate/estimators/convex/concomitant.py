"""The square-root problem without a box on long sides: least squares at an ever better scale.

At its optimum the square-root problem is the least-squares problem with the penalty multiplied
by answers · sigma, where sigma is the root mean square residual. So sigma is found on the way:
solve, measure the residual, move sigma to where two such measurements say that they will agree.
The factored solver of `nuclear` does the work; each time starts from the last one's factors.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy import sparse

from malocate.estimators.convex import nuclear
from malocate.estimators.convex.box import (
    Multipliers,
    Problem,
    Solution,
    certified_bound,
    clipped_objective,
)
from malocate.estimators.engine.factored import balanced, fitted
from malocate.estimators.engine.shrinkage import Shrunk

Floats = npt.NDArray[np.float64]

SCALES = 15
FIRST_TOL = 1e-2
STEEPEST = 0.9
"""The most that the logarithm of the measured scale may follow that of the scale assumed."""


def solve_by_scales(
    problem: Problem, start: tuple[Floats, Floats], *, tol: float, max_steps: int
) -> Solution:
    """Solve to a certified relative gap of `tol` if a few scales are enough, else come near it.

    Where the answers can be met exactly the scale runs away to zero, and this gives up.
    """
    best = _measured(problem, start, tol, 0)
    least = 1e-6 * problem.loss(problem.cells.targets)
    assumed, before = best.sigma, None
    for _ in range(SCALES):
        if best.gap <= tol or best.steps >= max_steps or not assumed > least:
            break
        fit = nuclear.solve(
            problem.cells,
            problem.penalty * problem.answers * assumed,
            tol=max(tol / 2, min(FIRST_TOL, best.gap / 10)),
            max_steps=max_steps - best.steps,
            start=best.matrix.factors if len(best.matrix.values) else None,
        )
        best = _measured(problem, (fit.left, fit.right), tol, best.steps + fit.steps)
        now = math.log(assumed), math.log(best.sigma) if best.sigma > 0 else -math.inf
        assumed, before = _agreed(now, before), now
    return best


def _measured(problem: Problem, factors: tuple[Floats, Floats], tol: float, steps: int) -> Solution:
    """Give the matrix with its residual, objective and certified bound."""
    matrix = Shrunk(*balanced(*factors))
    sigma, objective = clipped_objective(problem, matrix)
    misses = problem.cells.targets - fitted(problem.cells, *matrix.factors)
    slopes = problem.slopes(misses) if sigma > 0 else np.zeros_like(misses)
    multipliers = Multipliers(slopes, sparse.csr_matrix(problem.cells.shape))
    bound = certified_bound(problem, slopes, multipliers, matrix.bases, tol)
    return Solution(matrix, sigma, objective, max(0.0, bound), steps, 1.0, multipliers)


def _agreed(now: tuple[float, float], before: tuple[float, float] | None) -> float:
    """Give the scale at which assumed and measured agree, by the line through two pairs."""
    assumed, measured = now
    slope = 0.0
    if before is not None and before[0] != assumed:
        slope = min(max((measured - before[1]) / (assumed - before[0]), 0.0), STEEPEST)
    return math.exp(assumed + (measured - assumed) / (1 - slope))
