"""Least squares projected on low rank: the estimator for many more answers than cells.

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
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from malocate.errors import InvalidInput, InvalidType
from malocate.estimators.base import (
    Completion,
    Status,
    check_start,
    empty_completion,
    refuse_dense,
)
from malocate.estimators.centring import CentreKind, check_kind, fit_centre
from malocate.estimators.threads import pinned
from malocate.problem import Entries, Observations

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ProjectedLeastSquares:
    """The mean answer of every cell, cut to low rank: for many more answers than cells.

    `rank` is a number, or "lepski": the smallest rank beyond which there is nothing that noise
    could not have made. The noise level comes from repeated answers; where nothing was repeated
    it is read off the smaller half of the singular values. A cell without answers is filled with
    the centre before the cut, which biases it towards the centre: `status` says so. Where
    much is unseen, use `LowRankLeastSquares`. Answers on a declared scale give a completion
    clipped to it. The fit is in closed form, so `start` saves nothing.

    `memory` holds the noise variance, the level below which singular values count as noise, and
    all singular values.

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

    def __post_init__(self) -> None:
        check_kind(self.centre)
        if self.rank == "lepski":
            return
        if isinstance(self.rank, bool) or not isinstance(self.rank, int | np.integer):
            raise InvalidType(f"rank is {self.rank!r}; it must be a whole number or 'lepski'.")
        if self.rank < 0:
            raise InvalidInput(f"rank is {self.rank}; it must be at least 0, or 'lepski'.")

    def fit(self, observations: Observations, *, start: Completion | None = None) -> Completion:
        """Average the answers cell by cell and cut the matrix of means to low rank."""
        check_start(observations, start)
        refuse_dense(observations.shape, "use LowRankLeastSquares, which never makes it")
        entries = observations.entries
        if len(entries) == 0:
            return empty_completion(observations)
        centre = fit_centre(entries, self.centre)
        means = np.zeros(observations.shape)
        means[entries.rows, entries.cols] = entries.means - centre.at(entries.rows, entries.cols)
        with pinned():
            u, values, vt = np.linalg.svd(means, full_matrices=False)
        noise, bound = _noise(entries, means, values)
        rank = lepski_rank(values, bound) if self.rank == "lepski" else min(self.rank, len(values))
        root = np.sqrt(values[:rank])
        all_seen = len(entries) >= observations.n_askable
        return Completion(
            u[:, :rank] * root,
            vt[:rank].T * root,
            centre,
            Status.CLOSED_FORM if all_seen else Status.UNSEEN_CELLS,
            clip=observations.scale,
            labels=observations.labels,
            memory={"noise_variance": noise, "noise_bound": bound, "singular_values": values},
        )


def lepski_rank(values: Floats, bound: float) -> int:
    """Give the smallest rank r with Σ_{r < i ≤ r'} s_i² ≤ (r' − r) · bound² for all r' > r.

    Singular values fall, so the comparison with r' = r + 1 is the hardest and decides.

    >>> lepski_rank(np.array([5.0, 3.0, 1.0, 0.5]), bound=1.5)
    2
    """
    return int(np.count_nonzero(values > bound))


def _noise(entries: Entries, means: Floats, values: Floats) -> tuple[float, float]:
    """Give the noise variance of an answer and the bound on the singular values it makes."""
    noise = entries.noise_variance
    if math.isnan(noise):
        noise = _spectral_variance(values, means.shape)
        variances = np.full(means.shape, noise)
    else:
        variances = _cell_variances(entries, means, noise)
    rounding = float(values[0]) * max(means.shape) * np.finfo(np.float64).eps
    return noise, max(operator_bound(variances), rounding)


def _cell_variances(entries: Entries, means: Floats, noise: float) -> Floats:
    """Give each cell's mean squared error: the noise left in its mean, or, unseen, the signal."""
    seen = noise / entries.visits
    signal = max(0.0, float(np.mean(means[entries.rows, entries.cols] ** 2 - seen)))
    variances = np.full(means.shape, signal)
    variances[entries.rows, entries.cols] = seen
    return variances


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
