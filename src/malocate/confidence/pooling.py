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
    """Draw each segment's noise variance towards the common one (DerSimonian–Laird).

    `values` are the segments' mean sample variances over `counts` replicated entries, and
    `spreads` the variances of those sample variances. How much the segments really differ is
    estimated; the less, and the fewer its entries, the more a segment borrows. For deciding
    where to ask; a certified band uses its own segment's replicates alone.

    >>> pooled_noise([1.0, 1.4, 0.0], [100, 2, 0], [2.0, 1.5, 0.0]).values.round(2).tolist()
    [1.01, 1.01, 1.01]
    """
    means = np.asarray(values, dtype=np.float64)
    sizes = np.asarray(counts, dtype=np.float64)
    known = sizes > 0
    if not known.any():
        nothing = np.full(len(means), np.nan)
        return Pooled(nothing, nothing)
    within = float(np.asarray(spreads)[known] @ sizes[known] / sizes[known].sum())
    squares = np.where(known, within / np.maximum(sizes, 1), np.inf)
    between = _between(means[known], squares[known])
    common, error = _common(means[known], squares[known] + between)
    if between == 0.0:
        return Pooled(np.full(len(means), common), np.full(len(means), np.sqrt(error)))
    own = between / (between + squares)  # how much a segment keeps of its own; 0 if it knows none
    kept = np.where(known, own * (np.where(known, means, 0.0) - common), 0.0)
    left = np.where(known, own * np.where(known, squares, 0.0), between) + (1 - own) ** 2 * error
    return Pooled(common + kept, np.sqrt(left))


def _between(means: Floats, squares: Floats) -> float:
    """Estimate the variance of the segments' true values."""
    if len(means) < 2 or not squares.all():
        return float(means.var(ddof=1)) if len(means) > 1 else 0.0
    weights = 1 / squares
    common = weights @ means / weights.sum()
    excess = float(weights @ (means - common) ** 2) - (len(means) - 1)
    return max(0.0, excess / float(weights.sum() - weights @ weights / weights.sum()))


def _common(means: Floats, squares: Floats) -> tuple[float, float]:
    """Give the common value and its squared standard error."""
    if not squares.all():
        return float(means.mean()), 0.0
    weights = 1 / squares
    return float(weights @ means / weights.sum()), float(1 / weights.sum())
