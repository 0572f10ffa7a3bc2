"""One matrix: how hard it is, how fast its error falls, how much the paper asks at first.

Shapes need not be square: the paper's d² becomes d1·d2, its other d the longer side. Errors are
mean squared per entry.
"""

from __future__ import annotations

import math

from malocate.errors import InvalidInput
from malocate.problem.checks import shape_of
from malocate.problem.settings import check_count, check_positive, check_share

Shape = tuple[int, int]


def complexity(shape: Shape, rank: int, *, delta: float | None = None) -> float:
    """Give a matrix's complexity c = r·d1·d2·d·log d, d the longer side: r d³ log d when square.

    With `delta` the logarithm is log(1/δ), as in the paper's (ε, δ) setting.

    >>> round(complexity((200, 200), 10) / 1e6, 3)
    423.865
    """
    return degrees(shape, rank) * math.prod(shape) * logarithm(shape, delta)


def degrees(shape: Shape, rank: int) -> int:
    """Give r·d, d the longer side: the numbers that the lower bound's matrices hide."""
    check_count("rank", rank)
    if rank > min(shape_of(shape)):
        raise InvalidInput(f"rank is {rank}; for shape {shape} it can be {min(shape)} at most.")
    return rank * max(shape)


def logarithm(shape: Shape, delta: float | None = None) -> float:
    """Give log d, or log(1/δ) where a chance of error is given; log 2 for a single cell."""
    if delta is None:
        return math.log(max(2, *shape))
    check_share("delta", delta)
    return -math.log(delta)


def first_batch(shape: Shape) -> int:
    """Give how many answers Algorithm 1 asks for at first: 4⌈(d log d + 1)/2⌉.

    Half of it is the paper's T^I, the smallest even number that is at least d log d + 1. A
    second pick asks as many again, so two picks cost 4 T^I.

    >>> first_batch((200, 200))
    2124
    """
    longest = max(shape_of(shape))
    return 4 * math.ceil((longest * logarithm(shape) + 1) / 2)


def upper_rate(
    shape: Shape, rank: int, answers: float, *, amplitude: float = 1.0, C: float = 1.0
) -> float:
    """Give the bound C·A²·r·d·log d/n on the square-root lasso's error.

    C is a numerical constant that nobody has computed; answers lie within ± `amplitude`.

    >>> round(upper_rate((200, 200), 10, 20_000), 3)
    0.53
    """
    check_positive("answers", answers)
    check_positive("amplitude", amplitude)
    check_positive("C", C)
    return C * amplitude**2 * degrees(shape, rank) * logarithm(shape) / answers


def information_limit(shape: Shape, rank: int, answers: float, *, noise: float = 1.0) -> float:
    """Give σ²·r·(d1 + d2 − r)/n: noise variance times parameters, by the number of answers.

    Least squares cannot do better on average if it knows nothing but the rank. It is a limit for
    many answers, not a bound for few.

    >>> round(information_limit((200, 200), 10, 20_000, noise=0.1), 6)
    0.00195
    """
    check_positive("answers", answers)
    degrees(shape, rank)
    return noise**2 * parameters(shape, rank) / answers


def parameters(shape: Shape, rank: int) -> int:
    """Give the number of parameters of a matrix of this rank."""
    return rank * (sum(shape) - rank)
