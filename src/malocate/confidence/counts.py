"""How likely counts are by chance: p-values that hold where most counts are 0 or 1 as well."""

from __future__ import annotations

import math

import numpy as np

from malocate.problem.arrays import Floats, Int32s, Int64s

_FEWEST = 10  # draws below which nothing is compared
_SMALL_SHARE = 1 / 3  # of the average: categories with less are pooled with others of their size
_MOST_GROUPS = 1000  # of categories, where two classifications of draws are compared
_CANDIDATES = 32  # counts on either side whose tail is looked up


def pearson(counts: Int64s, shares: Floats) -> tuple[float, float]:
    """Give the chance of counts at least as uneven as these, and of such at least as even.

    `shares` are the categories' probabilities, all above 0; small ones are pooled. The second
    chance is nan (not judged) where there are fewer draws than categories.

    >>> uneven, even = pearson(np.array([30, 5, 10, 15]), np.full(4, 0.25))
    >>> round(uneven, 4), round(even, 2)
    (0.0, 1.0)
    """
    seen, shares = _alike_shares(counts, shares)
    count = float(seen.sum())
    expected = count * shares
    squares = float(np.sum((seen - expected) ** 2 / expected))
    inverse = float(np.sum(1 / shares)), float(np.sum(1 / shares**2))
    uneven, even = pearson_tails(squares, count, shares.size, *inverse)
    return uneven, even if count >= shares.size else math.nan


def pearson_tails(
    squares: float, count: float, size: int, inverse: float, inverse_squares: float
) -> tuple[float, float]:
    """Give the upper and the lower tail of Pearson's statistic under the multinomial law.

    A shifted gamma law with the statistic's exact mean, variance and third moment, read half a
    step (one more pair of draws that meet) to either side. The exact moments make it hold where
    most counts are 0 or 1, and the third is what the chi-squared law lacks there.
    `inverse` and `inverse_squares` are Σ 1/share and Σ 1/share².
    """
    from scipy import special

    k, n = float(size), float(count)
    variance = 2 * (k - 1) + (inverse - k**2 - 2 * k + 2) / n
    third = 8 * (k - 1) + (22 * inverse - 18 * k**2 - 36 * k + 32) / n
    third += (inverse_squares - 3 * k * inverse + 2 * k**3) / n**2
    third += (18 * k**2 - 22 * inverse + 28 * k - 24) / n**2
    if not variance > 1e-9 * k:
        return math.nan, math.nan
    skewness = max(third / variance**1.5, 1e-3)
    shape, unit = 4 / skewness**2, math.sqrt(variance) * skewness / 2
    start = k - 1 - shape * unit
    upper = special.gammaincc(shape, max(0.0, (squares - k / n - start) / unit))
    lower = special.gammainc(shape, max(0.0, (squares + k / n - start) / unit))
    return float(upper), float(lower)


def association(along: Int32s, parts: Int64s) -> float:
    """Give the chance that lines and parts are as far from unrelated as here, given their totals.

    Pearson's statistic of the table, read off the gamma law with its exact mean and variance over
    all orders of the draws; lines are pooled until about one draw is expected in each part.
    It is nan (not judged) where there are too few draws for two groups of lines.

    >>> round(association(np.repeat([0, 1], 20), np.tile([0, 1], 20)), 2)
    1.0
    """
    from scipy import special

    count, sizes = along.size, np.bincount(parts).astype(float)
    if count < _FEWEST or sizes.min() < 1:
        return math.nan
    cells = np.bincount(along * np.int64(sizes.size) + parts)
    cells = np.concatenate([cells, np.zeros(-cells.size % sizes.size, dtype=np.int64)])
    table = _pooled_lines(cells.reshape(-1, sizes.size), max(1 / sizes.min(), 1 / _MOST_GROUPS))
    totals = table.sum(axis=1)
    if totals.size < 2:
        return math.nan
    expected = np.outer(totals, sizes) / count
    mean, variance = _table_moments(totals, sizes)
    statistic = float(np.sum((table - expected) ** 2 / expected))
    return float(special.gammaincc(mean**2 / variance, statistic * mean / variance))


def _pooled_lines(table: Int64s, share: float) -> Floats:
    """Drop the empty lines of a table and add up neighbours to that share of its total."""
    lines = table[table.any(axis=1)].astype(float)
    group = pooled(lines.sum(axis=1), share * float(table.sum()))
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    return np.add.reduceat(lines, starts)


def _table_moments(totals: Floats, sizes: Floats) -> tuple[float, float]:
    """Give the mean and variance of Pearson's statistic over all tables with these margins."""
    count = float(totals.sum())
    level, slack = [], []
    for margin in (totals, sizes):
        excess = (count * np.sum(1 / margin) - margin.size**2) / (count - 2)
        slack.append(excess)
        level.append((count - margin.size) * (margin.size - 1) / (count - 1) - excess)
    mean = count / (count - 1) * (totals.size - 1) * (sizes.size - 1)
    variance = 2 * count / (count - 3) * level[0] * level[1]
    return mean, float(variance + count**2 / (count - 1) * slack[0] * slack[1])


def farthest_off(counts: Int64s, trials: Int64s | int, shares: Floats) -> tuple[float, int]:
    """Give the chance that any count is as far out as the farthest one, and its place."""
    from scipy import special

    trials = np.broadcast_to(np.asarray(trials, dtype=float), counts.shape)
    off = (counts - trials * shares) / np.sqrt(trials * shares * (1 - shares) + 1e-300)
    ends = min(_CANDIDATES, off.size) - 1
    order = np.argpartition(off, [ends, off.size - 1 - ends])
    near = np.unique(np.concatenate([order[: ends + 1], order[off.size - 1 - ends :]]))
    hits, of, share = counts[near], trials[near], shares[near]
    above = special.betainc(np.maximum(hits, 1), of - np.maximum(hits, 1) + 1, share)
    below = special.betainc(np.maximum(of - hits, 1), hits + 1, 1 - share)
    tails = np.minimum(np.where(hits > 0, above, 1.0), np.where(hits < of, below, 1.0))
    place = int(np.argmin(tails))
    return min(1.0, 2 * off.size * float(tails[place])), int(near[place])


def _alike_shares(counts: Int64s, shares: Floats) -> tuple[Floats, Floats]:
    """Pool lines with a small share of the cells with others of their size."""
    order = np.argsort(shares, kind="stable")
    group = pooled(shares[order], _SMALL_SHARE / shares.size)
    seen, share = (np.bincount(group, each[order]) for each in (counts, shares))
    return seen.astype(float), share.astype(float)


def pooled(sizes: Floats, least: float) -> Int64s:
    """Number the groups of neighbours that together are about `least`; larger ones stay alone."""
    middles = np.cumsum(sizes) - sizes / 2
    bins = np.floor(middles / least).astype(np.int64)
    return np.concatenate([[0], np.cumsum(np.diff(bins) > 0)])


def smallest(*p_values: float) -> float:
    """Give the smallest of several p-values as one, by Bonferroni; nan ones were not judged."""
    judged = [each for each in p_values if not math.isnan(each)]
    return min(1.0, len(judged) * min(judged)) if judged else math.nan
