"""Tables for people and programs: to a file of any form, or printed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from malocate.errors import InvalidInput
from malocate.files import write_table
from malocate.files.forms import Form, form_to_write
from malocate.files.writing import as_text, check_place
from malocate.problem.plain import finite

if TYPE_CHECKING:
    import pandas as pd

PRINTED = (Form.CSV, Form.JSON)


def check_out(out: Path | None, form: Form | None) -> Form:
    """Give the form that was chosen, or that the file's name ends in; CSV without either.

    What could not be written in the end is refused at once.
    """
    if out is not None:
        chosen = form_to_write(out, form)
        check_place(out)
        return chosen
    if form is not None and form not in PRINTED:
        raise InvalidInput(f"{form.name.title()} is not for reading; write it to a file by --out.")
    return form or Form.CSV


def check_folder(out: Path, option: str) -> None:
    """Refuse a file that has no folder to be in."""
    if not out.parent.is_dir():
        raise InvalidInput(f"The folder of {option} {out} does not exist; make it first.")
    if out.is_dir():
        raise InvalidInput(f"{option} {out} is a folder; give a file.")


def write(frame: pd.DataFrame, out: Path | None, form: Form) -> None:
    """Write a frame to a file, which is replaced only by a whole one, or to standard output."""
    if out is None:
        sys.stdout.write(as_text(frame, form))
    else:
        write_table(frame, out, form=form)


def write_text(text: str, out: Path, option: str) -> None:
    """Write a text to a file, which is replaced only by a whole one."""
    part = out.with_name(f"{out.name}.part")
    try:
        part.write_text(text, encoding="utf-8", newline="")
        part.replace(out)
    except OSError as problem:
        part.unlink(missing_ok=True)
        raise InvalidInput(f"{option} {out} cannot be written: {problem.strerror}.") from None


def print_json(thing: Any) -> None:
    """Print plain values as JSON; what is infinite or not a number is null."""
    plain = finite(thing, lambda _: None)
    typer.echo(json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False, default=str))
