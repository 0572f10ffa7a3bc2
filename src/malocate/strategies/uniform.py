"""Uniform: everybody is asked alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from malocate.problem.counting import counted
from malocate.problem.settings import check_word
from malocate.strategies.base import Allocation, Standing
from malocate.strategies.choosing import check_parallel, choose

By = Literal["segment", "entries"]


@dataclass(frozen=True)
class Uniform:
    """Asks every segment alike, whatever its answers say.

    ``by="segment"`` goes round: the segment with the fewest answers is next, so that all get
    as many. ``by="entries"`` counts answers per askable cell, so that a segment of twice the
    cells gets twice the answers. So many `parallel_segments` are asked in one round.

    >>> north = Standing("north", 100, answers=50, batch=10)
    >>> south = Standing("south", 400, answers=60, batch=10)
    >>> Uniform().plan([north, south], 1_000).answers
    (10, 0)
    >>> Uniform(by="entries").plan([north, south], 1_000).answers
    (0, 10)
    """

    by: By = "segment"
    parallel_segments: int = 1

    def __post_init__(self) -> None:
        check_word("by", self.by, get_args(By))
        check_parallel(self.parallel_segments)

    def plan(self, standings: Sequence[Standing], budget: float, /) -> Allocation:
        """Allocate the next batch to the segment that has got least; its index is minus that."""
        return choose(standings, budget, self._index, self.parallel_segments)

    def reason(self, standing: Standing, /) -> str:
        """Give the reason in words."""
        if self.by == "segment":
            return "fewest answers so far"
        return f"fewest answers for its {counted(standing.entries, 'cell')}"

    def _index(self, standing: Standing) -> float:
        return -standing.answers / (1 if self.by == "segment" else standing.entries)
