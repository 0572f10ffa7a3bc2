"""What the paper proves, as calculators: complexities, bounds and rates."""

from __future__ import annotations

import math


def complexity(shape: tuple[int, int], rank: int) -> float:
    """Give a matrix's complexity c = r·d1·d2·d·log d, d the longer side: r d³ log d when square.

    >>> round(complexity((200, 200), 10) / 1e6, 3)
    423.865
    """
    longest = max(shape)
    return rank * math.prod(shape) * longest * math.log(max(longest, 2))
