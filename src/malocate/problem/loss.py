"""The loss over all segments: one number for how wrong their completions are together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from malocate.errors import InvalidInput, InvalidType
from malocate.problem.checks import refuse_where
from malocate.problem.settings import check_positive

Weights = tuple[float, ...] | Literal["per_entry"] | None


@dataclass(frozen=True)
class Loss:
    """L^p = (Σ_k (w_k · squared Frobenius error of segment k)^p)^(1/p), p from 1 to ∞.

    With p = 1 all errors add up; with p = ∞ only the worst segment counts. The weights are
    inside the power, so that they count at p = ∞ too. Without `weights` those of the segments
    are taken (1 unless declared); ``weights="per_entry"`` divides each by its segment's number
    of askable cells, so that the mean squared error of a cell counts and not the segment's size.

    >>> Loss(p=1).of([3.0, 4.0]), Loss(p=2).of([3.0, 4.0]), Loss().of([3.0, 4.0])
    (7.0, 5.0, 4.0)
    >>> Loss(weights=(2.0, 1.0)).of([3.0, 4.0])
    6.0
    """

    p: float = math.inf
    weights: Weights = None

    def __post_init__(self) -> None:
        check_power(self.p)
        object.__setattr__(self, "p", float(self.p))
        object.__setattr__(self, "weights", _weights(self.weights))

    def of(self, errors: Iterable[float], weights: Sequence[float] | None = None) -> float:
        """Give the loss of the segments' squared Frobenius errors.

        `weights` are the segments' own, for a loss that has none; infinite where an error is. A
        loss per entry needs them: its design's `weights` are already divided by the cells.
        """
        own = self.weights if isinstance(self.weights, tuple) else weights
        if own is None and self.weights == "per_entry":
            raise InvalidInput(
                "The loss has weights per entry, and errors do not tell how many entries there "
                "are; pass weights=design.weights, or one over each segment's number of cells."
            )
        values = np.array([float(error) for error in errors])
        refuse_where(values < 0, values, "errors", "a squared error is at least 0")
        if own is not None:
            _check_length(own, len(values))
            values = values * np.asarray(own)
        return power_mean(values, self.p)


def power_mean(values: Any, p: float) -> float:
    """Give (Σ x^p)^(1/p) of numbers of at least zero, without overflow; 0.0 for none.

    >>> power_mean([1e200, 1e200], 2.0)
    1.414213562373095e+200
    """
    numbers = np.asarray(values, dtype=np.float64)
    largest = float(numbers.max(initial=0.0))
    if math.isinf(p) or not 0.0 < largest < math.inf:
        return largest
    return largest * float(((numbers / largest) ** p).sum() ** (1 / p))


def check_power(p: object) -> None:
    """Refuse a power that is not a number from 1 to infinity."""
    if isinstance(p, bool) or not isinstance(p, int | float | np.number):
        raise InvalidType(f"p is {p!r}; it must be a number from 1 to inf.")
    if not float(p) >= 1:
        raise InvalidInput(f"p is {p}; it must be at least 1 (inf is the largest error alone).")


def _weights(weights: Any) -> Weights:
    if weights is None:
        return None
    if isinstance(weights, str):
        if weights == "per_entry":
            return "per_entry"
        raise InvalidInput(f"weights is {weights!r}; give numbers, 'per_entry' or None.")
    if not isinstance(weights, Iterable):
        raise InvalidType(f"weights is {weights!r}; give one number for each segment.")
    listed = tuple(weights)
    for place, weight in enumerate(listed):
        check_positive(f"weights[{place}]", weight)
    return tuple(float(weight) for weight in listed)


def _check_length(weights: Sequence[float], count: int) -> None:
    if len(weights) != count:
        raise InvalidInput(
            f"There are {len(weights)} weights and {count} segments; give each segment one."
        )
