"""Files of answers and cells, read line by line: a mistake is told with the number of its line."""

from __future__ import annotations

import csv
import io
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from malocate.errors import InvalidInput, MalocateError


@dataclass(frozen=True)
class Line:
    """One line of a table, and its number in the file."""

    number: int
    cells: dict[str, Any]

    def text(self, name: str) -> str:
        """Give a cell as text without blanks around it; empty where there is no such column."""
        value = self.cells.get(name, "")
        return "" if value is None else str(value).strip()


@contextmanager
def told_at(number: int) -> Iterator[None]:
    """Name the line in whatever error there is."""
    try:
        yield
    except MalocateError as problem:
        raise type(problem)(f"line {number}: {problem}") from None


def read(path: str, needed: Sequence[str]) -> list[Line]:
    """Read a table that has the columns `needed`; "-" is the standard input, as CSV."""
    if Path(path).suffix.lower() == ".parquet":
        return _parquet(path, needed)
    return list(_csv(_text(path), path, needed))


def number(line: Line, name: str) -> float:
    """Read a cell that must be a finite number."""
    text = line.text(name)
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        way = f"; write {text.replace(',', '.')}" if text.count(",") == 1 else ""
        raise InvalidInput(f"{name} is {text!r}, which is no number{way}.")
    return value


def _csv(text: str, path: str, needed: Sequence[str]) -> Iterator[Line]:
    first = text.partition("\n")[0]
    reader = csv.reader(io.StringIO(text), delimiter=_delimiter(first), strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        _check_header(header, path, needed)
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(header):
                raise InvalidInput(
                    f"line {reader.line_num}: it has {len(cells)} cells, and the header "
                    f"{len(header)}; put cells that hold a comma into quotes."
                )
            yield Line(reader.line_num, dict(zip(header, cells, strict=True)))
    except csv.Error as problem:
        raise InvalidInput(f"line {reader.line_num}: it is no CSV ({problem}).") from None


def _delimiter(header: str) -> str:
    """Tell commas from the semicolons and tabs that spreadsheets write in some countries."""
    return max(",;\t", key=header.count)


def _check_header(header: Sequence[str], path: str, needed: Sequence[str]) -> None:
    for name in needed:
        if name not in header:
            near = get_close_matches(name, header, n=1)
            hint = f"is {near[0]!r} meant?" if near else f"it has {', '.join(header) or 'none'}."
            raise InvalidInput(f"{_called(path)} has no column {name!r} in its first line; {hint}")
    for name in header:
        if header.count(name) > 1 and name:
            raise InvalidInput(f"{_called(path)} has two columns {name!r}; leave one.")


def _called(path: str) -> str:
    return "The standard input" if path == "-" else path


def _text(path: str) -> str:
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        return data.decode("utf-8-sig")
    except OSError as problem:
        raise InvalidInput(f"{path} cannot be read: {problem.strerror}.") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{_called(path)} is not text in UTF-8; save it as that.") from None


def _parquet(path: str, needed: Sequence[str]) -> list[Line]:
    import pandas as pd

    from malocate.cli.campaign.tables import check_parquet

    check_parquet()
    try:
        frame = pd.read_parquet(path)
    except OSError as problem:
        raise InvalidInput(f"{path} cannot be read: {problem.strerror or problem}.") from None
    except ValueError as problem:
        raise InvalidInput(f"{path} is no Parquet file ({problem}).") from None
    _check_header([str(name) for name in frame.columns], path, needed)
    columns = {str(name): frame[name].tolist() for name in frame.columns}
    rows = zip(*columns.values(), strict=True)
    return [
        Line(place, dict(zip(columns, cells, strict=True)))
        for place, cells in enumerate(rows, start=1)
    ]
