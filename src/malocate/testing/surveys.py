"""Made-up surveys that take a strategy through whole budgets: errors fall as answers come in."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from malocate.strategies.base import Allocation, Standing, Strategy

NAMES = ("north", "south", "east", "west")
TOLERANCE = 1e-6  # of an answer: sums of costs such as 0.1 are not exact
_MOST_ROUNDS = 5_000


@dataclass(frozen=True)
class MadeUp:
    """A segment whose true error of a cell is `hardness` over its answers."""

    name: str
    hardness: float = 20.0
    first: int = 16
    step: int = 10
    cap: float = math.inf
    floor: int = 0
    multiple: int = 1
    cost: float = 1.0
    weight: float = 1.0
    entries: int = 120
    bias: float = 0.0  # of the estimate, in units of the error
    unknown: float | None = None  # what the bands say instead: infinity, or not a number

    def standing(self, answers: int) -> Standing:
        """Give what a strategy would see after so many answers."""
        room = self.cap - answers
        wanted = min(self.step if answers else self.first, max(0, room))
        error = self.hardness / max(answers, 1)
        seen = Standing(
            self.name,
            self.entries,
            answers,
            batch=math.floor(wanted) // self.multiple * self.multiple,
            room=room,
            short=max(0, self.floor - answers),
            multiple=self.multiple,
            error=error,
            weight=self.weight,
            cost=self.cost,
        )
        if answers == 0:
            return seen
        if self.unknown is not None:
            return replace(seen, estimate=self.unknown, se=self.unknown, upper=self.unknown)
        estimate = error * (1 + self.bias)
        return replace(seen, estimate=estimate, se=error / 10, upper=1.5 * error)


@dataclass(frozen=True)
class Round:
    """What a strategy saw, what was left of the budget, and what it decided."""

    standings: tuple[Standing, ...]
    budget: float
    allocation: Allocation

    @property
    def cost(self) -> float:
        """What the answers of this round cost."""
        pairs = zip(self.standings, self.allocation.answers, strict=True)
        return math.fsum(standing.cost * count for standing, count in pairs)


@dataclass(frozen=True)
class Survey:
    """Segments and a budget.

    >>> from malocate import Uniform
    >>> rounds = Survey("two", (MadeUp("north"), MadeUp("south")), budget=40).run(Uniform())
    >>> [each.allocation.answers for each in rounds]
    [(16, 16), (8, 0), (0, 0)]
    """

    name: str
    segments: tuple[MadeUp, ...]
    budget: float

    def run(self, strategy: Strategy) -> list[Round]:
        """Ask until the strategy asks nobody, or overdoes it."""
        return list(self._rounds(strategy))

    def _rounds(self, strategy: Strategy) -> Iterator[Round]:
        answers, budget = [0] * len(self.segments), self.budget
        for _ in range(_MOST_ROUNDS):
            pairs = zip(self.segments, answers, strict=True)
            standings = tuple(segment.standing(count) for segment, count in pairs)
            allocation = strategy.plan(standings, budget)
            done = Round(standings, budget, allocation)
            yield done
            if not allocation or done.cost <= 0 or done.cost > 2 * budget:
                return
            budget -= done.cost
            answers = [sum(both) for both in zip(answers, allocation.answers, strict=True)]

    def first_round(self) -> float:
        """What the first batches of all segments cost."""
        return math.fsum(each.standing(0).batch * each.cost for each in self.segments)


def segments(**settings: float | tuple[float | None, ...]) -> tuple[MadeUp, ...]:
    """Make four segments; a setting that is a tuple has one value for each."""
    made = [MadeUp(name) for name in NAMES]
    for key, given in settings.items():
        values = given if isinstance(given, tuple) else (given,) * len(made)
        made = [replace(one, **{key: value}) for one, value in zip(made, values, strict=True)]  # type: ignore[arg-type]
    return tuple(made)


EASY_AND_HARD = (5.0, 80.0, 20.0, 20.0)
SURVEYS = (
    Survey("one hard segment", segments(hardness=EASY_AND_HARD), 1_000),
    Survey("all alike", segments(), 777),
    Survey("nothing is ever known", segments(unknown=math.inf), 1_000),
    Survey("one is not a number", segments(unknown=(None, math.nan, None, None)), 600),
    Survey("estimates below zero", segments(bias=(-3.0, -3.0, 0.0, -1.2)), 600),
    Survey("costs", segments(hardness=EASY_AND_HARD, cost=(1.0, 0.1, 3.5, 0.7)), 431.3),
    Survey("caps", segments(hardness=EASY_AND_HARD, cap=(40, 55, 30, math.inf)), 400),
    Survey("caps below the budget", segments(cap=(40, 55, 30, 12)), 400),
    Survey("floors", segments(hardness=(1e-6, 80.0, 1e-6, 20.0), floor=(90, 0, 50, 20)), 420),
    Survey("halves", segments(multiple=2, cap=(31, 100, 100, 100), cost=(1, 1, 2, 1)), 301),
    Survey("sizes and weights", segments(entries=(25, 40_000, 600, 90), weight=(9, 1, 1, 2)), 500),
    Survey("one segment", (MadeUp(NAMES[0]),), 333),
    Survey("less than a first round", segments(), 33),
    Survey("less than a first round of unlike ones", segments(first=(200, 3, 40, 9)), 50),
    Survey("less than a first round at a cost", segments(cost=(1.0, 0.1, 3.5, 0.7)), 20.0),
)
