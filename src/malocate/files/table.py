"""A table as it stands in a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING

from malocate.errors import InvalidInput
from malocate.files.codebook import Variable
from malocate.files.lines import Line
from malocate.problem.arrays import Int64s

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Table:
    """The cells of a file, the number of each line in it, and its codebook.

    Cells of a CSV file are texts; other files have numbers, too. `words` says how the file was
    read: which sheet, which mark between the cells.

    >>> import numpy as np, pandas as pd
    >>> frame = pd.DataFrame({"row": ["Al", "Bo"], "value": ["4", "5"]})
    >>> table = Table(frame, np.array([2, 3]), "wines.csv")
    >>> [line.text("row") for line in table.each()]
    ['Al', 'Bo']
    """

    frame: pd.DataFrame
    lines: Int64s
    source: str
    words: str = ""
    codebook: Mapping[str, Variable] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = self.names
        for name in names:
            if names.count(name) > 1 and name:
                raise InvalidInput(f"{self.source} has two columns {name!r}; leave one.")

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [str(name) for name in self.frame.columns]

    def need(self, names: Sequence[str]) -> None:
        """Refuse a table that lacks one of these columns."""
        have = self.names
        for name in names:
            if name not in have:
                near = get_close_matches(name, have, n=1)
                hint = f"is {near[0]!r} meant?" if near else f"it has {', '.join(have) or 'none'}."
                raise InvalidInput(
                    f"{self.source} has no column {name!r} in its first line; {hint}"
                )

    def each(self) -> Iterator[Line]:
        """Give the lines one by one."""
        names = self.names
        columns = [self.frame[name].tolist() for name in self.frame.columns]
        for line, *cells in zip(self.lines.tolist(), *columns, strict=True):
            yield Line(line, dict(zip(names, cells, strict=True)))
