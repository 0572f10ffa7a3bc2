"""Least squares projected on low rank: the estimator for as many answers as cells, or more.

When every cell was answered, the least-squares matrix is simply the matrix Y of mean answers,
and the best fit of rank r to it is its singular value decomposition cut after r values. What is
left to choose is r. Write Y = M + Z, where Z is noise with variance v = σ² / visits per cell,
and let b bound the largest singular value of Z. If M has rank at most r, then every singular
value of Y after the r-th is at most b (Weyl), so for every larger rank r'

    ‖M_r − M_r'‖²_F = Σ_{r < i ≤ r'} s_i² ≤ (r' − r) · b².

Lepski's choice is the smallest r that passes all these comparisons: a larger rank would only
add what noise could have made. For independent noise the largest singular value of Z is about
√A + √B, where A and B are the largest sums of v along a row and along a column. The bound is set
a factor above that edge (1.15 for square matrices, up to √2 for long ones), where cutting costs
the least mean squared error in the limit of large matrices (Gavish and Donoho, 2014):

    b² = (2 (t + 1) + 8 t / (t + 1 + √(t² + 14 t + 1))) · max(A, B),  t = min(A, B) / max(A, B).

With n answers spread evenly, b² is below 2.7 σ² (d1 + d2) · d1 d2 / n, so that the error per entry
is of the order σ² r (d1 + d2) / n, without a logarithm.

Cells without answers begin at the centre and are then filled with the fit itself, again and again
until it stays: a descent on the squared misses at the seen cells. Meanwhile their "noise" is what
the filling is still expected to move (its last move · unseen / seen) plus what the fit does not yet
explain at the seen cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from malocate.estimators.base import (
    Completion,
    Memory,
    Status,
    check_start,
    empty_completion,
    refuse_dense,
)
from malocate.estimators.centring import Centre, CentreKind, check_kind, fit_centre
from malocate.estimators.engine.blas import pinned
from malocate.problem import Entries, Observations
from malocate.problem.settings import check_count, check_share

Floats = npt.NDArray[np.float64]

_NO_VALUES = np.zeros(0)


@dataclass(frozen=True)
class ProjectedLeastSquares:
    """The mean answer of every cell, cut to low rank: for as many answers as cells, or more.

    `rank` is a number, or "lepski": the smallest rank beyond which there is nothing that noise
    could not have made. The noise level comes from repeated answers; where nothing was repeated
    it is read off the smaller half of the singular values. When every cell was answered the fit
    is in closed form. Else the unseen cells are filled with the fit itself, at most `max_steps`
    times, until it changes by less than `tol` of its size. Answers on a declared scale give a
    completion clipped to it. A `start` saves nothing.

    `memory` holds the noise variance of an answer, the bound below which singular values count
    as noise, all singular values and the steps taken.

    >>> from malocate import Synthetic
    >>> source = Synthetic.low_rank(shape=(40, 30), rank=3, noise=1.0, rng=0)
    >>> done = ProjectedLeastSquares().fit(source.observe(20 * 40 * 30, rng=1))
    >>> done.rank
    3
    >>> bool(((done.dense() - source.truth) ** 2).mean() < 0.02)
    True
    """

    rank: int | Literal["lepski"] = "lepski"
    centre: CentreKind = "none"
    tol: float = 1e-4
    max_steps: int = 100

    def __post_init__(self) -> None:
        check_kind(self.centre)
        if self.rank != "lepski":
            check_count("rank", self.rank, least=0, instead="'lepski'")
        check_count("max_steps", self.max_steps, least=1)
        check_share("tol", self.tol)

    def fit(self, observations: Observations, *, start: Completion | None = None) -> Completion:
        """Average the answers cell by cell and cut the matrix of means to low rank."""
        check_start(observations, start)
        refuse_dense(observations.shape, "use LowRankLeastSquares, which never makes it")
        entries = observations.entries
        if len(entries) == 0:
            return empty_completion(observations, self._memory(observations))
        with pinned():
            centre = fit_centre(entries, self.centre)
            cut, steps, settled = self._filled(_Means.above(entries, centre))
        all_seen = len(entries) == observations.shape[0] * observations.shape[1]
        found = Status.CONVERGED if settled else Status.OUT_OF_STEPS
        return Completion(
            cut.left,
            cut.right,
            centre,
            Status.CLOSED_FORM if all_seen else found,
            clip=observations.scale,
            labels=observations.labels,
            memory=self._memory(observations, cut.noise, cut.bound, cut.values, steps),
        )

    def _memory(
        self,
        observations: Observations,
        noise: float = math.nan,
        bound: float = math.nan,
        values: Floats = _NO_VALUES,
        steps: int = 0,
    ) -> Memory:
        return {
            "answers": len(observations),
            "centre": self.centre,
            "noise_variance": noise,
            "noise_bound": bound,
            "singular_values": values,
            "steps": steps,
        }

    def _filled(self, means: _Means) -> tuple[_Cut, int, bool]:
        """Cut, fill the unseen cells with what comes out, and so on until nothing moves."""
        filled, doubt = means.matrix, means.unexplained(np.zeros_like(means.matrix))
        last, cut = np.zeros_like(filled), means.cut(filled, doubt, self.rank)
        for step in range(1, self.max_steps + 1):
            fit = cut.left @ cut.right.T
            moved = float(np.linalg.norm(fit - last))
            if means.seen.all() or moved <= self.tol * float(np.linalg.norm(fit)):
                return cut, step, True
            refilled = np.where(means.seen, means.matrix, fit)
            doubt = means.doubt(refilled - filled, fit)
            last, filled = fit, refilled
            cut = means.cut(filled, doubt, self.rank)
        return cut, self.max_steps, False


@dataclass(frozen=True, eq=False)
class _Cut:
    """A matrix cut to low rank, and what was held to be noise."""

    left: Floats
    right: Floats
    values: Floats
    noise: float
    bound: float


@dataclass(frozen=True, eq=False)
class _Means:
    """The entries' mean answers above the centre, zero where unseen, and their noise."""

    matrix: Floats
    seen: npt.NDArray[np.bool_]
    noise: float  # the variance of an answer, nan if nothing was repeated
    variances: Floats  # of the means, where seen

    @classmethod
    def above(cls, entries: Entries, centre: Centre) -> _Means:
        place = entries.rows, entries.cols
        matrix, variances = np.zeros(entries.shape), np.zeros(entries.shape)
        seen = np.zeros(entries.shape, dtype=np.bool_)
        matrix[place] = entries.means - centre.at(*place)
        variances[place] = entries.noise_variance / entries.visits
        seen[place] = True
        return cls(matrix, seen, entries.noise_variance, variances)

    def cut(self, filled: Floats, doubt: float, rank: int | Literal["lepski"]) -> _Cut:
        """Cut the filled matrix at the given rank or at Lepski's."""
        u, values, vt = np.linalg.svd(filled, full_matrices=False)
        noise, variances = self.noise, self.variances
        if math.isnan(noise):
            noise = _spectral_variance(values, filled.shape)
            variances = np.full(filled.shape, noise)
        else:
            variances = np.where(self.seen, variances, doubt + np.mean(variances[self.seen]))
        rounding = float(values[0]) * max(filled.shape) * np.finfo(np.float64).eps
        bound = max(operator_bound(variances), rounding)
        size = lepski_rank(values, bound) if rank == "lepski" else min(rank, len(values))
        root = np.sqrt(values[:size])
        return _Cut(u[:, :size] * root, vt[:size].T * root, values, noise, bound)

    def doubt(self, moved: Floats, fit: Floats) -> float:
        """Give the mean squared error expected of the filling."""
        unseen = 1 - float(self.seen.mean())
        still = float(np.mean(moved[~self.seen] ** 2)) * unseen / (1 - unseen)
        return still + self.unexplained(fit)

    def unexplained(self, fit: Floats) -> float:
        """Give the mean square of what the fit misses at the seen cells, less the noise there."""
        misses = (self.matrix - fit)[self.seen] ** 2 - self.variances[self.seen]
        return max(0.0, float(np.nan_to_num(np.mean(misses))))


