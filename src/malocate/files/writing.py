"""Tables written to files of any form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from malocate.errors import InvalidInput
from malocate.files import parquet, sav, sheet
from malocate.files.codebook import Codebook
from malocate.files.forms import Form, form_to_write
from malocate.problem.plain import finite

if TYPE_CHECKING:
    import pandas as pd

_WRITERS = {Form.EXCEL: sheet.write, Form.PARQUET: parquet.write, Form.SPSS: sav.write}


def write_table(
    frame: pd.DataFrame,
    path: str | Path,
    *,
    codebook: Codebook | None = None,
    form: Form | None = None,
) -> None:
    """Write a frame; its name's ending says how: .csv, .xlsx, .parquet, .sav or .json.

    An earlier file of that name is replaced once the new one is whole. The codebook (labels of
    values, declared missing values) goes along, except into CSV and JSON, which have no place
    for it.

    >>> import tempfile, pandas as pd
    >>> from malocate.files import Variable, read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     frame = pd.DataFrame({"row": ["Al", "Bo"], "red wine": [4.0, 98.0]})
    ...     codes = {"red wine": Variable("", {98.0: "Refused"}, (98.0,))}
    ...     write_table(frame, f"{folder}/wines.sav", codebook=codes)
    ...     back = read_table(f"{folder}/wines.sav")
    >>> back.frame["red wine"].tolist(), back.codebook["red wine"].reason(98.0)
    ([4.0, 98.0], 'refused')
    """
    out = Path(path)
    chosen = form_to_write(out, form)
    check_place(out)
    part = out.with_name(f".{out.stem}.part{out.suffix}")
    try:
        if chosen in _WRITERS:
            _WRITERS[chosen](frame, part, codebook or {})
        else:
            part.write_text(as_text(frame, chosen), encoding="utf-8", newline="")
        part.replace(out)
    except OSError as problem:
        raise InvalidInput(f"{out} cannot be written: {problem.strerror}.") from None
    finally:
        part.unlink(missing_ok=True)


def check_place(out: Path) -> None:
    """Refuse a file that has no folder to be in."""
    if not out.parent.is_dir():
        raise InvalidInput(f"The folder of {out} does not exist; make it first.")
    if out.is_dir():
        raise InvalidInput(f"{out} is a folder; give a file.")


def as_text(frame: pd.DataFrame, form: Form) -> str:
    """Give a frame as CSV or JSON."""
    if form is Form.CSV:
        return str(frame.to_csv(index=False, lineterminator="\n"))
    rows = finite(frame.to_dict("records"), lambda _: None)
    return json.dumps(rows, indent=1, ensure_ascii=False, allow_nan=False, default=str) + "\n"
