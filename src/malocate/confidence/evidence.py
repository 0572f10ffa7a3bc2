"""What the held-out answers say of the fits that did not see them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from malocate.confidence.ensemble import ambiguity, largest_miss, walkable
from malocate.confidence.noise import Noise
from malocate.confidence.weights import draw_weights
from malocate.estimators.base import Completion
from malocate.problem import Observations

Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]

_AT_ONCE = 1 << 22  # answers that are held against a completion at a time


@dataclass(frozen=True, eq=False)
class Judged:
    """One fit and the answers that it did not see."""

    completion: Completion
    answers: Observations

    @cached_property
    def misses(self) -> Floats:
        """What each answer is above the fit."""
        rows, cols, misses = self.answers.rows, self.answers.cols, self.answers.values.copy()
        for first in range(0, len(misses), _AT_ONCE):
            part = slice(first, first + _AT_ONCE)
            misses[part] -= self.completion.predict(rows[part], cols[part])
        return misses

    @cached_property
    def cells(self) -> Int64s:
        """The number of each answer's cell, counted along the rows."""
        return self.answers.rows.astype(np.int64) * self.answers.shape[1] + self.answers.cols

    @cached_property
    def units(self) -> Units:
        """The squared misses, one for each fresh draw: a replicate is averaged with its draw."""
        numbering = self.answers.numbering
        weights = draw_weights(self.answers)
        squares = self.misses**2 if weights is None else weights * self.misses**2
        if numbering.replicated is None or not (numbering.replicated >= 0).any():
            return Units(squares, self.cells)
        _, first, unit, size = np.unique(
            numbering.origins, return_index=True, return_inverse=True, return_counts=True
        )
        return Units(np.bincount(unit, squares) / size, self.cells[first])

    @cached_property
    def pairs(self) -> Pairs:
        """The pair products of the entries that this fold has seen at least twice."""
        cells, entry, visits = np.unique(self.cells, return_inverse=True, return_counts=True)
        total: Floats = np.bincount(entry, self.misses).astype(np.float64, copy=False)
        square: Floats = np.bincount(entry, self.misses**2).astype(np.float64, copy=False)
        often = visits >= 2
        visits, total, square = visits[often], total[often], square[often]
        products = (total**2 - square) / (visits * (visits - 1))
        weights = draw_weights(self.answers)
        if weights is not None:  # of an entry that was seen twice by chance; right in the long run
            weight = (np.bincount(entry, weights)[often] / visits) ** 2
            weight /= weight.mean() if len(weight) else 1.0
            products, square = products * weight, square * weight
        return Pairs(products, square / visits, cells[often])


@dataclass(frozen=True, eq=False)
class Units:
    """Squared misses that are independent of each other, and the cell of each."""

    squares: Floats
    cells: Int64s

    def __len__(self) -> int:
        """Count them."""
        return len(self.squares)


@dataclass(frozen=True, eq=False)
class Pairs:
    """Of each entry seen twice or more: the mean product of two misses, and their mean square."""

    products: Floats
    squares: Floats
    cells: Int64s

    def __len__(self) -> int:
        """Count the entries."""
        return len(self.products)


@dataclass(frozen=True, eq=False)
class Evidence:
    """Everything that estimates and bounds of one segment's error are made from.

    `scattered` tells whether the judges fell on their entries independently of each other, which
    those that were chosen for being two at one entry did not.
    """

    folds: Sequence[Judged]
    noise: Noise
    observations: Observations
    scattered: bool = True

    @property
    def scale(self) -> tuple[float, float] | None:
        """The declared scale of the answers."""
        return self.observations.scale

    @cached_property
    def uniform(self) -> bool:
        """Whether every askable cell had the same chance at every draw."""
        return draw_weights(self.observations) is None

    @property
    def walkable(self) -> int:
        """The number of cells up to which matrices are walked."""
        return walkable(len(self.observations))

    @cached_property
    def ambiguity(self) -> float:
        """How far the fits are from their average; known without error."""
        members = [fold.completion for fold in self.folds]
        if len(members) < 2:
            return 0.0
        return ambiguity(members, self.observations.mask, limit=self.walkable)

    @cached_property
    def highest(self) -> list[float]:
        """The largest squared miss that an answer on the scale can make, for each fit."""
        if self.scale is None:
            return [math.inf] * len(self.folds)
        scale, mask, limit = self.scale, self.observations.mask, self.walkable
        return [largest_miss(fold.completion, scale, mask, limit=limit) for fold in self.folds]
