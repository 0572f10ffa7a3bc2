"""fancyimpute's SoftImpute, with its iterates judged while its clock stands still."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from common import Clock, Problem, load, serve
from fancyimpute import SoftImpute

warnings.simplefilter("ignore")  # scikit-learn's note on a renamed argument, at every call


class Watched(SoftImpute):
    """The same iteration, stopped once its low-rank iterate reaches the target."""

    def __init__(self, problem: Problem, target: float, limit: float, max_rank: int | None) -> None:
        super().__init__(
            shrinkage_value=problem.penalty, max_iters=100_000, max_rank=max_rank, verbose=False
        )
        self.problem, self.target, self.limit = problem, target, limit
        self.trajectory: list[list[float]] = []
        self.clock = Clock()

    def _svd_step(self, X, shrinkage_value, max_rank=None):
        step = super()._svd_step(X, shrinkage_value, max_rank=max_rank)
        with self.clock.paused() as reading:
            self.trajectory.append([*reading, self._objective(step[0])])
        return step

    def _objective(self, matrix: np.ndarray) -> float:
        problem = self.problem
        residual = problem.values - matrix[problem.rows, problem.cols]
        norm = np.linalg.svd(matrix, compute_uv=False).sum()
        return 0.5 * float(residual @ residual) + problem.penalty * float(norm)

    def _converged(self, X_old, X_new, missing_mask):
        super()._converged(X_old, X_new, missing_mask)  # the work counts, the verdict does not
        return self.trajectory[-1][2] <= self.target or self.trajectory[-1][0] > self.limit


def answer(request: dict[str, Any]) -> dict[str, Any]:
    problem = load(request["problem"])
    incomplete = np.full(problem.shape, np.nan)
    incomplete[problem.rows, problem.cols] = problem.values
    solver = Watched(problem, request["target"], request["limit"], request.get("max_rank"))
    solver.clock = Clock()
    solver.fit_transform(incomplete)
    return {"trajectory": solver.trajectory}


if __name__ == "__main__":
    serve(answer)
