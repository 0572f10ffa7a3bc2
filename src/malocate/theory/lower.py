"""Lower bounds: what no strategy can beat, and the matrices that show it.

The paper hides a random block of r·d numbers, repeats it q = ⌊d/r⌋ times, and shows that n answers
with Gaussian noise of deviation A do not tell such matrices apart. For every strategy there is
then a problem with E max_k ‖M̂_k − M_k‖²_F ≥ a·A²·Σ_k r_k d_k³/n. How large a may be:

`paper`, 1/2048
    as printed. It does not follow from the proof as written.
`corrected`, 1/36,933
    the paper's choices, with its steps put right. Entries are 0 or v = c·A·√(rd/τ), τ the expected
    number of answers. The code of Gilbert and Varshamov has M ≥ 2^(rd/8) blocks (if rd ≥ 8) that
    differ at rd/8 places at least, so matrices differ by v²·q·rd/8 ≥ c²A²rd³/(16τ). Gaussian
    answers have KL = τ‖M‖²_F/(2A²d²) ≤ c²rd/2: the paper leaves out the 2 and the d². As rd ≤
    (8/log 2)·log M (the paper turns this round), KL ≤ (4c²/log 2)·log M, which is log M/8 for
    c² = (log 2)/32, not for c = 1/2. Theorem 2.5 of Tsybakov speaks of distances, so the
    *norm* is halved and its square quartered (the paper halves the square): the error is at least
    c²A²rd³/(64τ) with a chance of 0.08, and 0.08·(log 2)/(32·64) = 1/36,933.
`optimised`, about 1/3,200
    the same with the share α of log M that is best for each r·d instead of 1/8: the largest
    (log 2/256)·α·(1 − 2α − √(2α/log M))·√M/(1 + √M). 1/3,287 for r = 10 and d = 200, 1/3,117
    for r = 40, never above 1/2,955.
`two_point`, 4/27
    not the paper's: every number of the block is 0 or v, each by a fair coin. Given the answers, a
    number's mean squared error is at least (v²/4)(1 − TV), and TV² ≤ KL/2 where KL averages
    E[answers on its copies]·v²/(2A²) = τ·q·v²/(2A²d²) over both values. With y the bound on TV,
    the q·rd copies have error A²rd³/τ·y²(1 − y), most at y = 2/3. Entries stay within
    `hard_level`, which tends to 0.
`gaussian`, 1
    not the paper's either: the numbers of the block are normal with variance V. After N answers
    about it, a number's mean squared error is 1/(1/V + N/A²) whatever the strategy, and by
    Jensen's inequality at least 1/(1/V + qτ/(A²d²)) on average. The q·rd copies have error
    A²rd³/τ as V grows. Least squares that knows the block's place attains it, so a cannot be
    larger with such matrices. As every segment's error is bounded for every allocation at once,
    it holds for each p: the loss L^p is at least A²·‖(r_k d_k³)_k‖_{p/(p+1)}/n.

In each case Σ τ_k ≤ n, so some segment has no more than its share. Not square: r·d³ becomes
r·d·d1·d2 with d the longer side, along which the block lies.
"""

from __future__ import annotations

import math
from typing import Literal, get_args

from malocate.errors import InvalidInput
from malocate.problem.settings import check_positive
from malocate.theory.rates import Shape, degrees

Constant = Literal["paper", "corrected", "optimised", "two_point", "gaussian"]
_FIXED = {
    "paper": 1 / 2048,
    "corrected": 0.08 * math.log(2) / (32 * 64),
    "two_point": 4 / 27,
    "gaussian": 1.0,
}
_PACKED = 8  # numbers that the code of Gilbert and Varshamov needs


def lower_constant(constant: Constant, shape: Shape, rank: int) -> float:
    """Give the constant a of the lower bound; only `optimised` depends on shape and rank.

    >>> [round(1 / lower_constant(name, (200, 200), 10)) for name in ("corrected", "optimised")]
    [36933, 3287]
    """
    check_constant(constant)
    if constant == "optimised":
        return _optimised(degrees(shape, rank))[1]
    return _FIXED[constant]


def check_constant(constant: object) -> None:
    """Refuse what is not the name of a constant."""
    if constant not in get_args(Constant):
        listed = ", ".join(repr(each) for each in get_args(Constant))
        raise InvalidInput(f"constant is {constant!r}; it must be one of {listed}.")


def packs(constant: Constant, shape: Shape, rank: int) -> bool:
    """Tell whether the matrix hides enough numbers for the proof behind a constant."""
    return constant in ("two_point", "gaussian") or degrees(shape, rank) >= _PACKED


def lower_rate(
    shape: Shape,
    rank: int,
    answers: float,
    *,
    noise: float = 1.0,
    constant: Constant = "corrected",
) -> float:
    """Give a·A²·r·d/n: an error per entry that no strategy beats on every matrix of this rank.

    `noise` is the standard deviation A of Gaussian noise.

    >>> round(lower_rate((200, 200), 10, 20_000, noise=0.1, constant="gaussian"), 6)
    0.001
    """
    check_positive("answers", answers)
    return lower_constant(constant, shape, rank) * noise**2 * degrees(shape, rank) / answers


def hard_level(
    shape: Shape,
    rank: int,
    answers: float,
    *,
    noise: float = 1.0,
    constant: Constant = "two_point",
) -> float:
    """Give the level at which `Synthetic.hard` is hardest for this many answers.

    >>> round(hard_level((200, 200), 10, 20_000), 3)
    0.422
    """
    check_constant(constant)
    check_positive("answers", answers)
    bits = degrees(shape, rank)
    if constant == "gaussian":
        raise InvalidInput("The Gaussian lower bound has no level; take constant='two_point'.")
    if constant == "two_point":
        copies = min(shape) // rank
        return noise * math.sqrt(16 * math.prod(shape) / (9 * copies * answers))
    share = _optimised(bits)[0] if constant == "optimised" else 1 / 8
    squared = 1 / 4 if constant == "paper" else share * math.log(2) / 4
    return noise * math.sqrt(squared * bits / answers)


def _optimised(bits: int) -> tuple[float, float]:
    """Give the best share α of log M, and the constant that it makes.

    With b = √(2/log M), α(1 − 2α − b√α) is largest where 8α + 3b√α = 2.
    """
    b = math.sqrt(2 / (bits * math.log(2) / 8))
    share = ((math.sqrt(9 * b * b + 64) - 3 * b) / 16) ** 2
    chance = (1 - 2 * share - b * math.sqrt(share)) / (1 + 2 ** (-bits / 16))
    return share, math.log(2) / 256 * share * chance
