"""What is taken off the answers before the low-rank part is learned, and put back after."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from malocate.errors import InvalidInput
from malocate.problem import Entries

CentreKind = Literal["none", "mean", "additive"]
Floats = npt.NDArray[np.float64]

_SETTLED = 1e-7  # change of the effects, relative to the spread of the answers


@dataclass(frozen=True, eq=False)
class Centre:
    """A constant plus row and column effects; empty effects mean none.

    >>> Centre(3.0).at([0, 1], [0, 0])
    array([3., 3.])
    """

    offset: float = 0.0
    rows: Floats = field(default_factory=lambda: np.zeros(0))
    cols: Floats = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        object.__setattr__(self, "offset", float(self.offset))
        for name in ("rows", "cols"):
            effects = np.array(getattr(self, name), dtype=np.float64)
            effects.flags.writeable = False
            object.__setattr__(self, name, effects)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by the constructor, which closes the arrays to writing."""
        return Centre, (self.offset, self.rows, self.cols)

    @property
    def kind(self) -> CentreKind:
        """What kind of centring this is the result of."""
        if self.rows.size or self.cols.size:
            return "additive"
        return "mean" if self.offset else "none"

    def at(self, rows: npt.ArrayLike, cols: npt.ArrayLike) -> Floats:
        """Give the centre at pairs of row and column numbers, broadcast together."""
        rows, cols = np.asarray(rows), np.asarray(cols)
        level = np.full(np.broadcast_shapes(rows.shape, cols.shape), self.offset)
        if self.rows.size:
            level += self.rows[rows]
        if self.cols.size:
            level += self.cols[cols]
        return level


def check_kind(kind: object) -> None:
    """Refuse anything but a known kind of centring."""
    if kind not in get_args(CentreKind):
        raise InvalidInput(f"centre is {kind!r}; it must be 'none', 'mean' or 'additive'.")


def fit_centre(entries: Entries, kind: CentreKind) -> Centre:
    """Fit the centre of the given kind to the seen entries, each weighted by its visits.

    "none" leaves the problem as the paper states it; "mean" takes the mean answer off;
    "additive" takes row and column effects off as well, shrunk as the answers suggest: an
    effect of a line seen `m` times is multiplied by m / (m + prior), where `prior` is the
    variance of what the effects leave over, divided by the variance of the effects themselves.
    Exactly additive answers are so taken as they are, and effects that are mere noise vanish.
    A row or column that nobody answered has the effect 0.

    >>> from malocate import Observations
    >>> table = np.add.outer([1.0, 2.0, 3.0, 5.0, 8.0], [0.0, 2.0, 3.0, 7.0])
    >>> table[4, 3] = np.nan
    >>> centre = fit_centre(Observations.from_dense(table).entries, "additive")
    >>> round(centre.at(4, 3).item(), 6)
    15.0
    """
    check_kind(kind)
    if kind == "none" or len(entries) == 0:
        return Centre()
    offset = float(np.average(entries.means, weights=entries.visits))
    return Centre(offset) if kind == "mean" else _additive(entries, offset)


def _additive(entries: Entries, offset: float) -> Centre:
    """Alternate shrunken means of rows and columns, re-estimating the shrinkage each time."""
    from malocate.estimators.effects import alternate

    visits, above = entries.visits.astype(np.float64), entries.means - offset
    total = float(visits @ above**2)
    if total <= entries.n_answers * (1e-14 * offset) ** 2:
        return Centre(offset, *(np.zeros(side) for side in entries.shape))
    settled = _SETTLED * np.sqrt(total / entries.n_answers)
    effects = alternate(
        entries.indptr, entries.cols, visits, above, entries.shape[1], total, settled
    )
    return Centre(offset, *effects)
