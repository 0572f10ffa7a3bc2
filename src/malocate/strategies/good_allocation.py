"""The good allocation of known ranks: what MALocate would converge to if it knew them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from malocate.errors import InvalidInput, InvalidType, MalocateError
from malocate.problem import Segment
from malocate.problem.settings import check_positive
from malocate.strategies.base import Allocation, Standing
from malocate.strategies.choosing import check_parallel, checked_power, choose, power
from malocate.theory import complexity

Ranks = Mapping[str, int] | Sequence[int]


@dataclass(frozen=True)
class GoodAllocation:
    """Spends the budget in the proportions that are good for known complexities.

    T_k ∝ (weight · complexity)^(p/(p+1)) · cost^(−1/(p+1)): the static allocation that makes
    L^p least if the error of segment k falls like complexity_k / T_k. The segment whose answers
    are least of its target is next, so that none is ahead of the others by more than its last
    batch, unless first batches, floors or caps stand against it.

    `complexities` are pairs of a segment's name and its complexity, or a mapping; `of` computes
    them from ranks. `p` is that of the loss; None is the design's own, and ∞ where there is no
    design. So many `parallel_segments` are asked in one round.

    >>> north, south = Segment("north", (200, 200)), Segment("south", (200, 200))
    >>> good = GoodAllocation.of([north, south], ranks={"north": 40, "south": 10})
    >>> standings = [Standing("north", 40_000, 7_900), Standing("south", 40_000, 2_000)]
    >>> good.plan(standings, 100).answers                   # four to one is the goal
    (1, 0)
    """

    complexities: tuple[tuple[str, float], ...]
    p: float | None = None
    parallel_segments: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "complexities", _pairs(self.complexities))
        object.__setattr__(self, "p", checked_power(self.p))
        check_parallel(self.parallel_segments)

    @classmethod
    def of(
        cls,
        segments: Iterable[Segment],
        ranks: Ranks,
        p: float | None = None,
        parallel_segments: int = 1,
    ) -> GoodAllocation:
        """Take the complexities from the segments' shapes and `ranks`, by name or in their order.

        Masked cells count in no loss, so a segment's complexity is less by their share.
        """
        listed = list(segments)
        known = _by_name(listed, ranks)
        each = tuple((each.name, _complexity(each, known[each.name])) for each in listed)
        return cls(each, p, parallel_segments)

    def check(self, names: Sequence[str]) -> None:
        """Refuse segments whose complexity is not known."""
        for name in names:
            self._complexity_of(name, dict(self.complexities))

    def plan(self, standings: Sequence[Standing], budget: float, /) -> Allocation:
        """Allocate the next batch to the segment whose answers are least of its target."""
        known = dict(self.complexities)
        return choose(
            standings, budget, lambda each: self._index(each, known), self.parallel_segments
        )

    def reason(self, _standing: Standing, /) -> str:
        """Give the reason in words."""
        return "furthest below its share of the good allocation"

    def target(self, standing: Standing) -> float:
        """Give the answers that a segment should have got, in proportion to the others' targets.

        >>> good = GoodAllocation({"north": 32.0, "south": 4.0}, p=2)
        >>> [round(good.target(Standing(name, 100)), 3) for name in ("north", "south")]
        [10.079, 2.52]
        """
        return self._target(standing, dict(self.complexities))

    def _index(self, standing: Standing, known: Mapping[str, float]) -> float:
        target = self._target(standing, known)
        return target / standing.answers if standing.answers else math.inf

    def _target(self, standing: Standing, known: Mapping[str, float]) -> float:
        per_cost = 1 / (power(self.p) + 1)
        weighted = standing.weight * self._complexity_of(standing.name, known)
        return float(weighted ** (1 - per_cost) * standing.cost**-per_cost)

    def _complexity_of(self, name: str, known: Mapping[str, float]) -> float:
        if name not in known:
            raise InvalidInput(
                f"GoodAllocation has no complexity for segment {name!r}, only for "
                f"{', '.join(known) or 'none'}; make it with GoodAllocation.of(segments, ranks)."
            )
        return known[name]


def _pairs(complexities: Any) -> tuple[tuple[str, float], ...]:
    given = complexities.items() if isinstance(complexities, Mapping) else complexities
    try:
        pairs = tuple((name, value) for name, value in given)
    except (TypeError, ValueError):
        raise InvalidType(
            f"complexities is {complexities!r}; it must be a mapping from segments' names to"
            " numbers, or pairs of them."
        ) from None
    for name, value in pairs:
        check_positive(f"complexities[{name!r}]", value)
    if len(dict(pairs)) < len(pairs):
        raise InvalidInput("complexities names a segment twice; give each segment one.")
    return tuple((name, float(value)) for name, value in pairs)


def _by_name(segments: list[Segment], ranks: Ranks) -> dict[str, int]:
    names = [each.name for each in segments]
    if not isinstance(ranks, Mapping) and len(ranks) != len(names):
        raise InvalidInput(
            f"There are {len(ranks)} ranks and {len(names)} segments; give each segment one."
        )
    known = dict(ranks if isinstance(ranks, Mapping) else zip(names, ranks, strict=True))
    if set(known) != set(names):
        odd = sorted(set(known) ^ set(names))
        raise InvalidInput(f"ranks and segments differ in {', '.join(odd)}; give each one rank.")
    return known


def _complexity(segment: Segment, rank: int) -> float:
    try:
        whole = complexity(segment.shape, rank)
    except MalocateError as problem:
        raise type(problem)(f"Segment {segment.name!r}: {problem}") from None
    return whole * (segment.n_askable / math.prod(segment.shape))
