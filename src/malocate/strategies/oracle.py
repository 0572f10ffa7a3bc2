"""The oracle: MALocate with the true errors, for simulations that know them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from malocate.errors import InvalidInput
from malocate.strategies.base import Allocation, Standing
from malocate.strategies.choosing import check_parallel, checked_power, choose, clipped, urgency
from malocate.strategies.reasons import error_in_words


@dataclass(frozen=True)
class Oracle:
    """Asks as `MALocate` would if it knew each completion's true error.

    At p = ∞ this is the paper's oracle, the segment of the largest squared Frobenius error.
    `p` is that of the loss; None is the design's own, and ∞ where there is no design. So many
    `parallel_segments` are asked in one round.

    >>> north = Standing("north", 100, answers=50, batch=10, error=0.2)
    >>> south = Standing("south", 100, answers=50, batch=10, error=0.3)
    >>> Oracle().plan([north, south], 1_000)
    Allocation(answers=(0, 10), index=(20.0, 30.0))
    """

    p: float | None = None
    parallel_segments: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", checked_power(self.p))
        check_parallel(self.parallel_segments)

    def plan(self, standings: Sequence[Standing], budget: float, /) -> Allocation:
        """Allocate the next batch to the segment of the highest index."""
        return choose(standings, budget, self._index, self.parallel_segments)

    def reason(self, standing: Standing, /) -> str:
        """Give the reason in words."""
        return error_in_words("true error", _true_error(standing), standing, self.p)

    def _index(self, standing: Standing) -> float:
        return urgency(standing, _true_error(standing), self.p)


def _true_error(standing: Standing) -> float:
    if standing.answers == 0:
        return math.inf  # there is no completion yet
    if standing.error is None:
        raise InvalidInput(
            f"The true error of segment {standing.name!r} is not known; only a simulation with a"
            " known truth can run Oracle. Take MALocate."
        )
    return clipped(standing.error)
