"""What every estimator takes and gives: the `Estimator` seam, `Completion` and `Status`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from malocate.errors import InvalidInput, InvalidType, TooLarge
from malocate.estimators import storage
from malocate.estimators.centring import Centre
from malocate.problem import Observations, checks
from malocate.problem.settings import check_count

if TYPE_CHECKING:
    import pandas

DENSE_LIMIT = 25_000_000
"""Cells above which `Completion.dense` wants to be forced (200 MB of floats)."""

BLOCK_CELLS = 4_000_000
"""Cells in one block of rows when a whole matrix must be walked."""

_GATHERED = 1 << 22  # numbers gathered from the factors at a time

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.integer[Any]]
Memory = Mapping[str, Any]

NOTHING: Memory = MappingProxyType({})


class Status(Enum):
    """How a fit ended; the value is the sentence shown to people.

    >>> Status.CONVERGED.value
    'converged'
    """

    CONVERGED = "converged"
    CLOSED_FORM = "solved exactly, in closed form"
    OUT_OF_STEPS = "the step limit came before the tolerance: usable, but not finished"
    STALLED = "the objective no longer falls in double precision; loosen `tol`"
    CLIPPED = "clipped to the scale: a heuristic, not the optimum inside the box"
    UPDATED = "updated from the new answers alone"
    EMPTY = "no answers yet: the completion is the middle of the scale, or zero"


@runtime_checkable
class Estimator(Protocol):
    """Anything that completes a matrix from answers; settings are fixed when it is made.

    >>> from malocate import ProjectedLeastSquares
    >>> isinstance(ProjectedLeastSquares(), Estimator)
    True
    """

    def fit(self, observations: Observations, *, start: Completion | None = None) -> Completion:
        """Complete the matrix, beginning from `start` where that saves work."""
        ...


@dataclass(frozen=True, eq=False, repr=False)
class Completion:
    """A completed matrix, kept as factors: ``left @ right.T`` plus its centre.

    `gap` is the relative duality gap that was certified (nan where the problem has none),
    `status` says how the fit ended, `memory` holds what the estimator found on the way
    (its penalty, its place on the path) and what its next warm start needs: numbers, text and
    arrays. Ours all tell `answers`, how many they have seen, and `centre`, the kind of centring
    that was fitted; an estimator uses the same words for every fit, be it one to no answers.
    With `clip` = (low, high) every value is clipped to that scale.

    >>> import numpy as np
    >>> done = Completion(np.ones((2, 1)), np.array([[1.0], [2.0], [3.0]]))
    >>> done
    Completion(2×3, rank 1, converged)
    >>> done.predict([0, 1], [2, 0])
    array([3., 1.])
    """

    left: Floats
    right: Floats
    centre: Centre = field(default_factory=Centre)
    status: Status = Status.CONVERGED
    gap: float = math.nan
    clip: tuple[float, float] | None = None
    labels: tuple[Any, Any] | None = None
    memory: Memory = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("left", "right"):
            factor = np.array(getattr(self, name), dtype=np.float64, order="C")
            factor.flags.writeable = False
            object.__setattr__(self, name, factor)
        _check_sides(self)
        kept = {key: _kept(key, value) for key, value in self.memory.items()}
        object.__setattr__(self, "memory", MappingProxyType(kept))

    def __repr__(self) -> str:
        d1, d2 = self.shape
        certified = "" if math.isnan(self.gap) else f", gap {self.gap:.2g}"
        return f"Completion({d1}×{d2}, rank {self.rank}{certified}, {self.status.value})"

    @property
    def shape(self) -> tuple[int, int]:
        """The completed matrix's sides."""
        return len(self.left), len(self.right)

    @property
    def rank(self) -> int:
        """The rank of the part above the centre."""
        return int(self.left.shape[1])

    @property
    def factors(self) -> tuple[Floats, Floats]:
        """The left and right factors; their product plus the centre is the matrix."""
        return self.left, self.right

    def predict(self, rows: npt.ArrayLike, cols: npt.ArrayLike) -> Floats:
        """Give the completed values at pairs of row and column numbers (or broadcast ones)."""
        at_rows, at_cols = _paired(
            _within(rows, self.shape[0], "rows"), _within(cols, self.shape[1], "cols")
        )
        values = self.centre.at(at_rows, at_cols)
        values += _products(self.left, self.right, at_rows, at_cols)
        return self._clipped(values)

    def dense(self, *, force: bool = False) -> Floats:
        """Give the whole matrix; refused above `DENSE_LIMIT` cells unless forced.

        Walk `blocks()` instead where a block of rows at a time will do.
        """
        if not force:
            refuse_dense(self.shape, "walk `blocks()`, ask `predict` for cells, or pass force=True")
        return self._block(0, self.shape[0])

    def blocks(self, cells: int = BLOCK_CELLS) -> Iterator[tuple[slice, Floats]]:
        """Walk the matrix in blocks of whole rows: pairs of a row slice and its values.

        >>> done = Completion(np.ones((3, 1)), np.ones((2, 1)))
        >>> [(rows.start, rows.stop, block.shape) for rows, block in done.blocks(cells=4)]
        [(0, 2, (2, 2)), (2, 3, (1, 2))]
        """
        check_count("cells", cells)
        height = max(1, int(cells) // self.shape[1])
        ends = ((i, min(i + height, self.shape[0])) for i in range(0, self.shape[0], height))
        return ((slice(first, last), self._block(first, last)) for first, last in ends)

    def to_frame(self) -> pandas.DataFrame:
        """Give one line per cell: row, column and value, with labels where there are any.

        >>> labels = (("ada", "bo"), ("tea",))
        >>> print(Completion(np.ones((2, 1)), np.ones((1, 1)), labels=labels).to_frame())
           row column  value
        0  ada    tea    1.0
        1   bo    tea    1.0
        """
        import pandas

        refuse_dense(self.shape, "walk `blocks()`, or ask `predict` for the cells you need")
        row_labels, col_labels = self.labels or (range(self.shape[0]), range(self.shape[1]))
        index = pandas.MultiIndex.from_product([row_labels, col_labels], names=["row", "column"])
        return pandas.DataFrame({"value": self.dense().ravel()}, index=index).reset_index()

    def save(self, path: storage.Place) -> None:
        """Write the completion to an `.npz` file, without pickles; `load` gives it back."""
        storage.write(self, path)

    @classmethod
    def load(cls, path: storage.Place) -> Completion:
        """Read a completion that `save` wrote."""
        found = storage.read(path)
        return cls(
            **found | {"centre": Centre(**found["centre"]), "status": Status[found["status"]]}
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by the constructor's arguments (a read-only mapping does not pickle)."""
        state = (self.left, self.right, self.centre, self.status, self.gap, self.clip, self.labels)
        return Completion, (*state, dict(self.memory))

    def _block(self, first: int, last: int) -> Floats:
        block = self.centre.at(np.arange(first, last)[:, None], np.arange(self.shape[1]))
        block += self.left[first:last] @ self.right.T
        return self._clipped(block)

    def _clipped(self, values: Floats) -> Floats:
        return values if self.clip is None else np.clip(values, *self.clip, out=values)


def refuse_dense(shape: tuple[int, int], way_out: str) -> None:
    """Refuse to make a dense matrix of more than `DENSE_LIMIT` cells."""
    cells = shape[0] * shape[1]
    if cells > DENSE_LIMIT:
        raise TooLarge(
            f"The dense matrix of shape {shape} has {cells:,} cells, more than the limit of "
            f"{DENSE_LIMIT:,}; {way_out}."
        )


def check_start(observations: Observations, start: Completion | None) -> None:
    """Refuse what is not observations, and a start that is no completion of their shape."""
    if not isinstance(observations, Observations):
        raise InvalidType(
            f"fit was given {checks.a(observations)}; it takes Observations. Make them by "
            "Observations(rows, cols, values, shape=…), or from_dense, from_frame, from_sparse."
        )
    if start is None:
        return
    if not isinstance(start, Completion):
        raise InvalidType(
            f"start is {checks.a(start)}; it must be a Completion, as `fit` gives, or None."
        )
    if start.shape != observations.shape:
        raise InvalidInput(
            f"start has shape {start.shape} and the observations have shape {observations.shape}; "
            "start from a completion of the same matrix, or pass start=None."
        )


def factors_above(centre: Centre, start: Completion) -> tuple[Floats, Floats]:
    """Give factors of the start's matrix less this centre, which may not be the start's own."""
    rows, cols = np.arange(start.shape[0]), np.arange(start.shape[1])
    along_rows = start.centre.at(rows, 0) - centre.at(rows, 0)
    along_cols = start.centre.at(0, cols) - centre.at(0, cols) - along_rows[0]
    if not (along_rows.any() or along_cols.any()):
        return start.factors
    left = np.column_stack([start.left, along_rows, np.ones(len(rows))])
    right = np.column_stack([start.right, np.ones(len(cols)), along_cols])
    return left, right


def empty_completion(observations: Observations, memory: Memory = NOTHING) -> Completion:
    """Give what is known without answers: the middle of the scale everywhere, or zero.

    `memory` is what the estimator tells of every fit, here of one that found nothing.

    >>> from malocate import Observations
    >>> done = empty_completion(Observations([], [], [], shape=(2, 3), scale=(1, 5)))
    >>> done.predict(0, 0).item(), done.rank, done.status.name
    (3.0, 0, 'EMPTY')
    """
    low, high = observations.scale or (0.0, 0.0)
    left, right = (np.zeros((side, 0)) for side in observations.shape)
    centre = Centre(low + (high - low) / 2)
    return Completion(left, right, centre, Status.EMPTY, labels=observations.labels, memory=memory)


def _check_sides(done: Completion) -> None:
    left, right = done.factors
    if left.ndim != 2 or right.ndim != 2 or left.shape[1] != right.shape[1]:
        raise InvalidInput(
            f"Completion factors have shapes {left.shape} and {right.shape}; "
            "both must be two-dimensional with the same number of columns."
        )
    parts = left, right, done.centre.rows, done.centre.cols, done.centre.offset
    if not all(np.isfinite(part).all() for part in parts):
        raise InvalidInput(
            "Completion factors or centre hold NaN or infinity; every value must be finite."
        )
    pairs = [("row effects", done.centre.rows, 0), ("column effects", done.centre.cols, 1)]
    if done.labels is not None:
        pairs += [("row labels", done.labels[0], 0), ("column labels", done.labels[1], 1)]
    for name, values, side in pairs:
        if len(values) not in ({0, done.shape[side]} if "effects" in name else {done.shape[side]}):
            raise InvalidInput(
                f"There are {len(values)} {name} for a completion of shape {done.shape}."
            )


def _kept(key: str, value: Any) -> Any:
    """Give a memory's value as plain text, a plain number or a read-only array."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        value = value.view()
        value.flags.writeable = False
    elif not (value is None or isinstance(value, str | int | float)):
        raise InvalidType(
            f"memory[{key!r}] is {checks.a(value)}; a completion remembers numbers, text "
            "and arrays of numbers."
        )
    return value


def _products(left: Floats, right: Floats, rows: Indices, cols: Indices) -> Floats:
    """Give left[row] · right[column] at each pair, a bounded number of pairs at a time."""
    flat_rows, flat_cols = rows.ravel(), cols.ravel()
    values = np.empty(flat_rows.size)
    step = max(1, _GATHERED // max(1, left.shape[1]))
    for first in range(0, values.size, step):
        part = slice(first, first + step)
        np.einsum("ek,ek->e", left[flat_rows[part]], right[flat_cols[part]], out=values[part])
    return values.reshape(rows.shape)


def _paired(rows: Indices, cols: Indices) -> tuple[Indices, Indices]:
    """Give two arrays broadcast to one shape."""
    sides = zip(rows.shape[::-1], cols.shape[::-1], strict=False)
    if any(one != two and 1 not in (one, two) for one, two in sides):
        raise InvalidInput(
            f"rows has shape {rows.shape} and cols has shape {cols.shape}; predict takes pairs: "
            "give as many of the one as of the other, or one to go with all."
        )
    at_rows, at_cols = np.broadcast_arrays(rows, cols)
    return at_rows, at_cols


def _within(index: npt.ArrayLike, size: int, name: str) -> Indices:
    array = checks.array_of(index, name, "predict takes an array of integers")
    if array.size and array.dtype.kind not in "iu":
        raise InvalidType(f"{name} has dtype {array.dtype}; predict takes integer indices.")
    if array.size and (array.min() < 0 or array.max() >= size):
        worst = array.min() if array.min() < 0 else array.max()
        raise InvalidInput(f"{name} holds {worst}; this completion has {name} 0 to {size - 1}.")
    return array.astype(np.int64)
