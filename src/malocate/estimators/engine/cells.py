"""Weighted cells, readable by row and by column: the input of every solver."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from malocate.estimators.centring import Centre
from malocate.estimators.engine.products import move_lines
from malocate.estimators.engine.threads import spread
from malocate.estimators.engine.transpose import transposed
from malocate.estimators.engine.turns import Turns
from malocate.problem import Entries
from malocate.problem.arrays import read_only

Floats = npt.NDArray[np.float64]
Reals = npt.NDArray[np.floating[Any]]

LEAST_SINGLE, MOST_SINGLE = 1e-12, 1e12
"""Magnitudes whose squares are far from the ends of single precision."""

COST_OF_A_MOVE = 40
"""Multiply-adds in the time that it takes to fetch a number from anywhere in memory."""


def close(held: object) -> None:
    """Close the arrays of a dataclass to writing: a kernel is compiled for either kind of array."""
    for name, value in list(vars(held).items()):
        if isinstance(value, np.ndarray):
            object.__setattr__(held, name, read_only(value))


@dataclass(frozen=True, eq=False)
class Side:
    """The cells in one order: `indptr` cuts them into lines, `index` is the other coordinate."""

    indptr: npt.NDArray[np.int64]
    index: npt.NDArray[np.int32]
    weights: Reals
    targets: Reals

    def __post_init__(self) -> None:
        close(self)


@dataclass(frozen=True, eq=False)
class Sides:
    """The cells in both orders, in one precision."""

    by_row: Side
    by_column: Side


@dataclass(frozen=True, eq=False)
class Cells:
    """Seen cells with a weight and a target each, sorted by row and then by column.

    The weighted least-squares loss of a matrix M is half of Σ weights · (targets − M)².
    """

    shape: tuple[int, int]
    indptr: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int32]
    cols: npt.NDArray[np.int32]
    weights: Floats
    targets: Floats

    def __post_init__(self) -> None:
        close(self)

    @classmethod
    def from_entries(cls, entries: Entries, targets: Floats | None = None) -> Cells:
        """Take an entry's visits as its weight and its mean answer as its target."""
        weights = entries.visits.astype(np.float64)
        targets = np.asarray(entries.means if targets is None else targets, dtype=np.float64)
        return cls(entries.shape, entries.indptr, entries.rows, entries.cols, weights, targets)

    @classmethod
    def above(cls, entries: Entries, centre: Centre) -> Cells:
        """Take the centre off the entries' mean answers."""
        if centre.kind == "none":
            return cls.from_entries(entries)
        return cls.from_entries(entries, entries.means - centre.at(entries.rows, entries.cols))

    def __len__(self) -> int:
        """Count the cells."""
        return len(self.cols)

    def sides(self, precision: type[np.floating[Any]]) -> Sides:
        """The cells in both orders, with weights and targets in single or double precision."""
        return self._single if precision is np.float32 else self._double

    def forget_single(self) -> None:
        """Free the cells in single precision, until they are asked for again."""
        self.__dict__.pop("_single", None)

    @cached_property
    def fits_single(self) -> bool:
        """Whether sums of squares stay far from the ends of single precision."""
        largest = float(max(self.targets.max(initial=0.0), -self.targets.min(initial=0.0)))
        heaviest = float(np.max(self.weights, initial=0.0))
        return LEAST_SINGLE < largest < MOST_SINGLE and heaviest < MOST_SINGLE

    def matrix(self, values: Floats) -> sparse.csr_matrix:
        """Put one value per cell into a sparse matrix."""
        return sparse.csr_matrix((values, self.cols, self.indptr), shape=self.shape)

    @cached_property
    def _single(self) -> Sides:
        return self._both(self.weights.astype(np.float32), self.targets.astype(np.float32))

    @cached_property
    def _double(self) -> Sides:
        return self._both(self.weights, self.targets)

    def _both(self, weights: Reals, targets: Reals) -> Sides:
        indptr, rows, _ = self.columns
        turned = weights if self._equally_heavy else self.by_column(weights)
        return Sides(
            Side(self.indptr, self.cols, weights, targets),
            Side(indptr, rows, turned, self.by_column(targets)),
        )

    def by_column(self, values: Reals, room: Reals | None = None) -> Reals:
        """Put one value per cell into the order of the columns, into `room` if there is any."""
        indptr, _, order = self.columns
        made = np.empty_like(values) if room is None else room

        def work(turns: Turns) -> None:
            move_lines(indptr, order, values, turns, made)

        spread(work, indptr, COST_OF_A_MOVE)
        return made

    @cached_property
    def _equally_heavy(self) -> bool:
        """Whether all weights are the same: they then are so in any order, and need no copy."""
        return len(self) > 0 and float(self.weights.min()) == float(self.weights.max())

    @cached_property
    def columns(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[Any]]:
        """By column: where each begins, the rows, and where the cells sit by row."""
        return transposed(self.indptr, self.cols, self.shape[1])
