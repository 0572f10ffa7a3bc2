"""The forms of files, and what must be installed for each."""

from __future__ import annotations

from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path

from malocate.errors import InvalidInput, MissingDependency


class Form(StrEnum):
    """How a table is kept in a file."""

    CSV = "csv"
    EXCEL = "xlsx"
    PARQUET = "parquet"
    SPSS = "sav"
    JSON = "json"


ENDINGS = {
    ".csv": Form.CSV,
    ".tsv": Form.CSV,
    ".txt": Form.CSV,
    ".xlsx": Form.EXCEL,
    ".parquet": Form.PARQUET,
    ".sav": Form.SPSS,
    ".json": Form.JSON,
}
NEEDS = {
    Form.EXCEL: ("openpyxl", "Excel", "excel"),
    Form.PARQUET: ("pyarrow", "Parquet", "parquet"),
    Form.SPSS: ("pyreadstat", "SPSS", "spss"),
}


def check_installed(form: Form) -> None:
    """Say what is missing where a form can neither be read nor written."""
    package, name, extra = NEEDS.get(form, ("", "", ""))
    if package and find_spec(package) is None:
        raise MissingDependency(
            f"{name} needs {package}, which is not installed: pip install 'malocate[{extra}]'"
        )


def form_to_read(path: str) -> Form:
    """Give the form that a file's name ends in; what is not known is read as CSV."""
    ending = Path(path).suffix.lower()
    if ending in (".xls", ".xlsb", ".ods"):
        raise InvalidInput(f"{path} ends in {ending}, which is not read; save it as .xlsx or .csv.")
    if ending == ".json":
        raise InvalidInput(f"{path} is JSON, which is not read as a table; give .csv or .xlsx.")
    form = ENDINGS.get(ending, Form.CSV)
    check_installed(form)
    return form


def form_to_write(path: Path, form: Form | None = None) -> Form:
    """Give the form that was chosen, or that the file's name ends in."""
    chosen = form or ENDINGS.get(path.suffix.lower())
    if chosen is None:
        raise InvalidInput(
            f"{path} must end in .csv, .xlsx, .parquet, .sav or .json, to say how it is written."
        )
    check_installed(chosen)
    return chosen
