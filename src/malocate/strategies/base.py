"""What a strategy sees and what it decides: the seam between judging and asking."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True)
class Standing:
    """What a strategy may know of a segment.

    - `entries`: its askable cells; `weight` and `cost` as declared.
    - `answers`: how many were asked for so far.
    - `batch`: how many its schedule would ask for next, and the most that it may be asked for at
      once; 0 where it may not be asked any more, because its cap or its target is reached.
    - `room`: how many more its cap allows; at least `batch`.
    - `short`: how many are missing to its floor.
    - `multiple`: its batches must be a multiple of this, 2 where halves are made of them.
    - `estimate`, `se`: estimated mean squared error of a cell and its standard error; infinite
      where nothing is known. The estimate may be below zero.
    - `upper`: an upper bound on it.
    - `error`: the true one, where a simulation knows it.

    >>> Standing("north", 2_400).estimate                   # nothing is known of it yet
    inf
    >>> Standing("north", 2_400, answers=400, batch=100, estimate=0.3, se=0.02, upper=0.5).room
    inf
    """

    name: str
    entries: int
    answers: int = 0
    batch: int = 1
    room: float = math.inf
    short: int = 0
    multiple: int = 1
    estimate: float = math.inf
    se: float = math.inf
    upper: float = math.inf
    error: float | None = None
    weight: float = 1.0
    cost: float = 1.0


@dataclass(frozen=True)
class Allocation:
    """How many answers each segment is asked for next, and the numbers that decided it.

    Both are in the order of the standings; a larger `index` is more urgent.

    >>> bool(Allocation(answers=(0, 100), index=(0.2, 0.3)))
    True
    >>> bool(Allocation(answers=(0, 0), index=(0.2, 0.3)))  # nobody can be asked any more
    False
    """

    answers: tuple[int, ...]
    index: tuple[float, ...]

    def __bool__(self) -> bool:
        """Tell whether anything is to be asked."""
        return any(self.answers)


class Strategy(Protocol):
    """Decides where to ask next, from the standings and what is left of the budget alone."""

    def plan(self, standings: Sequence[Standing], budget: float, /) -> Allocation:
        """Allocate the next answers; none to anybody when nothing can be asked."""
        ...


@runtime_checkable
class Explains(Protocol):
    """A strategy that can also say in words why it asks a segment next."""

    def reason(self, standing: Standing, /) -> str:
        """Give the reason as part of a sentence, such as "fewest answers so far"."""
        ...
