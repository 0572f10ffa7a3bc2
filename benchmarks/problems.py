"""The problems that ours and the peers solve: the paper's model, every cell seen at most once.

The peers know no repeated answers, so cells are drawn without replacement: all then minimise
½ Σ (answer − M)² over the seen cells + penalty · ‖M‖_*, with the same penalty, given as a number.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.linalg import svds
from workers.common import Problem, load, objective, predict

SCRATCH = Path(__file__).resolve().parent / ".scratch"
NOISE = 0.1
SHUFFLED = 20_000_000  # cells up to which a whole permutation is drawn


@dataclass(frozen=True)
class Setup:
    """A family of problems, one for each seed."""

    name: str
    shape: tuple[int, int]
    rank: int
    share: float
    rule: str = "universal"  # or "fancyimpute": a fiftieth of the largest singular value

    @property
    def seen(self) -> int:
        return round(self.share * self.shape[0] * self.shape[1])

    def problem(self, seed: int, growth: float = 0.0) -> Path:
        """Write the problem of a seed to a file; `growth` adds that share of answers to it."""
        shape = "x".join(map(str, self.shape))
        path = SCRATCH / f"{shape}-{self.rank}-{self.share:g}-{self.rule}-{seed}-{growth:g}.npz"
        path.parent.mkdir(exist_ok=True)
        rng = np.random.default_rng([seed, *self.shape, self.rank])
        left, right = (self.rank**-0.25 * rng.standard_normal((d, self.rank)) for d in self.shape)
        most = round(1.02 * self.seen)
        cells = _distinct(rng, self.shape[0] * self.shape[1], most)
        noise = NOISE * rng.standard_normal(most)
        seen = round(self.seen * (1 + growth))
        rows, cols = (side.astype(np.int32) for side in np.divmod(cells[:seen], self.shape[1]))
        values = predict(left, right, rows, cols) + noise[:seen]
        penalty = self._penalty(rows, cols, values)
        np.savez(path, rows=rows, cols=cols, values=values, shape=self.shape, penalty=penalty)
        return path

    def _penalty(self, rows: np.ndarray, cols: np.ndarray, values: np.ndarray) -> float:
        if self.rule == "universal":
            return NOISE * sum((len(values) / side) ** 0.5 for side in self.shape)
        return spectral_norm(csr_array((values, (rows, cols)), shape=self.shape)) / 50


def _distinct(rng: np.random.Generator, cells: int, count: int) -> np.ndarray:
    """Draw different cells, in random order."""
    if cells <= SHUFFLED:
        return rng.permutation(cells)[:count]
    drawn = rng.integers(cells, size=round(1.05 * count / (1 - count / cells)))
    _, firsts = np.unique(drawn, return_index=True)
    return drawn[np.sort(firsts)][:count]


def spectral_norm(matrix: csr_array) -> float:
    """The largest singular value: from the Gram matrix, or by Lanczos where that is too large."""
    if min(matrix.shape) <= 3000:
        thin = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
        return float(np.linalg.eigvalsh((thin @ thin.T).toarray())[-1]) ** 0.5
    return float(svds(matrix, k=1, ncv=60, tol=1e-7, return_singular_vectors=False, rng=0)[0])


def certified_gap(path: Path, left: np.ndarray, right: np.ndarray) -> float:
    """Relative duality gap of left @ rightᵀ, computed without any of the packages compared."""
    problem = load(str(path))
    residual = problem.values - predict(left, right, problem.rows, problem.cols)
    norm = spectral_norm(csr_array((residual, (problem.rows, problem.cols)), shape=problem.shape))
    dual = residual * min(1.0, problem.penalty / norm)
    primal = objective(problem, left, right)
    return (primal - float(dual @ problem.values - 0.5 * dual @ dual)) / primal


def least_rank(path: Path, left: np.ndarray, right: np.ndarray, allowed: float) -> int:
    """The smallest rank to which the optimum can be cut before its objective rises too far."""
    problem = load(str(path))
    optimum = objective(problem, left, right)
    lo, hi = 1, left.shape[1]
    while lo < hi:
        middle = (lo + hi) // 2
        if objective(problem, *_cut(left, right, middle)) <= optimum * (1 + allowed):
            hi = middle
        else:
            lo = middle + 1
    return hi


def _cut(left: np.ndarray, right: np.ndarray, rank: int) -> tuple[np.ndarray, np.ndarray]:
    (q_left, r_left), (q_right, r_right) = np.linalg.qr(left), np.linalg.qr(right)
    u, values, vt = np.linalg.svd(r_left @ r_right.T)
    return q_left @ (u[:, :rank] * values[:rank]), q_right @ vt[:rank].T


__all__ = ["Problem", "Setup", "certified_gap", "least_rank", "load", "objective"]
