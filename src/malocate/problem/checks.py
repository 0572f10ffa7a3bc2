"""Refusals: every rule an `Observations` keeps, each with the sentence that names the place.

The general ones (`array_of`, `integer`, `list_of`, `refuse_where`) serve the layers above too.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from numbers import Real
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from malocate.errors import InvalidInput, InvalidType
from malocate.problem.arrays import Bools, Floats, Int32s, frozen

Labels = tuple[tuple[Any, ...], tuple[Any, ...]]

Kind = TypeVar("Kind")

LONGEST_SIDE = 100_000_000
"""The most rows or columns; row pointers of a longer side would take gigabytes."""

LARGEST = 1e100
"""The largest answer without a scale; beyond it, sums of squares of many would overflow."""

_EXACT = 2.0**53  # beyond it, a float need not be the whole number that was meant


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
    if max(d1, d2) > LONGEST_SIDE:
        raise InvalidInput(f"shape is {(d1, d2)}; a side can be at most {LONGEST_SIDE:,}.")
    return d1, d2


def scale_of(scale: object) -> tuple[float, float] | None:
    """Give the least and the largest answer that can be given, or None when none is declared."""
    if scale is None:
        return None
    ends = tuple(scale) if isinstance(scale, Iterable) else ()
    numbers = all(isinstance(end, Real) and not isinstance(end, bool | np.bool_) for end in ends)
    if len(ends) != 2 or not numbers:
        raise InvalidType(f"scale is {scale!r}; it must be two numbers, (least, largest).")
    if not -LARGEST <= ends[0] < ends[1] <= LARGEST:
        raise InvalidInput(
            f"scale is ({shown(ends[0])}, {shown(ends[1])}); it must be two finite numbers,"
            " the least answer below the largest."
        )
    return float(ends[0]), float(ends[1])


def array_of(data: Any, name: str, rule: str) -> NDArray[Any]:
    """Give one argument as an array, not yet copied; `rule` says what a ragged list breaks."""
    try:
        return np.asarray(data)
    except ValueError:
        raise InvalidInput(f"{name} is a ragged list; {rule}.") from None


def integer(value: Any, name: str) -> int:
    """Give one argument as a plain integer."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    raise InvalidType(f"{name} is {value!r}; it must be an integer.")


def number(value: Any, name: str) -> float:
    """Give one argument as a float."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidType(f"{name} is {value!r}; it must be a number.")
    return float(value)


def list_of(things: Any, kind: type[Kind], name: str) -> list[Kind]:
    """Give things of one kind as a list."""
    if not isinstance(things, Iterable):
        raise InvalidType(f"{name} is {a(things)}; it must be a list of {kind.__name__}.")
    found = list(things)
    for place, each in enumerate(found):
        if not isinstance(each, kind):
            raise InvalidType(f"{name}[{place}] is {a(each)}, not an {kind.__name__}.")
    return found


def a(thing: object) -> str:
    """Name the type of a thing, with its article.

    >>> a(3), a("text")
    ('an int', 'a str')
    """
    name = type(thing).__name__
    return f"{'an' if name[0] in 'aeioAEIO' else 'a'} {name}"


def refuse_where(wrong: NDArray[np.bool_], array: NDArray[Any], name: str, rule: str) -> None:
    """Refuse an array by the first place that is wrong, what stands there and the rule."""
    if wrong.any():
        place = np.unravel_index(int(np.argmax(wrong)), wrong.shape)
        listed = ", ".join(str(each) for each in place)
        raise InvalidInput(f"{name}[{listed}] is {shown(array[place])}; {rule}.")


def column(data: Any, name: str) -> NDArray[Any]:
    """Give one argument as a one-dimensional array, not yet copied."""
    if isinstance(data, np.ma.MaskedArray):
        raise InvalidType(f"{name} is a masked array; pass only the unmasked answers.")
    array = array_of(data, name, "it must be one-dimensional")
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
        rule = f"shape {shape} has {side} 0 to {end - 1}"
        refuse_where((array < 0) | (array >= end), array, name, rule)
    return frozen(array.astype(np.int32))


def whole(array: NDArray[Any], name: str) -> None:
    """Refuse anything but integers, whole floats included."""
    if array.dtype.kind in "iu" or array.size == 0:
        return
    hint = "; cast whole floats with .astype(int)" if array.dtype.kind == "f" else ""
    raise InvalidType(f"{name} has dtype {array.dtype}; it must hold integers{hint}.")


def whole_numbers(array: NDArray[Any], name: str, rule: str) -> NDArray[Any]:
    """Give whole floats, as which pandas and scikit-learn hand integers on, as integers."""
    if array.dtype.kind != "f":
        return array
    rule_for_large = f"a float stands for a whole number up to {_EXACT:.0f} only"
    refuse_where(~(array == np.floor(array)), array, name, rule)
    refuse_where(np.abs(array) > _EXACT, array, name, rule_for_large)
    return array.astype(np.int64)


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
    least, largest = scale or (-LARGEST, LARGEST)
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
        rule = f"an answer must be between -{LARGEST:g} and {LARGEST:g}."
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
    for side, each in (("row", rows), ("column", cols)):
        for place, label in enumerate(each):
            hashable(label, f"{side} label {place}")
    return rows, cols


def hashable(label: Any, name: str) -> None:
    """Refuse a label that cannot be looked up."""
    try:
        hash(label)
    except TypeError:
        raise InvalidType(f"{name} is {label!r}; a label must be hashable.") from None


def _side_labels(labels: list[Any], side: str, length: int) -> tuple[Any, ...]:
    if len(labels) != length:
        raise InvalidInput(
            f"There are {len(labels):,} {side} labels for {length:,} {side}s; give one per {side}."
        )
    seen: dict[Any, int] = {}
    for place, label in enumerate(labels):
        if _missing(label):
            raise InvalidInput(f"{side} label {place} is missing; every {side} needs a label.")
        if seen.setdefault(label, place) != place:
            raise InvalidInput(
                f"{side} label {label!r} stands at {seen[label]} and at {place};"
                " labels must not repeat."
            )
    return tuple(labels)


def _missing(label: Any) -> bool:
    try:
        return label is None or bool(label != label)
    except TypeError:  # pandas' NA does not tell whether it equals itself
        return True


def mask_of(mask: ArrayLike | None, shape: tuple[int, int]) -> Bools | None:
    """Give the mask of cells that cannot be asked as a frozen copy."""
    if mask is None:
        return None
    array = array_of(mask, "mask", f"the matrix has shape {shape}")
    if array.dtype != np.bool_:
        raise InvalidType(f"mask has dtype {array.dtype}; it must be boolean (True: not askable).")
    if array.shape != shape:
        raise InvalidInput(f"mask has shape {array.shape}; the matrix has shape {shape}.")
    return frozen(array.copy())


def count_askable(shape: tuple[int, int], mask: Bools | None) -> int:
    """Count the cells that can be asked: all but the masked ones."""
    return shape[0] * shape[1] - (0 if mask is None else int(np.count_nonzero(mask)))


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
        outside = ~((chances > 0) & (chances <= 1))
        refuse_where(outside, chances, "probability", "it must be above 0 and at most 1")
    return frozen(chances)


def shown(value: Any) -> str:
    """Write a number in full, without a trailing `.0`.

    >>> shown(5.0), shown(0.1), shown(float("nan"))
    ('5', '0.1', 'nan')
    """
    return str(value).removesuffix(".0")
