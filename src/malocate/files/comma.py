"""CSV: texts with commas, semicolons or tabs between them."""

from __future__ import annotations

import codecs
import csv
import io
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from malocate.errors import InvalidInput
from malocate.files.table import Table
from malocate.problem.collecting import not_collecting

MARKS = {",": "commas", ";": "semicolons", "\t": "tabs"}
Rows = tuple[list[list[str]], list[int]]


def read(path: str, encoding: str | None) -> Table:
    """Read a CSV file, or the standard input; its first line names the columns."""
    import pandas as pd

    source = "The standard input" if path == "-" else path
    text = _text(path, source, encoding)
    skipped, mark = _mark(text)
    reader = csv.reader(_lines(text, skipped), delimiter=mark, strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        with not_collecting():
            rows, lines = _rows(reader, len(header), skipped)
            columns = list(zip(*rows, strict=True)) or [()] * len(header)
    except csv.Error as problem:
        where = reader.line_num + skipped
        raise InvalidInput(f"line {where}: it is no CSV ({problem}).") from None
    if not header:
        raise InvalidInput(f"{source} is empty; its first line must name the columns.")
    frame = pd.DataFrame({at: pd.Series(each, dtype=object) for at, each in enumerate(columns)})
    frame.columns = pd.Index(header)
    return Table(frame, np.array(lines, np.int64), source, f"CSV with {MARKS.get(mark, mark)}")


def _rows(reader: Iterator[list[str]], width: int, skipped: int) -> Rows:
    """Give the rows that are not blank, and the line in the file where each ends."""
    rows, lines = [], []
    for cells in reader:
        line = reader.line_num + skipped  # type: ignore[attr-defined]
        if len(cells) != width:
            if not any(cell.strip() for cell in cells):
                continue
            raise InvalidInput(
                f"line {line}: it has {len(cells)} cells, and the header {width}; put cells that "
                "hold the mark between cells into quotes."
            )
        if not cells[0].strip() and not any(cell.strip() for cell in cells):
            continue
        rows.append(cells)
        lines.append(line)
    return rows, lines


def _mark(text: str) -> tuple[int, str]:
    """Tell commas from the semicolons and tabs that spreadsheets write in some countries.

    Gives how many lines come before the header, too: Excel may have put `sep=;` there.
    """
    first = text.partition("\n")[0].strip("\r")
    if first.lower().startswith("sep=") and len(first) == 5:
        return 1, first[4]
    return 0, max(MARKS, key=first.count)


def _lines(text: str, skipped: int) -> io.StringIO:
    lines = io.StringIO(text, newline="")
    for _ in range(skipped):
        lines.readline()
    return lines


def _text(path: str, source: str, encoding: str | None) -> str:
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as problem:
        raise InvalidInput(f"{path} cannot be read: {problem.strerror}.") from None
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        return data.decode(encoding or ("utf-16" if wide else "utf-8-sig"))
    except LookupError:
        raise InvalidInput(f"There is no encoding {encoding!r}; try cp1252 or utf-8.") from None
    except UnicodeDecodeError:
        raise InvalidInput(
            f"{source} is not text in {encoding or 'UTF-8'}; save it as that, or name its encoding,"
            " such as cp1252."
        ) from None
