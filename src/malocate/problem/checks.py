"""Refusals: every rule an `Observations` keeps, each with the sentence that names the place."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from malocate.errors import InvalidInput, InvalidType
from malocate.problem.arrays import Bools, Floats, Int32s, frozen

Labels = tuple[tuple[Any, ...], tuple[Any, ...]]

_LARGEST = 1e100  # beyond it, sums of squares of many answers would overflow
_LONGEST_SIDE = 100_000_000  # row pointers of a longer side would take gigabytes


def frame_of(shape: object, scale: object, labels: object, mask: Any) -> dict[str, Any]:
    """Give what all answers share: the checked shape, scale, labels and mask."""
    sides = shape_of(shape)
    return {
        "shape": sides,
        "scale": scale_of(scale),
        "labels": labels_of(labels, sides),
        "mask": mask_of(mask, sides),
    }


def shape_of(shape: object) -> tuple[int, int]:
    """Give `shape` as two positive integers."""
    sides = tuple(shape) if isinstance(shape, Iterable) else ()
    if len(sides) != 2 or any(isinstance(side, bool | np.bool_) for side in sides):
        raise InvalidInput(f"shape is {shape!r}; it must be two integers, (rows, columns).")
    try:
        d1, d2 = (operator.index(side) for side in sides)
    except TypeError:
        raise InvalidType(f"shape is {shape!r}; both sides must be integers.") from None
    if min(d1, d2) < 1:
        raise InvalidInput(f"shape is {(d1, d2)}; both sides must be at least 1.")
    if max(d1, d2) > _LONGEST_SIDE:
        raise InvalidInput(f"shape is {(d1, d2)}; a side can be at most {_LONGEST_SIDE:,}.")
    return d1, d2


def scale_of(scale: object) -> tuple[float, float] | None:
    """Give the least and the largest answer that can be given, or None when none is declared."""
    if scale is None:
        return None
    ends = tuple(scale) if isinstance(scale, Iterable) else ()
    numbers = all(isinstance(end, Real) and not isinstance(end, bool | np.bool_) for end in ends)
    if len(ends) != 2 or not numbers:
        raise InvalidType(f"scale is {scale!r}; it must be two numbers, (least, largest).")
    least, largest = float(ends[0]), float(ends[1])
    if not -_LARGEST <= least < largest <= _LARGEST:
        raise InvalidInput(
            f"scale is ({shown(least)}, {shown(largest)}); it must be two finite numbers,"
            " the least answer below the largest."
        )
    return least, largest


def column(data: Any, name: str) -> NDArray[Any]:
    """Give one argument as a one-dimensional array, not yet copied."""
    if isinstance(data, np.ma.MaskedArray):
        raise InvalidType(f"{name} is a masked array; pass only the unmasked answers.")
    try:
        array = np.asarray(data)
    except ValueError:
        raise InvalidInput(f"{name} is a ragged list; it must be one-dimensional.") from None
    if array.ndim != 1:
        raise InvalidInput(
            f"{name} has {array.ndim} dimensions, shape {array.shape}; it must be one-dimensional."
        )
    return array


def columns_of(optional: dict[str, ArrayLike | None], **needed: ArrayLike) -> dict[str, Any]:
    """Give the arguments as one-dimensional arrays of one length; what is not given is None."""
    columns: dict[str, NDArray[Any] | None] = {}
    for name, data in (needed | optional).items():
        left_out = data is None and name in optional
        columns[name] = None if left_out else column(data, name)
    lengths = {name: array.size for name, array in columns.items() if array is not None}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {size:,}" for name, size in lengths.items())
        raise InvalidInput(f"The lengths differ: {listed}; there must be one of each per answer.")
    return columns


def indices(array: NDArray[Any], name: str, shape: tuple[int, int]) -> Int32s:
    """Give row or column numbers as a frozen copy of 32-bit integers inside the shape."""
    side, end = ("rows", shape[0]) if name == "rows" else ("columns", shape[1])
    whole(array, name)
    if array.size and not (0 <= array.min() and array.max() < end):
        place = int(np.argmax((array < 0) | (array >= end)))
        raise InvalidInput(
            f"{name}[{place}] is {array[place]}; shape {shape} has {side} 0 to {end - 1}."
        )
    return frozen(array.astype(np.int32))


def whole(array: NDArray[Any], name: str) -> None:
    """Refuse anything but integers, whole floats included."""
    if array.dtype.kind in "iu" or array.size == 0:
        return
    hint = "; cast whole floats with .astype(int)" if array.dtype.kind == "f" else ""
    raise InvalidType(f"{name} has dtype {array.dtype}; it must hold integers{hint}.")


def answers(
    array: NDArray[Any],
    scale: tuple[float, float] | None,
    name: str = "values",
    where: Callable[[int], str] | None = None,
) -> Floats:
    """Give the answers as a frozen copy of finite 64-bit floats on the scale.

    A refusal calls the array `name` and says where an answer stands by `where(its place)`.
    """
    real(array, name)
    if array.size == 0:
        return frozen(np.empty(0))
    values: Floats = np.add(array, 0.0, dtype=np.float64)  # a copy, in which -0.0 became 0.0
    least, largest = scale or (-_LARGEST, _LARGEST)
    if not (least <= values.min() and values.max() <= largest):
        place = int(np.argmax(~((values >= least) & (values <= largest))))
        refuse_answer(where(place) if where else f"{name}[{place}]", float(values[place]), scale)
    return frozen(values)


def real(array: NDArray[Any], name: str) -> None:
    """Refuse anything but real numbers: booleans, text, objects, complex numbers, dates."""
    if array.dtype.kind not in "iuf" and array.size:
        raise InvalidType(f"{name} has dtype {array.dtype}; it must hold real numbers.")


def refuse_answer(where: str, value: float, scale: tuple[float, float] | None) -> None:
    """Say why `value` is not an answer."""
    if not math.isfinite(value):
        rule = "an answer must be finite; drop unanswered asks before."
    elif scale is None:
        rule = f"an answer must be between -{_LARGEST:g} and {_LARGEST:g}."
    else:
        rule = f"the scale is {shown(scale[0])} to {shown(scale[1])}."
    raise InvalidInput(f"{where} is {shown(value)}; {rule}")


def labels_of(labels: object, shape: tuple[int, int]) -> Labels | None:
    """Give the labels of rows and columns as two tuples, as long as the sides, without repeats."""
    pair = label_lists(labels)
    if pair is None:
        return None
    return _side_labels(pair[0], "row", shape[0]), _side_labels(pair[1], "column", shape[1])


def label_lists(labels: Any) -> tuple[list[Any], list[Any]] | None:
    """Give the labels of rows and columns as two lists, or None when there are none."""
    if labels is None:
        return None
    sides = list(labels) if isinstance(labels, Iterable) else []
    if len(sides) != 2 or any(isinstance(e, str) or not isinstance(e, Iterable) for e in sides):
        raise InvalidType("labels must be two sequences, (row labels, column labels).")
    rows, cols = (side.tolist() if hasattr(side, "tolist") else list(side) for side in sides)
    return rows, cols


def _side_labels(labels: list[Any], side: str, length: int) -> tuple[Any, ...]:
    if len(labels) != length:
        raise InvalidInput(
            f"There are {len(labels):,} {side} labels for {length:,} {side}s; give one per {side}."
        )
    seen: dict[Any, int] = {}
    for place, label in enumerate(labels):
        if _missing(label, f"{side} label {place}"):
            raise InvalidInput(f"{side} label {place} is missing; every {side} needs a label.")
        if seen.setdefault(label, place) != place:
            raise InvalidInput(
                f"{side} label {label!r} stands at {seen[label]} and at {place};"
                " labels must not repeat."
            )
    return tuple(labels)


def _missing(label: Any, name: str) -> bool:
    """Tell whether a label is None or not a number; refuse one that cannot be looked up."""
    try:
        hash(label)
        return label is None or bool(label != label)
    except TypeError:
        raise InvalidType(f"{name} is {label!r}; a label must be hashable.") from None


def mask_of(mask: ArrayLike | None, shape: tuple[int, int]) -> Bools | None:
    """Give the mask of cells that cannot be asked as a frozen copy."""
    if mask is None:
        return None
    array = np.asarray(mask)
    if array.dtype != np.bool_:
        raise InvalidType(f"mask has dtype {array.dtype}; it must be boolean (True: not askable).")
    if array.shape != shape:
        raise InvalidInput(f"mask has shape {array.shape}; the matrix has shape {shape}.")
    return frozen(array.copy())


def askable(rows: Int32s, cols: Int32s, mask: Bools | None) -> None:
    """Refuse an answer at a cell that cannot be asked."""
    if mask is None:
        return
    masked = mask[rows, cols]
    if masked.any():
        place = int(np.argmax(masked))
        raise InvalidInput(
            f"Answer {place} is at cell ({rows[place]}, {cols[place]}), which the mask marks as"
            " not askable; drop the answer or unmask the cell."
        )


def probability_of(array: NDArray[Any] | None) -> Floats | None:
    """Give draw probabilities as a frozen copy of floats above 0 and at most 1."""
    if array is None:
        return None
    real(array, "probability")
    chances = array.astype(np.float64)
    if chances.size and not (chances.min() > 0 and chances.max() <= 1):
        place = int(np.argmax(~((chances > 0) & (chances <= 1))))
        raise InvalidInput(
            f"probability[{place}] is {shown(float(chances[place]))};"
            " it must be above 0 and at most 1."
        )
    return frozen(chances)


def shown(value: float) -> str:
    """Write a number in full, without a trailing `.0`.

    >>> shown(5.0), shown(0.1), shown(float("nan"))
    ('5', '0.1', 'nan')
    """
    return repr(float(value)).removesuffix(".0")
