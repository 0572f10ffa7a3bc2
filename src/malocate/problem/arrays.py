"""Names for the kinds of arrays in use, and arrays closed to writing."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Index = slice | NDArray[Any]

Array = TypeVar("Array", bound=NDArray[Any])


def frozen(array: Array) -> Array:
    """Give the array, closed to writing."""
    array.flags.writeable = False
    return array


def read_only(array: Array) -> Array:
    """Give a view of the array that is closed to writing; the array itself is left as it is."""
    return frozen(array.view())


def restore(thing: object, state: dict[str, Any]) -> None:
    """Fill an unpickled object, its arrays closed to writing as they were."""
    for value in state.values():
        if isinstance(value, np.ndarray):
            frozen(value)
    vars(thing).update(state)
