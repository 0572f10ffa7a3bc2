"""Anything that answers as a source: a source itself, or a function of rows and columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from malocate.errors import InvalidInput, InvalidType
from malocate.problem import checks
from malocate.problem.arrays import Floats
from malocate.sources.base import Asked, Source
from malocate.sources.keyed import Key


@dataclass(frozen=True)
class Answers:
    """A function of rows and columns as a source; the same run gets the same only if it does.

    >>> import numpy as np
    >>> source = Answers(lambda rows, cols: rows + 10 * cols, shape=(3, 2))
    >>> source.answer(Asked(*np.array([[2, 0], [1, 1], [0, 1], [0, 0]])), "a run").tolist()
    [12.0, 10.0]
    """

    function: Callable[..., ArrayLike]
    shape: tuple[int, int]
    truth: Floats | None = None

    def answer(self, asked: Asked, *_: Key) -> Floats:
        """Call the function with the rows and columns asked."""
        values = checks.column(self.function(asked.rows, asked.cols), "What the function answers")
        if len(values) != len(asked):
            raise InvalidInput(
                f"The function gave {len(values)} answers to {len(asked)} draws; it gets arrays of"
                " rows and columns and must give one answer for each."
            )
        return checks.answers(values, None, "What the function answers")


def as_source(thing: Any, shape: tuple[int, int]) -> Source:
    """Give a source of this shape: a source as it is, or a function f(rows, cols) → answers.

    >>> as_source(lambda rows, cols: rows + cols, shape=(3, 2)).shape
    (3, 2)
    """
    if isinstance(thing, type):
        raise InvalidType(f"The source is the class {thing.__name__} itself; give one of its kind.")
    if callable(getattr(thing, "answer", None)):
        return _checked(thing, checks.shape_of(shape))
    if callable(thing):
        return Answers(thing, checks.shape_of(shape))
    raise InvalidType(
        f"The source is {checks.a(thing)}; it must be a source, such as Synthetic or Replay,"
        " or a function of rows and columns."
    )


@dataclass(frozen=True, eq=False)
class Known:
    """A source with a truth that was found for it: none, or an array made of its own."""

    source: Any
    shape: tuple[int, int]
    truth: Floats | None

    def answer(self, asked: Asked, *key: Key) -> Floats:
        """Give the source's answers."""
        answers: Floats = self.source.answer(asked, *key)
        return answers


def _checked(source: Any, shape: tuple[int, int]) -> Source:
    """Give a source whose shape is the segment's and whose truth, where it has one, fits it."""
    if not hasattr(source, "shape"):
        raise InvalidType(f"The source, {checks.a(source)}, has no `shape`; give it one: {shape}.")
    own = checks.shape_of(source.shape)
    if own != shape:
        raise InvalidInput(
            f"The source has shape {own}, the segment {shape}; make the segment with"
            " `source.segment(name)`."
        )
    truth = _truth(source, shape)
    same: Source = source
    return same if hasattr(source, "truth") and source.truth is truth else Known(same, own, truth)


def _truth(source: Any, shape: tuple[int, int]) -> Floats | None:
    truth = getattr(source, "truth", None)
    if truth is None:
        return None
    name = "The source's truth"
    array = checks.array_of(truth, name, f"the segment has shape {shape}")
    checks.real(array, name)
    if array.shape != shape:
        raise InvalidInput(f"{name} has shape {array.shape}; the segment has {shape}.")
    return truth if isinstance(truth, np.ndarray) else array
