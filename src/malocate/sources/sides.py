"""Numbers for each row or column: how noisy it is, how likely it is asked."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from malocate.errors import InvalidInput
from malocate.problem.arrays import Floats


def per_line(name: str, given: ArrayLike, length: int) -> Floats:
    """Give one number of at least 0 for each of `length` rows or columns."""
    numbers = np.asarray(given, dtype=np.float64)
    if numbers.shape != (length,):
        raise InvalidInput(f"`{name}` has shape {numbers.shape}; it must be {(length,)}.")
    if not (np.isfinite(numbers).all() and numbers.min() >= 0):
        raise InvalidInput(f"`{name}` must be finite and at least 0.")
    return numbers


def shares_of(weights: ArrayLike, n_rows: int) -> Floats:
    """Give the chances with which rows are drawn in proportion to their weights."""
    numbers = per_line("row_weights", weights, n_rows)
    if not numbers.any():
        raise InvalidInput("`row_weights` must be at least 0, and not all 0.")
    return numbers / float(numbers.sum())
