"""Noise levels of several segments, each drawn towards all as far as they are alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from malocate.problem.arrays import Floats


@dataclass(frozen=True, eq=False)
class Pooled:
    """Noise variances after pooling, and their standard errors; nan where nobody knows any."""

    values: Floats
    errors: Floats


def pooled_noise(values: npt.ArrayLike, counts: npt.ArrayLike, spreads: npt.ArrayLike) -> Pooled:
    """Draw each segment's noise variance towards the common one (DerSimonian–Laird, on logs).

    `values` are the segments' mean sample variances over `counts` replicated entries, and
    `spreads` the variances of those sample variances. How widely sample variances scatter
    relative to their mean is taken to be alike everywhere, whatever the units; how much the
    segments' levels really differ is estimated. The less they do, and the fewer its entries, the
    more a segment borrows. For deciding where to ask; a certified band uses its own segment's
    replicates alone.

    >>> pooled_noise([1.0, 1.4, 0.0], [100, 2, 0], [2.0, 1.5, 0.0]).values.round(2).tolist()
    [1.01, 1.01, 1.01]
    >>> pooled_noise([1.0, 1e-4], [200, 200], [2.0, 2e-8]).values.round(4).tolist()
    [0.9989, 0.0001]
    """
    means, sizes, widths = (np.asarray(each, float) for each in (values, counts, spreads))
    relative = _relative_spread(means, sizes, widths)
    level = (sizes > 0) & (means > 0)
    if np.isnan(relative) or not level.any():
        nothing = np.full(len(means), np.nan)
        return Pooled(nothing, nothing)
    squares = np.full(len(means), np.inf)
    squares[level] = relative / sizes[level]
    logs = np.zeros(len(means))
    logs[level] = np.log(means[level]) + squares[level] / 2  # the logarithm of a mean is low
    between = _between(logs[level], squares[level])
    common, error = _common(logs[level], squares[level] + between)
    if between == 0.0:  # all levels are alike: the mean over all replicated entries
        common = float(np.log(sizes[level] @ means[level] / sizes[level].sum()))
    own = between / (between + squares)  # how much a segment keeps of its own; 0 if it knows none
    lifted = np.where(level, own * np.where(level, squares, 0.0) / 2, 0.0)
    pooled = np.exp(common + own * (logs - common) - lifted)  # a mean itself is not low
    left = np.where(level, own * np.where(level, squares, 0.0), between) + (1 - own) ** 2 * error
    silent = (sizes > 0) & (means == 0)  # who repeats without any scatter has no noise
    pooled[silent] = 0.0
    return Pooled(pooled, pooled * np.sqrt(left))


def _relative_spread(means: Floats, sizes: Floats, spreads: Floats) -> float:
    """Give the variance of a sample variance over its squared mean; 2 for a normal pair."""
    told = (sizes >= 2) & (means > 0)
    if not told.any():
        return float("nan")
    weights = sizes[told] - 1
    found = float(weights @ (spreads[told] / means[told] ** 2) / weights.sum())
    return found if found > 0 else float("nan")


def _between(logs: Floats, squares: Floats) -> float:
    """Estimate the variance of the segments' true levels, on the log scale."""
    if len(logs) < 2:
        return 0.0
    weights = 1 / squares
    common = weights @ logs / weights.sum()
    excess = float(weights @ (logs - common) ** 2) - (len(logs) - 1)
    return max(0.0, excess / float(weights.sum() - weights @ weights / weights.sum()))


def _common(logs: Floats, squares: Floats) -> tuple[float, float]:
    """Give the common level and its squared standard error, on the log scale."""
    weights = 1 / squares
    return float(weights @ logs / weights.sum()), float(1 / weights.sum())
