"""Bounds on a mean by betting: how far the values can be from a mean that is still credible.

Bet on every value against a claimed mean r, in a game that is fair when r is right. A wealth of 1/δ
then happens with chance δ at most (it is an *e-value*: its mean is at most one), so the claims
against which the values won that much are refused, and the bound is where refusal begins.

`upper_mean` and `lower_mean` mix bets that were fixed before any value was seen; they hold for
independent values and for values drawn without replacement, in any order. `running_upper` and
`running_lower` learn their bets from the values before, which only independent values in the
order of the draws allow; in return they hold at every moment of the stream at once.
`upper_mean_of_parts` has fixed bets and a stream in a few parts: each part's limit, and what its
values are made from, may depend on the parts before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from malocate.problem.arrays import Floats
from malocate.problem.settings import check_share

BOLDEST = 0.95  # the share of the wealth that the boldest fixed bet can lose on one value
BOLDEST_LEARNT = 0.75
RATIO = 1.6  # between neighbouring bets
FARTHEST = 300.0  # a lower bound under e^-300 of the mean counts as none
FAST = {"reassoc", "contract", "nsz", "arcp"}


def bets(count: int, delta: float) -> Floats:
    """Give the bets on `count` values: fixed shares of the wealth, from timid to bold.

    >>> from malocate.confidence.betting import bets
    >>> bets(100, 0.05).round(3)
    array([0.122, 0.204, 0.341, 0.569, 0.95 ])
    """
    check_share("delta", delta)
    timid = min(0.5, 0.5 * math.sqrt(-2 * math.log(delta) / max(count, 1)))
    steps = round(math.log(BOLDEST / timid) / math.log(RATIO))
    return BOLDEST * (timid / BOLDEST) ** (np.arange(steps, -1.0, -1.0) / steps)


def upper_mean(values: npt.ArrayLike, high: float, delta: float) -> float:
    """Bound the mean of values in [0, high] from above, at most `high`; it fails with chance δ.

    >>> from malocate.confidence.betting import upper_mean
    >>> round(upper_mean([0.0] * 100, 1.0, 0.05), 3)
    0.047
    """
    grid, ratios = bets(np.size(values), delta), _sorted(values)
    if not len(ratios) or high == 0:
        return float(high)
    ratios /= high
    centre = float(ratios.mean())
    target = _target(len(ratios), delta)

    def surplus(distance: float) -> float:
        return float(_log_wealth(ratios, 1 + grid * (centre + distance), -grid)) - target

    distance = _crossing(surplus, _first_step(ratios, delta), 1 - centre)
    return min(float(high), high * (centre + distance))


def lower_mean(values: npt.ArrayLike, delta: float) -> float:
    """Bound the mean of values ≥ 0 without any upper limit from below; it fails with chance δ.

    >>> from malocate.confidence.betting import lower_mean
    >>> round(lower_mean([1.0] * 100, 0.05), 3)
    0.955
    """
    grid, ratios = bets(np.size(values), delta), _sorted(values)
    centre = float(ratios.mean()) if len(ratios) else 0.0
    if centre == 0:
        return 0.0
    ratios /= centre
    target = _target(len(ratios), delta)

    def surplus(distance: float) -> float:
        return float(_log_wealth(ratios, 1 - grid, grid * math.exp(distance))) - target

    distance = _crossing(surplus, _first_step(ratios, delta), FARTHEST)
    return centre * math.exp(-distance)


def upper_mean_of_parts(parts: Sequence[tuple[npt.ArrayLike, float]], delta: float) -> float:
    """Bound the common mean of several parts from above; a part is (values, their upper limit).

    Given the parts before, the values of a part are independent, of that mean and below its
    limit. The bound is the least limit at most, and fails with chance δ.

    >>> from malocate.confidence.betting import upper_mean_of_parts
    >>> round(upper_mean_of_parts([([0.0] * 60, 1.0), ([0.0] * 40, 2.0)], 0.05), 3)
    0.056
    """
    sizes = [np.size(values) for values, _ in parts]
    grid, top = bets(sum(sizes), delta), min((float(high) for _, high in parts), default=math.inf)
    if not sum(sizes):
        return top
    below = [(high, _sorted(high - np.asarray(values, np.float64))) for values, high in parts]
    target = _target(sum(sizes), delta)

    def refused(mean: float) -> bool:
        return float(_log_mean(_logs_of_parts(below, grid, mean))) >= target

    outer = top - min(float(np.min(high - each)) for high, each in below if len(each))
    outer = max(outer, 1e-9 * abs(top)) or 1.0
    while refused(top - outer):
        outer *= 2
    inner, near = 0.0, 1e-12 * max(outer, abs(top))  # the limit itself is a bound whatever comes
    while outer - inner > near:
        middle = inner + (outer - inner) / 2
        inner, outer = (middle, outer) if refused(top - middle) else (inner, middle)
    return top - inner


def wealth_of_parts(
    parts: Sequence[tuple[npt.ArrayLike, float]], mean: float, delta: float
) -> float:
    """Give the wealth won from parts, as in `upper_mean_of_parts`, against the claim of a mean.

    Its own mean is at most one when the claim is right, or too low.

    >>> from malocate.confidence.betting import wealth_of_parts
    >>> wealth_of_parts([([0.0] * 60, 1.0), ([0.0] * 40, 2.0)], 0.1, 0.05) > 20
    True
    """
    grid = bets(sum(np.size(values) for values, _ in parts), delta)
    below = [(high, _sorted(high - np.asarray(values, np.float64))) for values, high in parts]
    return _exp(float(_log_mean(_logs_of_parts(below, grid, mean))))


def upper_wealth(values: npt.ArrayLike, high: float, mean: float, delta: float) -> float:
    """Give the wealth won from values in [0, high] against the claim that their mean is `mean`.

    Its own mean is at most one when the claim is right, or too low.

    >>> from malocate.confidence.betting import upper_wealth
    >>> upper_wealth([0.0] * 100, 1.0, 0.05, 0.05) > 20  # so much for a mean of 0.05
    True
    """
    grid, ratios = bets(np.size(values), delta), _sorted(values)
    if not len(ratios) or high == 0:
        return 1.0
    return _exp(_log_wealth(ratios / high, 1 + grid * (mean / high), -grid))


def lower_wealth(values: npt.ArrayLike, mean: float, delta: float) -> float:
    """Give the wealth won from values ≥ 0 against the claim that their mean is `mean`.

    Its own mean is at most one when the claim is right, or too high.

    >>> from malocate.confidence.betting import lower_wealth
    >>> lower_wealth([1.0] * 100, 0.9, 0.05) > 20  # so much for a mean of 0.9
    True
    """
    grid, ratios = bets(np.size(values), delta), _sorted(values)
    if mean == 0:
        return math.inf if ratios.any() else 1.0
    return _exp(_log_wealth(ratios / mean, 1 - grid, grid))


def running_upper(values: npt.ArrayLike, high: float, delta: float) -> float:
    """Bound the mean of a stream in [0, high] from above, at every moment at once.

    The values are independent, in the order of their draws. More of them never raise the bound,
    so that a look at any time, and stopping at any time, is free.

    >>> from malocate.confidence.betting import running_upper
    >>> round(running_upper([0.0] * 100, 1.0, 0.05), 3)
    0.039
    """
    stream = np.asarray(values, dtype=np.float64)
    return high - running_lower(high - stream, high, delta)


def running_lower(values: npt.ArrayLike, high: float, delta: float) -> float:
    """Bound the mean of a stream in [0, high] from below, at every moment at once.

    The bets go by the ratio of deviation to mean, so that `high` may be far above the values
    at no loss.

    >>> from malocate.confidence.betting import running_lower
    >>> round(running_lower([1.0] * 100, 5.0, 0.05), 3)
    0.961
    """
    check_share("delta", delta)
    ratios = np.array(values, dtype=np.float64)
    if not ratios.any():
        return 0.0
    ratios /= high
    shares = _learnt_bets(ratios, -math.log(delta))
    target = _target(len(ratios), delta)

    def surplus(distance: float) -> float:
        return float(_log_peak(ratios, shares, math.exp(-distance))) - target

    distance = _crossing(surplus, -math.log(delta) / len(ratios), FARTHEST)
    return high * math.exp(-distance)


def _sorted(values: npt.ArrayLike) -> Floats:
    """A sorted copy: whatever the order of the values, the same bits come out."""
    return np.sort(np.asarray(values, dtype=np.float64))


def _target(count: int, delta: float) -> float:
    """The logarithm of 1/δ, and of all that rounding can add to a product of `count` factors."""
    return -math.log(delta) + 4 * (count + 10) * float(np.finfo(np.float64).eps)


def _first_step(ratios: Floats, delta: float) -> float:
    """About how far the bound will be from the mean: where to look for it first."""
    price = -math.log(delta) / len(ratios)
    return price + float(ratios.std()) * math.sqrt(2 * price)


def _crossing(surplus: Callable[[float], float], step: float, end: float) -> float:
    """The smallest distance in (0, end] where a rising surplus is not negative; ∞ if none."""
    from scipy.optimize import brentq

    inner, outer = 0.0, min(step, end)
    while surplus(outer) < 0:
        if outer >= end:
            return math.inf
        inner, outer = outer, min(2 * outer, end)
    distance, nudge = float(brentq(surplus, inner, outer, xtol=1e-11 * outer)), 1e-11
    while surplus(distance) < 0:  # brentq ends on either side; only the far one is safe
        distance, nudge = min(outer, distance * (1 + nudge)), 2 * nudge
    return distance


def _logs_of_parts(below: Sequence[tuple[float, Floats]], grid: Floats, mean: float) -> Floats:
    """The logarithm of each bet's wealth, from how far values are below the limits."""
    logs = np.zeros(len(grid))
    for high, distances in below:
        if len(distances):
            logs += _log_products(distances, 1 - grid, grid / (high - mean))
    return logs