def lepski_rank(values: Floats, bound: float) -> int:
    """Give the smallest rank r with Σ_{r < i ≤ r'} s_i² ≤ (r' − r) · bound² for all r' > r.

    Singular values fall, so the comparison with r' = r + 1 is the hardest and decides.

    >>> lepski_rank(np.array([5.0, 3.0, 1.0, 0.5]), bound=1.5)
    2
    """
    return int(np.count_nonzero(values > bound))


def operator_bound(variances: Floats) -> float:
    """Bound the largest singular value of independent noise with these variances, as above.

    >>> round(operator_bound(np.full((100, 400), 0.25)), 2)  # the edge is (10 + 20) / 2
    17.58
    """
    short, long = sorted(variances.sum(axis=k).max() for k in (0, 1))
    ratio = short / long if long > 0 else 1.0
    cut = 2 * (ratio + 1) + 8 * ratio / (ratio + 1 + math.sqrt(ratio**2 + 14 * ratio + 1))
    return math.sqrt(cut * long)


def _spectral_variance(values: Floats, shape: tuple[int, int]) -> float:
    """Estimate the noise per cell from the median singular value, as if the signal were few.

    With a single singular value nothing can be told apart, and the answers are taken as they are.
    """
    if len(values) < 2:
        return 0.0
    median = values[len(values) // 2]
    return float(median**2 / (max(shape) * _median_of_noise(min(shape) / max(shape))))


def _median_of_noise(ratio: float) -> float:
    """Give the median of the Marchenko–Pastur law: squared singular values of pure noise."""
    low, high = (1 - math.sqrt(ratio)) ** 2, (1 + math.sqrt(ratio)) ** 2
    angle = np.linspace(0, np.pi, 4097)  # the substitution that tames both edges
    x = low + (high - low) * (1 - np.cos(angle)) / 2
    mass = np.cumsum(np.sin(angle) ** 2 / np.maximum(x, 1e-300))
    return float(np.interp(0.5 * mass[-1], mass, x))
