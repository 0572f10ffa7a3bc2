"""What every estimator takes and gives: the `Estimator` seam, `Completion` and `Status`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from malocate.errors import InvalidInput, InvalidType, TooLarge
from malocate.estimators.centring import Centre
from malocate.problem import Observations

DENSE_LIMIT = 25_000_000
"""Cells above which `Completion.dense` wants to be forced (200 MB of floats)."""

BLOCK_CELLS = 4_000_000
"""Cells in one block of rows when a whole matrix must be walked."""

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.integer[Any]]
Memory = Mapping[str, Any]


class Status(Enum):
    """How a fit ended; the value is the sentence shown to people.

    >>> Status.CONVERGED.value
    'converged'
    """

    CONVERGED = "converged"
    CLOSED_FORM = "solved exactly, in closed form"
    OUT_OF_STEPS = (
        "the step limit came before the tolerance; raise `max_steps` or loosen `tol`"
    )
    CLIPPED = "clipped to the scale: a heuristic, not the optimum inside the box"
    UPDATED = "updated from the new answers alone"
    EMPTY = "no answers yet: the completion is the middle of the scale, or zero"


class Estimator(Protocol):
    """Anything that completes a matrix from answers; settings are fixed when it is made."""

    def fit(self, observations: Observations, *, start: Completion | None = None) -> Completion:
        """Complete the matrix, beginning from `start` where that saves work."""
        ...


@dataclass(frozen=True, eq=False)
class Completion:
    """A completed matrix, kept as factors: ``left @ right.T`` plus its centre.

    `gap` is the relative duality gap that was certified (nan where the problem has none),
    `status` says how the fit ended, `memory` holds what the estimator found on the way
    (its penalty, its place on the path) and what its next warm start needs.

    >>> import numpy as np
    >>> done = Completion(np.ones((2, 1)), np.array([[1.0], [2.0], [3.0]]))
    >>> done.shape, done.rank
    ((2, 3), 1)
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
        """Freeze the arrays: a completion is a value."""
        for name in ("left", "right"):
            factor = np.array(getattr(self, name), dtype=np.float64, order="C")
            factor.flags.writeable = False
            object.__setattr__(self, name, factor)
        if self.left.ndim != 2 or self.right.ndim != 2 or self.left.shape[1] != self.right.shape[1]:
            raise InvalidInput(
                f"Completion factors have shapes {self.left.shape} and {self.right.shape}; "
                "both must be two-dimensional with the same number of columns."
            )
        object.__setattr__(self, "memory", MappingProxyType(dict(self.memory)))

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
        at_rows, at_cols = np.broadcast_arrays(
            _within(rows, self.shape[0], "rows"), _within(cols, self.shape[1], "cols")
        )
        product = np.einsum("...k,...k->...", self.left[at_rows], self.right[at_cols])
        return self._clipped(product + self.centre.at(at_rows, at_cols))

    def dense(self, *, force: bool = False) -> Floats:
        """Give the whole matrix; refused above `DENSE_LIMIT` cells unless forced.

        Walk `blocks()` instead where a block of rows at a time will do.
        """
        cells = self.shape[0] * self.shape[1]
        if cells > DENSE_LIMIT and not force:
            raise TooLarge(
                f"The dense matrix of shape {self.shape} has {cells:,} cells, more than the limit "
                f"of {DENSE_LIMIT:,}; walk `blocks()`, ask `predict` for the cells you need, "
                "or pass force=True."
            )
        return self._block(0, self.shape[0])

    def blocks(self, cells: int = BLOCK_CELLS) -> Iterator[tuple[slice, Floats]]:
        """Walk the matrix in blocks of whole rows: pairs of a row slice and its values."""
        height = max(1, cells // self.shape[1])
        for first in range(0, self.shape[0], height):
            last = min(first + height, self.shape[0])
            yield slice(first, last), self._block(first, last)

    def save(self, path: str | Path) -> None:
        """Write the completion to a `.npz` file; `load` gives it back."""
        arrays = {f"memory:{k}": v for k, v in self.memory.items() if isinstance(v, np.ndarray)}
        plain = {k: v for k, v in self.memory.items() if not isinstance(v, np.ndarray)}
        head = {
            "status": self.status.name,
            "gap": self.gap,
            "clip": self.clip,
            "labels": None if self.labels is None else [list(map(_plain, s)) for s in self.labels],
            "memory": {key: _plain(value) for key, value in plain.items()},
        }
        np.savez(
            path,
            allow_pickle=False,
            left=self.left,
            right=self.right,
            offset=self.centre.offset,
            row_effects=self.centre.rows,
            col_effects=self.centre.cols,
            head=np.array(json.dumps(head)),
            **arrays,
        )

    @classmethod
    def load(cls, path: str | Path) -> Completion:
        """Read a completion that `save` wrote."""
        with np.load(path, allow_pickle=False) as stored:
            head = json.loads(str(stored["head"]))
            arrays = {k.removeprefix("memory:"): stored[k] for k in stored if k.startswith("memory:")}
            return cls(
                stored["left"],
                stored["right"],
                Centre(float(stored["offset"]), stored["row_effects"], stored["col_effects"]),
                Status[head["status"]],
                head["gap"],
                None if head["clip"] is None else (head["clip"][0], head["clip"][1]),
                None if head["labels"] is None else (head["labels"][0], head["labels"][1]),
                head["memory"] | arrays,
            )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by the constructor's arguments (a read-only mapping does not pickle)."""
        state = (self.left, self.right, self.centre, self.status, self.gap, self.clip, self.labels)
        return Completion, (*state, dict(self.memory))

    def _block(self, first: int, last: int) -> Floats:
        centre = self.centre.at(np.arange(first, last)[:, None], np.arange(self.shape[1])[None, :])
        return self._clipped(self.left[first:last] @ self.right.T + centre)

    def _clipped(self, values: Floats) -> Floats:
        return values if self.clip is None else np.clip(values, *self.clip)


def check_start(observations: Observations, start: Completion | None) -> None:
    """Refuse a start that is not a completion of a matrix of the observations' shape."""
    if start is None:
        return
    if not isinstance(start, Completion):
        raise InvalidType(
            f"start is a {type(start).__name__}; it must be a Completion, as `fit` gives, or None."
        )
    if start.shape != observations.shape:
        raise InvalidInput(
            f"start has shape {start.shape} and the observations have shape {observations.shape}; "
            "start from a completion of the same matrix, or pass start=None."
        )


def empty_completion(observations: Observations) -> Completion:
    """Give what is known without answers: the middle of the scale everywhere, or zero.

    >>> from malocate import Observations
    >>> done = empty_completion(Observations([], [], [], shape=(2, 3), scale=(1, 5)))
    >>> done.predict(0, 0).item(), done.rank, done.status.name
    (3.0, 0, 'EMPTY')
    """
    low, high = observations.scale or (0.0, 0.0)
    left, right = (np.zeros((side, 0)) for side in observations.shape)
    centre = Centre(low + (high - low) / 2)
    return Completion(left, right, centre, Status.EMPTY, labels=observations.labels)


def _within(index: npt.ArrayLike, size: int, name: str) -> Indices:
    array = np.asarray(index)
    if array.size and array.dtype.kind not in "iu":
        raise InvalidInput(f"{name} has dtype {array.dtype}; predict takes integer indices.")
    array = array.astype(np.int64)
    if array.size and (array.min() < 0 or array.max() >= size):
        worst = array.min() if array.min() < 0 else array.max()
        raise InvalidInput(f"{name} holds {worst}; this completion has {name} 0 to {size - 1}.")
    return array


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