def _exp(logarithm: float) -> float:
    return math.exp(logarithm) if logarithm < 709 else math.inf


@njit(cache=True, nogil=True, fastmath=FAST, forceinline=True)
def _log_products(values: Any, constants: Any, slopes: Any) -> Any:
    """The logarithms of Π_i (constants_l + slopes_l·values_i), for ascending values.

    As many factors are multiplied as surely stay within e^±600 before a logarithm is taken:
    the largest and the smallest factor belong to the first and the last value.
    """
    logs = np.zeros(len(constants))
    for bet in range(len(constants) if len(values) else 0):
        constant, slope = constants[bet], slopes[bet]
        first = abs(math.log(constant + slope * values[0]))
        last = abs(math.log(constant + slope * values[-1]))
        many = max(1, int(600.0 / max(first, last, 0.3)))
        for start in range(0, len(values), many):
            product = 1.0
            for i in range(start, min(start + many, len(values))):
                product *= constant + slope * values[i]
            logs[bet] += math.log(product)
    return logs


@njit(cache=True, nogil=True)
def _log_mean(logs: Any) -> Any:
    """The logarithm of the mean of numbers, from their logarithms."""
    most = logs[0]
    for log in logs:
        most = max(most, log)
    total = 0.0
    for log in logs:
        total += math.exp(log - most)
    return most + math.log(total / len(logs))


