"""Frames written for people and programs: CSV, Parquet or JSON."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from malocate.errors import InvalidInput, MissingDependency
from malocate.problem.plain import finite

if TYPE_CHECKING:
    import pandas as pd


class Form(StrEnum):
    """How a table is written."""

    CSV = "csv"
    PARQUET = "parquet"
    JSON = "json"


def form_of(out: Path | None, form: Form | None) -> Form:
    """Give the form that was chosen, or that the file's name ends in; CSV without either."""
    if form is None and out is not None:
        endings = [each.value for each in Form]
        ending = out.suffix.lower().lstrip(".")
        if ending not in endings:
            raise InvalidInput(f"--out {out} must end in .csv, .parquet or .json, or say --format.")
        form = Form(ending)
    if form is Form.PARQUET:
        check_parquet()
        if out is None:
            raise InvalidInput("Parquet is not for reading; write it to a file by --out.")
    return form or Form.CSV


def check_folder(out: Path | None) -> None:
    """Refuse a file that has no folder to be in."""
    if out is not None and not out.parent.is_dir():
        raise InvalidInput(f"The folder of --out {out} does not exist; make it first.")
    if out is not None and out.is_dir():
        raise InvalidInput(f"--out {out} is a folder; give a file.")


def write(frame: pd.DataFrame, out: Path | None, form: Form) -> None:
    """Write a frame to a file, which is replaced only by a whole one, or to standard output."""
    if out is None:
        sys.stdout.write(_text(frame, form))
        return
    part = out.with_name(f"{out.name}.part")
    try:
        if form is Form.PARQUET:
            _arrowed(frame).to_parquet(part, index=False)
        else:
            part.write_text(_text(frame, form), encoding="utf-8", newline="")
        part.replace(out)
    except OSError as problem:
        part.unlink(missing_ok=True)
        raise InvalidInput(f"--out {out} cannot be written: {problem.strerror}.") from None


def print_json(thing: Any) -> None:
    """Print plain values as JSON; what is infinite or not a number is null."""
    plain = finite(thing, lambda _: None)
    typer.echo(json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False, default=str))


def check_parquet() -> None:
    """Say what is missing where Parquet cannot be read or written."""
    if find_spec("pyarrow") is None:
        raise MissingDependency(
            "Parquet needs pyarrow, which is not installed: pip install pyarrow"
        )


def _text(frame: pd.DataFrame, form: Form) -> str:
    if form is Form.CSV:
        return str(frame.to_csv(index=False, lineterminator="\n"))
    rows = finite(frame.to_dict("records"), lambda _: None)
    return json.dumps(rows, indent=1, ensure_ascii=False, allow_nan=False, default=str) + "\n"


def _arrowed(frame: pd.DataFrame) -> pd.DataFrame:
    """Give labels of mixed kinds as text: a column of Parquet holds one kind."""
    mixed = [
        name
        for name in frame.columns
        if frame[name].dtype == object and len(set(frame[name].dropna().map(type))) > 1
    ]
    return frame.astype(dict.fromkeys(mixed, str))
