"""Excel workbooks; the codebook lies in a sheet of its own."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from malocate.errors import InvalidInput
from malocate.files.codebook import Codebook, Variable
from malocate.files.table import Table

if TYPE_CHECKING:
    import pandas as pd

CODES = "codebook"
HEADER = ("variable", "what", "from", "to", "label")
MOST_LINES = 1_048_575
"""Lines that a sheet can hold below its header."""


def read(path: str, name: str | None) -> Table:
    """Read one sheet; the number of a line is that which Excel shows."""
    from openpyxl import load_workbook
    from openpyxl.utils.exceptions import InvalidFileException

    try:
        book = load_workbook(path, read_only=True, data_only=True)
    except (InvalidFileException, BadZipFile, KeyError, ValueError) as problem:
        raise InvalidInput(f"{path} is no Excel workbook ({problem}).") from None
    try:
        names = [each for each in book.sheetnames if each != CODES]
        chosen = _chosen(path, names, name)
        header, rows, lines = _cells(book[chosen])
        codes = _codebook(book[CODES]) if CODES in book.sheetnames else {}
    finally:
        book.close()
    if not header:
        others = [repr(each) for each in names if each != chosen]
        way = f"; there is {', '.join(others)}, too" if others else "; its first line names columns"
        raise InvalidInput(f"Sheet {chosen!r} of {path} is empty{way}.")
    words = "Excel" if len(names) == 1 else f"sheet {chosen!r} of {', '.join(map(repr, names))}"
    return Table(_frame(header, rows), np.array(lines, np.int64), path, words, codes)


def _chosen(path: str, names: Sequence[str], name: str | None) -> str:
    if not names:
        raise InvalidInput(f"{path} has no sheet of answers.")
    if name is None:
        return names[0]
    if name not in names:
        raise InvalidInput(f"{path} has no sheet {name!r}; it has {', '.join(names)}.")
    return name


def _frame(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> pd.DataFrame:
    import pandas as pd

    columns = list(zip(*rows, strict=True)) or [()] * len(header)
    frame = pd.DataFrame(
        {place: pd.Series(cells, dtype=object) for place, cells in enumerate(columns)}
    )
    frame.columns = pd.Index(header)
    return frame


def _cells(sheet: Any) -> tuple[list[str], list[tuple[Any, ...]], list[int]]:
    """Give the header, and the lines below it that are not empty with their numbers."""
    sheet.reset_dimensions()  # what some programs write there is wrong
    filled = (
        (line, cells)
        for line, cells in enumerate(sheet.iter_rows(values_only=True), start=1)
        if any(cell is not None and cell != "" for cell in cells)
    )
    _, first = next(filled, (0, ()))
    header = ["" if cell is None else str(cell).strip() for cell in first]
    while header and not header[-1]:
        header.pop()
    rows, lines = [], []
    for line, cells in filled:
        rows.append(_fitted(cells, len(header), line))
        lines.append(line)
    return header, rows, lines


def _fitted(cells: tuple[Any, ...], width: int, line: int) -> tuple[Any, ...]:
    if any(cell is not None and cell != "" for cell in cells[width:]):
        raise InvalidInput(f"line {line}: it has a cell without a name above it in the header.")
    kept = tuple(str(cell) if isinstance(cell, bool) else cell for cell in cells[:width])
    return kept + (None,) * (width - len(cells))  # a truth value is a text: it equals 1 or 0


def _codebook(sheet: Any) -> Codebook:
    _, rows, _ = _cells(sheet)
    parts: dict[str, dict[str, Any]] = {}
    for row in rows:
        variable, what, low, high, label = row + (None,) * (len(HEADER) - len(row))
        found = parts.setdefault(str(variable), {"title": "", "labels": {}, "missing": ()})
        if what == "title":
            found["title"] = label or ""
        elif what == "label":
            found["labels"][_code(low)] = label or ""
        else:
            code = _code(low)
            found["missing"] += (code if high is None else (code, _code(high)),)
    return {name: Variable(**each) for name, each in parts.items()}


def _code(cell: Any) -> Any:
    return float(cell) if isinstance(cell, int) else "" if cell is None else cell


def write(frame: pd.DataFrame, path: Path, codebook: Codebook) -> None:
    """Write a workbook with one sheet, and one for the codebook if there is any."""
    from openpyxl import Workbook
    from openpyxl.utils.exceptions import IllegalCharacterError

    if len(frame) > MOST_LINES:
        raise InvalidInput(
            f"{path.name} would have {len(frame):,} lines; Excel holds {MOST_LINES:,}. Take .csv."
        )
    book = Workbook(write_only=True)
    try:
        columns = [frame[name].astype(object).tolist() for name in frame.columns]
        _fill(book.create_sheet("answers"), [list(frame.columns)], zip(*columns, strict=True))
        if codebook:
            _fill(book.create_sheet(CODES), [HEADER], _codes(codebook))
        book.save(path)
    except IllegalCharacterError as problem:
        book.close()
        raise InvalidInput(f"Excel cannot hold the text {str(problem)!r}; take .csv.") from None


def _fill(sheet: Any, header: Iterable[Sequence[Any]], rows: Iterable[Sequence[Any]]) -> None:
    sheet.freeze_panes = "A2"
    for row in header:
        sheet.append([_cell(sheet, str(value)) for value in row])
    for row in rows:
        sheet.append([_cell(sheet, value) for value in row])


def _cell(sheet: Any, value: Any) -> Any:
    """Give a cell's value; a text that begins with = stays a text, and is no formula."""
    from openpyxl.cell import WriteOnlyCell

    if isinstance(value, str) and value.startswith("="):
        cell = WriteOnlyCell(sheet, value)
        cell.data_type = "s"
        return cell
    if value is None or value != value:
        return None
    if isinstance(value, float) and math.isinf(value):
        return str(value)
    return value if isinstance(value, (str, int, float)) else str(value)


def _codes(codebook: Codebook) -> Iterator[tuple[Any, ...]]:
    for name, variable in codebook.items():
        yield name, "title", None, None, variable.title
        for code, label in variable.labels.items():
            yield name, "label", code, None, label
        for each in variable.missing:
            low, high = each if isinstance(each, tuple) else (each, None)
            yield name, "missing", low, high, None
