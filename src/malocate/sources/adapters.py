"""Anything that answers as a source: a source itself, or a function of rows and columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

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
    if hasattr(thing, "answer"):
        source: Source = thing
        if tuple(source.shape) != tuple(shape):
            raise InvalidInput(
                f"The source has shape {tuple(source.shape)}, the segment {tuple(shape)}; make the"
                " segment with `source.segment(name)`."
            )
        return source
    if callable(thing):
        return Answers(thing, checks.shape_of(shape))
    raise InvalidType(
        f"The source is {checks.a(thing)}; it must be a source, such as Synthetic or Replay,"
        " or a function of rows and columns."
    )
