"""Lines of a table, and mistakes that are told with the number of their line."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from malocate.errors import InvalidInput, MalocateError
from malocate.files.codebook import text_of
from malocate.problem.arrays import Bools, Int64s
from malocate.problem.counting import counted

MOST = 6
"""How many mistakes are told one by one."""


@dataclass(frozen=True)
class Line:
    """One line of a table, and its number in the file.

    >>> Line(7, {"row": " Al ", "value": 4.0}).text("value")
    '4'
    """

    number: int
    cells: dict[str, Any]

    def text(self, name: str) -> str:
        """Give a cell as text without blanks around it; empty where there is no such column."""
        return text_of(self.cells.get(name))


@contextmanager
def told_at(number: int) -> Iterator[None]:
    """Name the line in whatever error there is."""
    try:
        yield
    except MalocateError as problem:
        raise type(problem)(f"line {number}: {problem}") from None


def number(text: str, name: str) -> float:
    """Read a text that must be a finite number."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InvalidInput(no_number(text, name))
    return value


def no_number(text: str, name: str) -> str:
    """Say that a text is no number, and how to write it where that can be told."""
    way = f"; write {text.replace(',', '.')}" if text.count(",") == 1 else ""
    return f"{name} is {text!r}, which is no number{way}."


class Mistakes:
    """Mistakes in a file, by line: the first are told, the others counted.

    >>> found = Mistakes()
    >>> found.add(812, "rating 9 is outside 1–5.")
    >>> found.refuse()
    Traceback (most recent call last):
    malocate.errors.InvalidInput: line 812: rating 9 is outside 1–5.
    """

    def __init__(self) -> None:
        self._told: list[tuple[int, str]] = []
        self._lines: set[int] = set()

    def add(self, line: int, sentence: str) -> None:
        """Note one mistake."""
        self._told.append((line, sentence))
        self._lines.add(line)

    def add_where(self, wrong: Bools, lines: Int64s, sentence: Callable[[int], str]) -> None:
        """Note a mistake at each place that is wrong; `sentence` says what is wrong at a place."""
        places = np.flatnonzero(wrong)
        self._told += [(int(lines[place]), sentence(int(place))) for place in places[: MOST + 1]]
        self._lines.update(lines[places].tolist())

    def refuse(self) -> None:
        """Raise what was found, in the order of lines; do nothing where nothing is wrong."""
        if not self._lines:
            return
        told = [f"line {line}: {sentence}" for line, sentence in sorted(self._told)[:MOST]]
        shown = {line for line, _ in sorted(self._told)[:MOST]}
        more = len(self._lines - shown)
        if more:
            told.append(f"and {counted(more, 'more line')} with mistakes.")
        raise InvalidInput("\n".join(told))
