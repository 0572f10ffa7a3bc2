"""CSV: texts with commas, semicolons or tabs between them."""

from __future__ import annotations

import codecs
import csv
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from malocate.errors import InvalidInput
from malocate.files.table import Table
from malocate.problem.arrays import Int64s
from malocate.problem.collecting import not_collecting

if TYPE_CHECKING:
    import pandas as pd

MARKS = {",": "commas", ";": "semicolons", "\t": "tabs"}
MANY = 100_000
"""Letters from which on it pays to find out whether a file is plain."""

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
        if _is_plain(text, mark, len(header), skipped + 1):
            frame, lines = _fast(text, mark, len(header), skipped + 1)
        else:
            frame, lines = _slow(reader, len(header), skipped)
    except csv.Error as problem:
        where = reader.line_num + skipped
        raise InvalidInput(f"line {where}: it is no CSV ({problem}).") from None
    if not header:
        raise InvalidInput(f"{source} is empty; its first line must name the columns.")
    frame.columns = pd.Index(header)
    return Table(frame, lines, source, f"CSV with {MARKS.get(mark, mark)}")


def _is_plain(text: str, mark: str, width: int, before: int) -> bool:
    """Say whether a long file has nothing in quotes and as many cells in each line as in the first.

    Of all others, line by line is the way to tell where the mistake is.
    """
    odd = any(each in text for each in '"\0') or text.count("\r") != text.count("\r\n")
    if len(text) < MANY or mark not in MARKS or width < 2 or odd:
        return False
    letters = np.frombuffer(text.encode(), np.uint8)
    ends = np.flatnonzero(letters == ord("\n"))
    if not text.endswith("\n"):
        ends = np.append(ends, len(letters))
    marks = np.searchsorted(np.flatnonzero(letters == ord(mark)), ends)
    own = np.diff(marks)[before - 1 :]
    return len(own) > 0 and bool((own == width - 1).all())


def _fast(text: str, mark: str, width: int, before: int) -> tuple[pd.DataFrame, Int64s]:
    """Read a plain file by columns, each distinct cell once; leave out the blank rows."""
    import pandas as pd

    frame = pd.read_csv(
        io.StringIO(text), sep=mark, header=None, names=range(width), skiprows=before,
        dtype=object, na_filter=False, quoting=csv.QUOTE_NONE, skip_blank_lines=False,
        low_memory=False,
    )  # fmt: skip
    columns = {}
    blank = np.ones(len(frame), bool)
    for each in frame:
        codes, distinct = pd.factorize(frame[each])
        columns[each] = pd.Categorical.from_codes(codes, pd.Index(distinct, dtype=object))
        blank &= np.array([not cell.strip() for cell in distinct], bool)[codes]
    lines = np.arange(before + 1, before + 1 + len(frame))
    return pd.DataFrame(columns)[~blank].reset_index(drop=True), lines[~blank]


def _slow(reader: Iterator[list[str]], width: int, skipped: int) -> tuple[pd.DataFrame, Int64s]:
    """Read a file line by line."""
    import pandas as pd

    with not_collecting():
        rows, lines = _rows(reader, width, skipped)
        columns = list(zip(*rows, strict=True)) or [()] * width
    frame = pd.DataFrame({at: pd.Series(each, dtype=object) for at, each in enumerate(columns)})
    return frame, np.array(lines, np.int64)


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
