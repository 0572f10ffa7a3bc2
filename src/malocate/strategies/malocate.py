"""MALocate, the paper's strategy: ask where the loss still falls most."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from malocate.errors import InvalidInput
from malocate.problem.checks import number
from malocate.problem.settings import check_word
from malocate.strategies.base import Allocation, Standing
from malocate.strategies.choosing import check_parallel, checked_power, choose, clipped, urgency
from malocate.strategies.reasons import error_in_words

By = Literal["estimate", "upper"]


@dataclass(frozen=True)
class MALocate:
    """Asks the segment of the highest weight · entries · B · (cost · answers)^(−1/p).

    - `p`: of the loss; None is the design's own, and ∞ where there is no design.
    - `by`: B is the estimated error of a cell, at least 0, plus `confidence` standard errors,
      or the upper bound: ``by="upper"`` is the paper's rule. Bounds that are honest are wide
      while answers are few, and then ask everybody alike; so estimates are the default.
    - `parallel_segments`: so many of the highest are asked in one round.

    Segments that were never asked go first, then those short of their floors.

    >>> north = Standing("north", 100, answers=50, batch=10, estimate=0.2, se=0.0)
    >>> south = Standing("south", 100, answers=200, batch=10, estimate=0.3, se=0.0)
    >>> MALocate().plan([north, south], 1_000)
    Allocation(answers=(0, 10), index=(20.0, 30.0))
    >>> MALocate(p=1).plan([north, south], 1_000)
    Allocation(answers=(10, 0), index=(0.4, 0.15))
    """

    p: float | None = None
    by: By = "estimate"
    confidence: float = 1.0
    parallel_segments: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "p", checked_power(self.p))
        check_word("by", self.by, get_args(By))
        object.__setattr__(self, "confidence", _margin(self.confidence))
        check_parallel(self.parallel_segments)

    def plan(self, standings: Sequence[Standing], budget: float, /) -> Allocation:
        """Allocate the next batch to the segment of the highest index."""
        return choose(standings, budget, self._index, self.parallel_segments)

    def reason(self, standing: Standing, /) -> str:
        """Give the reason in words."""
        what = "error still expected" if self.by == "estimate" else "bound on the error"
        return error_in_words(what, self._error(standing), standing, self.p)

    def _index(self, standing: Standing) -> float:
        return urgency(standing, self._error(standing), self.p)

    def _error(self, standing: Standing) -> float:
        if self.by == "upper":
            return clipped(standing.upper)
        margin = self.confidence * clipped(standing.se) if self.confidence else 0.0
        return clipped(standing.estimate) + margin


def _margin(confidence: object) -> float:
    value = number(confidence, "confidence")
    if not 0 <= value < math.inf:
        raise InvalidInput(f"confidence is {confidence}; it must be 0 or more, and finite.")
    return value
