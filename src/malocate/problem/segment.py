"""A segment: one hidden matrix that can be asked about, and what its answers cost and count."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from malocate.errors import InvalidInput, InvalidType, MalocateError
from malocate.problem import checks
from malocate.problem.arrays import Bools
from malocate.problem.checks import Labels
from malocate.problem.observations import Observations
from malocate.problem.settings import check_count, check_positive


@dataclass(frozen=True, eq=False, init=False)
class Segment:
    """One region, panel or cohort whose matrix of preferences is to be completed.

    - `shape`: (rows, columns); `labels` alone will do, too.
    - `scale`, `labels`, `mask`: as in `Observations`, which gets them from here.
    - `weight`: how much the segment's error counts in the loss.
    - `cost`: what one answer costs, in units of the budget.
    - `cap`, `floor`: the most and the fewest answers that may be asked.

    >>> north = Segment("north", labels=(["Al", "Bo"], ["red", "white", "rosé"]), scale=(1, 5))
    >>> north.shape, north.n_askable, len(north.observations([], [], []))
    ((2, 3), 6, 0)
    """

    name: str
    shape: tuple[int, int]
    scale: tuple[float, float] | None
    labels: Labels | None
    mask: Bools | None
    weight: float
    cost: float
    cap: int | None
    floor: int

    def __init__(
        self,
        name: str,
        shape: tuple[int, int] | None = None,
        *,
        scale: tuple[float, float] | None = None,
        labels: tuple[Iterable[Hashable], Iterable[Hashable]] | None = None,
        mask: ArrayLike | None = None,
        weight: float = 1.0,
        cost: float = 1.0,
        cap: int | None = None,
        floor: int = 0,
    ) -> None:
        if not isinstance(name, str) or not name:
            raise InvalidType(f"name is {name!r}; a segment's name must be text, not empty.")
        try:
            listed = checks.label_lists(labels)
            sides = _sides(shape, listed)
            frame = checks.frame_of(sides, scale, listed, mask)
            limits = _limits(frame["mask"], weight, cost, cap, floor)
        except MalocateError as problem:
            raise type(problem)(f"Segment {name!r}: {problem}") from None
        self.__dict__.update(frame | limits, name=name)

    @cached_property
    def n_askable(self) -> int:
        """How many cells can be asked: all but the masked ones."""
        return checks.count_askable(self.shape, self.mask)

    @property
    def longest(self) -> int:
        """The longer side; the paper's d."""
        return max(self.shape)

    def observations(
        self,
        rows: ArrayLike,
        cols: ArrayLike,
        values: ArrayLike,
        *,
        draws: ArrayLike | None = None,
        repeats: ArrayLike | None = None,
        probability: ArrayLike | None = None,
    ) -> Observations:
        """Give answers about this segment, with its shape, scale, labels and mask."""
        frame = {name: getattr(self, name) for name in ("shape", "scale", "labels", "mask")}
        numbers: dict[str, Any] = {"draws": draws, "repeats": repeats, "probability": probability}
        return Observations(rows, cols, values, **frame, **numbers)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Segment):
            return NotImplemented
        return all(
            np.array_equal(getattr(self, each.name), getattr(other, each.name))
            if each.name == "mask"
            else getattr(self, each.name) == getattr(other, each.name)
            for each in fields(self)
        )

    def __hash__(self) -> int:
        return hash((self.name, self.shape))


def _sides(shape: Any, labels: tuple[list[Any], list[Any]] | None) -> Any:
    if shape is None and labels is None:
        raise InvalidInput("it has neither shape nor labels; give one of them.")
    return (len(labels[0]), len(labels[1])) if shape is None and labels else shape


def _limits(mask: Bools | None, weight: Any, cost: Any, cap: Any, floor: Any) -> dict[str, Any]:
    if mask is not None and mask.all():
        raise InvalidInput("its mask leaves no cell to ask; drop the segment or unmask cells.")
    check_positive("weight", weight)
    check_positive("cost", cost)
    check_count("floor", floor, least=0)
    if cap is not None:
        check_count("cap", cap)
        if cap < floor:
            raise InvalidInput(f"its cap is {cap} and its floor {floor}; the cap must be as high.")
    cap = None if cap is None else int(cap)
    return {"weight": float(weight), "cost": float(cost), "cap": cap, "floor": int(floor)}