@njit(cache=True, nogil=True)
def _log_wealth(values: Any, constants: Any, slopes: Any) -> Any:
    """The logarithm of the mean over bets of their products."""
    return _log_mean(_log_products(values, constants, slopes))


@njit(cache=True, nogil=True)
def _learnt_bets(values: Any, demand: float) -> Any:
    """The bet on each value, from the values before it alone; none until one is above zero.

    With the squared ratio V of deviation to mean among the values before, value i gets
    √(2 log(1/δ) / (V i log(1 + i))): what would be best if the stream ended about there.
    """
    shares = np.zeros(len(values))
    mean, squares = 0.0, 0.0
    for i in range(len(values)):
        if mean > 0.0:
            variation = (1.0 + squares / mean / mean) / (i + 1)
            best = math.sqrt(2.0 * demand / (variation * (i + 1) * math.log(2.0 + i)))
            shares[i] = min(BOLDEST_LEARNT, best)
        change = values[i] - mean
        mean += change / (i + 1)
        squares += change * (values[i] - mean)
    return shares


@njit(cache=True, nogil=True)
def _log_peak(values: Any, shares: Any, mean: float) -> Any:
    """The logarithm of the largest of the products Π_{i≤t} (1 − share_i + share_i·value_i/mean)."""
    peak, settled = 0.0, 0.0
    product, highest = 1.0, 1.0
    for i in range(len(values)):
        product *= 1.0 - shares[i] + shares[i] * (values[i] / mean)
        highest = max(highest, product)
        if not 1e-100 < product < 1e100:
            peak = max(peak, settled + math.log(highest))
            settled += math.log(product)
            product, highest = 1.0, 1.0
    return max(peak, settled + math.log(highest))
