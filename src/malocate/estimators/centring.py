"""What is taken off the answers before the low-rank part is learned, and put back after."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from malocate.errors import InvalidInput
from malocate.problem import Entries

CentreKind = Literal["none", "mean", "additive"]
Floats = npt.NDArray[np.float64]

EFFECT_PRIOR = 2.0
"""Answers' worth of shrinkage towards zero on each row and column effect."""

SWEEPS = 30


@dataclass(frozen=True, eq=False)
class Centre:
    """A constant plus row and column effects; empty effects mean none.

    >>> Centre(3.0).at([0, 1], [0, 0])
    array([3., 3.])
    """

    offset: float = 0.0
    rows: Floats = field(default_factory=lambda: np.zeros(0))
    cols: Floats = field(default_factory=lambda: np.zeros(0))

    def at(self, rows: npt.ArrayLike, cols: npt.ArrayLike) -> Floats:
        """Give the centre at pairs of row and column numbers, broadcast together."""
        rows, cols = np.asarray(rows), np.asarray(cols)
        level = np.full(np.broadcast_shapes(rows.shape, cols.shape), self.offset)
        if self.rows.size:
            level += self.rows[rows]
        if self.cols.size:
            level += self.cols[cols]
        return level


def fit_centre(entries: Entries, kind: str) -> Centre:
    """Fit the centre of the given kind to the seen entries, each weighted by its visits.

    "none" leaves the problem as the paper states it; "mean" takes the mean answer off;
    "additive" takes lightly shrunk row and column effects off as well.
    """
    if kind == "none" or len(entries) == 0:
        if kind not in ("none", "mean", "additive"):
            raise _unknown(kind)
        return Centre()
    if kind == "mean":
        return Centre(_mean(entries))
    if kind == "additive":
        return _additive(entries)
    raise _unknown(kind)


def _mean(entries: Entries) -> float:
    return float(np.average(entries.means, weights=entries.visits))


def _additive(entries: Entries) -> Centre:
    """Row and column effects by alternating shrunken means (a convex problem: it converges)."""
    offset = _mean(entries)
    above = entries.means - offset
    row_effects, col_effects = np.zeros(entries.shape[0]), np.zeros(entries.shape[1])
    for _ in range(SWEEPS):
        row_effects = _shrunken_means(entries, entries.rows, above - col_effects[entries.cols], 0)
        before = col_effects
        col_effects = _shrunken_means(entries, entries.cols, above - row_effects[entries.rows], 1)
        if np.max(np.abs(col_effects - before), initial=0.0) <= 1e-9 * np.ptp(above):
            break
    return Centre(offset, row_effects, col_effects)


def _shrunken_means(
    entries: Entries, index: npt.NDArray[np.integer[Any]], values: Floats, side: int
) -> Floats:
    size = entries.shape[side]
    visits = np.bincount(index, weights=entries.visits, minlength=size)
    sums = np.bincount(index, weights=entries.visits * values, minlength=size)
    return np.asarray(sums / (visits + EFFECT_PRIOR), dtype=np.float64)


def _unknown(kind: object) -> InvalidInput:
    return InvalidInput(f"centre is {kind!r}; it must be 'none', 'mean' or 'additive'.")
