"""What is taken off the answers before the low-rank part is learned, and put back after."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
from scipy import sparse

from malocate.errors import InvalidInput
from malocate.problem import Entries

CentreKind = Literal["none", "mean", "additive"]
Floats = npt.NDArray[np.float64]

_FIRST_PRIOR = 2.0  # answers' worth of shrinkage before the data have been asked
_PRIORS = 1e-12, 1e9  # the shrinkage stays between these
_SWEEPS = 60
_SETTLED = 1e-7  # change of the effects, relative to the spread of the answers
_SMALL = 250_000  # cells up to which a dense product is faster than a sparse one


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
    lines = _Lines.above(entries, offset)
    rows, cols = (np.zeros(side) for side in entries.shape)
    row_prior = col_prior = _FIRST_PRIOR
    across = np.zeros(entries.shape[0])
    if lines.total <= entries.n_answers * (1e-14 * offset) ** 2:
        return Centre(offset, rows, cols)
    for _ in range(_SWEEPS):
        before = rows, cols
        rows = _shrunken(lines.row_sums - across, lines.row_visits, row_prior)
        cols = _shrunken(lines.col_sums - lines.turned @ rows, lines.col_visits, col_prior)
        across = lines.visits @ cols
        left_over = lines.left_over(rows, cols, across)
        row_prior, col_prior = lines.priors(rows, cols, (row_prior, col_prior), left_over)
        moved = max(np.max(np.abs(rows - before[0])), np.max(np.abs(cols - before[1])))
        if moved <= _SETTLED * np.sqrt(lines.total / entries.n_answers):
            break
    return Centre(offset, rows, cols)


@dataclass(frozen=True, eq=False)
class _Lines:
    """The answers above the offset, summed along rows and columns."""

    cells: int
    visits: Any
    turned: Any
    row_visits: Floats
    col_visits: Floats
    row_sums: Floats
    col_sums: Floats
    total: float

    @classmethod
    def above(cls, entries: Entries, offset: float) -> _Lines:
        weights, above = entries.visits.astype(np.float64), entries.means - offset
        place = entries.cols, entries.indptr
        visits = sparse.csr_matrix((weights, *place), shape=entries.shape)
        sums = sparse.csr_matrix((weights * above, *place), shape=entries.shape)
        totals = *_totals(visits), *_totals(sums), float(weights @ above**2)
        if entries.shape[0] * entries.shape[1] <= _SMALL:
            dense = visits.toarray()
            return cls(len(entries), dense, dense.T, *totals)
        return cls(len(entries), visits, visits.T, *totals)

    def priors(
        self, rows: Floats, cols: Floats, priors: tuple[float, float], left_over: float
    ) -> tuple[float, float]:
        """Give the ratios of left-over variance to the rows' and to the columns' variance.

        Each variance is a sum of squares over its degrees of freedom; those of shrunken
        effects are the sum of their shrinkage factors (the evidence's fixed point).
        """
        freedom = [
            float((visits / (visits + prior)).sum())
            for visits, prior in zip((self.row_visits, self.col_visits), priors, strict=True)
        ]
        left_over /= max(1.0, self.cells - sum(freedom))
        squares = float(rows @ rows), float(cols @ cols)
        row_prior, col_prior = (
            float(np.clip(left_over * free / square, *_PRIORS)) if square > 0 else _PRIORS[1]
            for free, square in zip(freedom, squares, strict=True)
        )
        return row_prior, col_prior

    def left_over(self, rows: Floats, cols: Floats, across: Floats) -> float:
        """Give Σ visits · (mean − offset − effects)²; `across` is visits @ cols."""
        squares = rows**2 @ self.row_visits + cols**2 @ self.col_visits
        crossed = rows @ self.row_sums + cols @ self.col_sums - rows @ across
        return max(0.0, float(self.total + squares - 2 * crossed))


def _totals(matrix: sparse.csr_matrix) -> tuple[Floats, Floats]:
    ones = (np.ones(side) for side in matrix.shape[::-1])
    return matrix @ next(ones), next(ones) @ matrix


def _shrunken(sums: Floats, visits: Floats, prior: float) -> Floats:
    return np.divide(sums, visits + prior, out=np.zeros_like(sums), where=visits > 0)
