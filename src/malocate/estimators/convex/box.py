"""The square-root problem inside a box, and the certificate of how well it is solved.

    minimise over low ≤ M ≤ high:  √((Σ_e w_e (y_e − M_e)² + within) / answers) + penalty · ‖M‖_*

`within` is the scatter of repeated answers around their mean, which no M can lower. For any
matrix S on the seen cells and number b with Σ S_e²/w_e + b² ≤ 1/answers, and any matrix Z with
‖S + Z‖ ≤ penalty in spectral norm, the minimum is at least

    Σ_e S_e y_e + b √within + Σ_cells min(low · Z, high · Z),

for the loss is at least Σ S_e (y_e − M_e) + b √within, the nuclear norm's part is at least
⟨S + Z, M⟩, and ⟨Z, M⟩ is at least the last sum inside the box. Without a box Z must vanish.
The bound is proportional to (S, b, Z), so multipliers are scaled down until their norm fits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import sparse

from malocate.estimators.base import BLOCK_CELLS
from malocate.estimators.centring import Centre
from malocate.estimators.engine.cells import Cells
from malocate.estimators.engine.factored import fitted
from malocate.estimators.engine.norms import norm_bound, norm_within
from malocate.estimators.engine.shrinkage import Shrunk, is_short

Floats = npt.NDArray[np.float64]
Bounds = tuple[Floats | float, Floats | float]

EXACT_SIDE = 500
"""Shorter sides up to which the nuclear norm of a clipped matrix is computed, not bounded."""


@dataclass(frozen=True, eq=False)
class Box:
    """The same low and high wall for every cell of the matrix, seen from the centre."""

    low: float
    high: float
    centre: Centre
    shape: tuple[int, int]

    @property
    def is_level(self) -> bool:
        """Whether the walls stay the same from cell to cell once the centre is taken off."""
        return not (self.centre.rows.size or self.centre.cols.size)

    def at(self, rows: npt.ArrayLike, cols: npt.ArrayLike) -> Bounds:
        """Give the walls at some cells, less the centre there."""
        level = self.centre.offset if self.is_level else self.centre.at(rows, cols)
        return self.low - level, self.high - level

    def block(self, first: int, last: int) -> Bounds:
        """Give the walls of whole rows, less the centre there."""
        return self.at(np.arange(first, last)[:, None], np.arange(self.shape[1])[None, :])

    def row_blocks(self) -> Iterator[tuple[int, int]]:
        """Cut the rows into blocks of a limited number of cells."""
        height, width = self.shape
        step = max(1, BLOCK_CELLS // width)
        return ((first, min(first + step, height)) for first in range(0, height, step))

    @property
    def holds_zero(self) -> bool:
        """Whether the centre itself lies inside the box, everywhere."""
        effects = [side for side in (self.centre.rows, self.centre.cols) if side.size]
        least = self.centre.offset + sum(float(side.min()) for side in effects)
        most = self.centre.offset + sum(float(side.max()) for side in effects)
        return self.low <= least and most <= self.high


@dataclass(frozen=True, eq=False)
class Problem:
    """One square-root problem: cells with centred targets, the scatter within cells, the box."""

    cells: Cells
    within: float
    answers: float
    penalty: float
    box: Box | None

    @cached_property
    def walls(self) -> Bounds:
        """The walls of the box at the seen cells; infinite without a box."""
        if self.box is None:
            return -math.inf, math.inf
        return self.box.at(self.cells.rows, self.cells.cols)

    def loss(self, misses: Floats) -> float:
        """Give the root mean square residual, given what is missed at each seen cell."""
        return math.sqrt((self.cells.weights @ (misses * misses) + self.within) / self.answers)

    def slopes(self, misses: Floats) -> Floats:
        """Give minus the gradient of the loss there; it must not be zero."""
        return np.asarray(self.cells.weights * misses / (self.answers * self.loss(misses)))


@dataclass(frozen=True, eq=False)
class Multipliers:
    """The dual side: one number per seen cell, and a sparse matrix on unseen cells at a wall."""

    pulls: Floats
    walls: sparse.csr_matrix

    def matrix(self, cells: Cells) -> sparse.csr_matrix:
        """Give all of them as one sparse matrix."""
        seen = cells.matrix(self.pulls)
        return seen + self.walls if self.walls.nnz else seen

    def ahead_of(self, before: Multipliers) -> Multipliers:
        """Give these moved on by as much as they have moved since before."""
        return Multipliers(2 * self.pulls - before.pulls, 2 * self.walls - before.walls)

    def distance(self, other: Multipliers) -> float:
        """Give the Frobenius norm of the difference."""
        walls = self.walls - other.walls
        return math.hypot(np.linalg.norm(self.pulls - other.pulls), np.linalg.norm(walls.data))

    @property
    def norm(self) -> float:
        """The Frobenius norm."""
        return math.hypot(np.linalg.norm(self.pulls), np.linalg.norm(self.walls.data))


@dataclass(frozen=True, eq=False)
class Solution:
    """A low-rank matrix, to be clipped to the box; its loss, objective and bound once clipped."""

    matrix: Shrunk
    sigma: float
    objective: float
    bound: float
    steps: int
    balance: float
    multipliers: Multipliers

    @property
    def gap(self) -> float:
        """The certified relative duality gap."""
        return relative_gap(self.objective, self.bound)


def relative_gap(objective: float, bound: float) -> float:
    """Give how far the objective may lie above the minimum, as a share of the objective."""
    return max(0.0, objective - bound) / objective if objective > 0 else 0.0


def certified_bound(
    problem: Problem,
    slopes: Floats,
    multipliers: Multipliers,
    bases: tuple[Floats, Floats],
    slack: float,
) -> float:
    """Give the lower bound that opens this module, of multipliers scaled down until they fit.

    `bases` span what carries most of the multipliers' norm, `slack` is the relative excess of
    the norm's bound that does not matter.
    """
    norm = spectral_bound(multipliers.matrix(problem.cells), bases, slack) / problem.penalty
    length = math.sqrt(problem.answers * float(slopes @ (slopes / problem.cells.weights)))
    return dual_value(problem, slopes, multipliers) / max(1.0, norm, length)


def dual_value(problem: Problem, slopes: Floats, multipliers: Multipliers) -> float:
    """Give the lower bound that opens this module, before any scaling."""
    cells, answers = problem.cells, problem.answers
    spare = 1 / answers - float(slopes @ (slopes / cells.weights))
    value = float(slopes @ cells.targets) + math.sqrt(max(0.0, spare) * problem.within)
    if problem.box is None:
        return value
    walls = multipliers.walls.tocoo()
    held = _supported(multipliers.pulls - slopes, problem.walls)
    return value + held + _supported(walls.data, problem.box.at(walls.row, walls.col))


def _supported(forces: Floats, walls: Bounds) -> float:
    """Give Σ min(low · force, high · force)."""
    return float(np.minimum(walls[0] * forces, walls[1] * forces).sum())


def clipped_objective(problem: Problem, matrix: Shrunk) -> tuple[float, float]:
    """Give the loss and the objective of a matrix once it is clipped to the box."""
    values = np.clip(fitted(problem.cells, *matrix.factors), *problem.walls)
    loss = problem.loss(problem.cells.targets - values)
    return loss, loss + problem.penalty * _clipped_nuclear_norm(problem.box, matrix)


def _clipped_nuclear_norm(box: Box | None, matrix: Shrunk) -> float:
    """Give the nuclear norm of the clipped matrix, or more than it where sides are long.

    What clipping takes off has at most the sum of its rows' lengths as its nuclear norm, and at
    most the sum of its columns' lengths.
    """
    norm = float(matrix.values.sum())
    if box is None:
        return norm
    left, right = matrix.factors
    blocks = list(box.row_blocks())
    if len(blocks) == 1 and min(box.shape) <= EXACT_SIDE:
        dense = left @ right.T
        clipped = np.clip(dense, *box.block(0, len(dense)))
        same = bool((clipped == dense).all())
        return norm if same else float(np.linalg.svd(clipped, compute_uv=False).sum())
    along_rows, columns = 0.0, np.zeros(box.shape[1])
    for first, last in blocks:
        excess = left[first:last] @ right.T
        excess -= np.clip(excess, *box.block(first, last))
        excess *= excess
        along_rows += float(np.sqrt(excess.sum(axis=1)).sum())
        columns += excess.sum(axis=0)
    return norm + min(along_rows, float(np.sqrt(columns).sum()))


def spectral_bound(matrix: sparse.csr_matrix, bases: tuple[Floats, Floats], slack: float) -> float:
    """Give the spectral norm or a little more, never less."""
    if is_short(matrix.shape):
        dense = matrix.toarray()
        short = dense if dense.shape[0] <= dense.shape[1] else dense.T
        largest = float(np.linalg.eigvalsh(short @ short.T)[-1])
        return math.sqrt(max(0.0, largest)) * (1 + 1e-12)
    even = float(np.linalg.norm(matrix.data)) / math.sqrt(min(matrix.shape))
    lower = max(norm_within(matrix, bases), even)
    if lower <= 0:
        return 0.0
    return norm_bound(matrix, lower, lower * (1 + slack), bases, anyhow=True)
