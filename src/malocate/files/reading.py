"""Tables read from files of any form."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from malocate.errors import InvalidInput
from malocate.files import comma, parquet, sav, sheet
from malocate.files.forms import Form, form_to_read
from malocate.files.table import Table


def read_table(
    path: str | Path,
    needed: Sequence[str] = (),
    *,
    sheet_name: str | None = None,
    encoding: str | None = None,
) -> Table:
    r"""Read a table that has the columns `needed`; "-" is the standard input, as CSV.

    The file's ending says what it is: .xlsx, .parquet, .sav; all others are CSV. `sheet_name`
    chooses a sheet of an Excel file, by default its first; `encoding` reads CSV that is no UTF-8.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "wines.csv")
    ...     _ = path.write_text("taster;wine;stars\nAl;red;4\n")
    ...     table = read_table(path, ["taster", "stars"])
    >>> table.frame.to_dict("records"), table.lines.tolist(), table.words
    ([{'taster': 'Al', 'wine': 'red', 'stars': '4'}], [2], 'CSV with semicolons')
    """
    name = str(path)
    form = form_to_read(name)
    table = comma.read(name, encoding) if form is Form.CSV else _read(name, form, sheet_name)
    table.need(needed)
    return table


def _read(name: str, form: Form, sheet_name: str | None) -> Table:
    try:
        with Path(name).open("rb"):
            pass
    except OSError as problem:
        raise InvalidInput(f"{name} cannot be read: {problem.strerror}.") from None
    if form is Form.EXCEL:
        return sheet.read(name, sheet_name)
    return parquet.read(name) if form is Form.PARQUET else sav.read(name)
