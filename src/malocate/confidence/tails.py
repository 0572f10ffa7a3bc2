"""Bounds on a mean by its moments or its range: plain formulas, each with what it assumes.

`moment_factor`, `hoeffding_upper` and `bernstein_upper` are proven for every sample size, given
their assumption; `hall_upper` and `student_reach` are right in the limit of many values.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from malocate.problem.arrays import Floats
from malocate.problem.settings import check_share


def moment_factor(count: int, kappa: float, delta: float) -> float:
    """Give C such that C times the mean of `count` values bounds their expectation from above.

    The values are independent and not negative, and the mean of their squares is at most `kappa`
    times the square of their mean. Too few values for that `kappa` give infinity.

    >>> from malocate.confidence.tails import moment_factor
    >>> round(moment_factor(800, 10.0, 0.05), 2)
    1.36
    >>> moment_factor(20, 10.0, 0.05)
    inf
    """
    from scipy.optimize import minimize_scalar

    check_share("delta", delta)
    if not count:
        return math.inf
    price = -math.log(delta) / count

    def inverse(share: float) -> float:
        rate = -math.log1p(-(share - share**2 / 2) / kappa)
        return (rate - price) * kappa / share

    # The gain is concave in the share, so its ratio to the share has a single top.
    best = minimize_scalar(lambda share: -inverse(share), bounds=(1e-9, 1.0), method="bounded")
    gain = max(inverse(float(best.x)), inverse(1.0))
    return 1 / gain if gain > 0 else math.inf


def hall_upper(values: npt.ArrayLike, delta: float) -> float:
    """Bound the mean from above by Student's t, corrected for skewness as Hall proposed.

    It is approximate: its chance of failure tends to δ as the values grow in number.

    >>> from malocate.confidence.tails import hall_upper
    >>> round(hall_upper([1.0, 2.0, 3.0, 4.0, 5.0], 0.05), 2)  # no skewness: Student's bound
    4.51
    >>> round(hall_upper([1.0, 1.0, 1.0, 1.0, 11.0], 0.05), 2)  # a long tail may hide more
    19.07
    """
    from scipy.special import stdtrit

    check_share("delta", delta)
    sample = _sorted(values)
    count = len(sample)
    if count < 3:
        return math.inf
    mean, deviation = float(sample.mean()), float(sample.std())
    if np.ptp(sample) == 0 or deviation == 0:
        return float(sample.max())
    skewness = float((((sample - mean) / deviation) ** 3).mean())
    quantile = float(stdtrit(count - 1, delta))
    error = deviation / math.sqrt(count - 1)  # `deviation` divides by n
    return mean - error * _unskewed(quantile, skewness / math.sqrt(count))


def hoeffding_upper(values: npt.ArrayLike, low: float, high: float, delta: float) -> float:
    """Bound the mean of values in [low, high] from above, whatever their spread.

    >>> from malocate.confidence.tails import hoeffding_upper
    >>> round(hoeffding_upper([0.5] * 100, 0.0, 1.0, 0.05), 3)
    0.622
    """
    check_share("delta", delta)
    sample = _sorted(values)
    if not len(sample):
        return float(high)
    reach = (high - low) * math.sqrt(-math.log(delta) / (2 * len(sample)))
    return min(float(high), float(sample.mean()) + reach)


def bernstein_upper(values: npt.ArrayLike, low: float, high: float, delta: float) -> float:
    """Bound the mean of independent values in [low, high] from above, by their sample variance.

    This is the empirical Bernstein bound of Maurer and Pontil.

    >>> from malocate.confidence.tails import bernstein_upper
    >>> round(bernstein_upper([0.5] * 100, 0.0, 1.0, 0.05), 3)
    0.587
    """
    check_share("delta", delta)
    sample = _sorted(values)
    count = len(sample)
    if count < 2:
        return float(high)
    price = math.log(2 / delta)
    spread = math.sqrt(2 * float(sample.var(ddof=1)) * price / count)
    reach = spread + 7 * price * (high - low) / (3 * (count - 1))
    return min(float(high), float(sample.mean()) + reach)


def product_range(low: float, high: float, prediction: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Give the least and the largest product of two misses, for answers in [low, high].

    >>> from malocate.confidence.tails import product_range
    >>> least, largest = product_range(1.0, 5.0, [3.0, 5.0])
    >>> least, largest
    (array([-4., -0.]), array([ 4., 16.]))
    """
    predicted = np.asarray(prediction, dtype=np.float64)
    below, above = predicted - low, high - predicted
    return -below * above, np.maximum(below, above) ** 2


def _sorted(values: npt.ArrayLike) -> Floats:
    """A sorted copy: whatever the order of the values, the same bits come out."""
    return np.sort(np.asarray(values, dtype=np.float64))


def _unskewed(quantile: float, skewness: float) -> float:
    """Invert Hall's transform; `skewness` comes divided by √n, and at zero nothing changes."""
    shifted = quantile - skewness / 6
    root = math.cbrt(1 + skewness * shifted)
    return 3 * shifted / (root**2 + root + 1)


def student_reach(values: Floats, delta: float = 0.05) -> Floats:
    """Give how far Student's interval reaches to either side of the mean of the last axis.

    It is right for normal values and, for others, in the limit of many; NaN for a single one.

    >>> round(float(student_reach(np.array([1.0, 2.0, 3.0]))), 3)
    2.484
    """
    from scipy.special import stdtrit

    count = values.shape[-1]
    if count < 2:
        return np.full(values.shape[:-1], math.nan)
    error = values.std(axis=-1, ddof=1) / math.sqrt(count)
    return np.asarray(float(stdtrit(count - 1, 1 - delta / 2)) * error)
