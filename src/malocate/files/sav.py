"""SPSS files: numbers with labels, and codes that are declared to be no answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from malocate.errors import InvalidInput
from malocate.files.codebook import Code, Codebook, Range, Variable
from malocate.files.table import Table

if TYPE_CHECKING:
    import pandas as pd

OURS = "malocate"
"""The label of files that we wrote: there, a variable's title is the name of its column."""

RESERVED = {"ALL", "AND", "BY", "EQ", "GE", "GT", "LE", "LT", "NE", "NOT", "OR", "TO", "WITH"}
LONGEST_NAME = 60


def read(path: str) -> Table:
    """Read an SPSS file as it is, with its declared missing values; cases count from 1."""
    import pyreadstat

    try:
        frame, about = pyreadstat.read_sav(path, user_missing=True)
    except Exception as problem:  # noqa: BLE001  # its errors derive from nothing else
        raise InvalidInput(f"{path} is no SPSS file ({problem}).") from None
    titles = {name: title or "" for name, title in about.column_names_to_labels.items()}
    names = _called(list(frame.columns), titles) if about.file_label == OURS else {}
    codebook = {}
    for name in frame.columns:
        called = names.get(name, name)
        found = Variable(
            "" if name in names else titles.get(name, ""),
            {code: label for code, label in about.variable_value_labels.get(name, {}).items()},  # noqa: C416
            tuple(_missing(about.missing_ranges.get(name, []))),
        )
        if found != Variable():
            codebook[called] = found
    lines = np.arange(1, len(frame) + 1)
    return Table(frame.rename(columns=names), lines, path, "SPSS", codebook)


def write(frame: pd.DataFrame, path: Path, codebook: Codebook) -> None:
    """Write an SPSS file; names that SPSS does not take become titles."""
    import pyreadstat

    names = dict(zip(map(str, frame.columns), sav_names(map(str, frame.columns)), strict=True))
    plain = frame.set_axis(list(names.values()), axis=1)
    titles, labels, missing = {}, {}, {}
    for name, short in names.items():
        variable = codebook.get(name, Variable())
        plain[short], plain_labels = _column(plain[short], variable)
        titles[short] = name if short != name else variable.title
        if plain_labels:
            labels[short] = plain_labels
        if variable.missing:
            missing[short] = _ranges(name, variable)
    pyreadstat.write_sav(
        plain,
        path,
        file_label=OURS,
        column_labels={short: title for short, title in titles.items() if title},
        variable_value_labels=labels,
        missing_ranges=missing,
    )


def sav_names(names: Iterable[str]) -> list[str]:
    """Give names as SPSS takes them: letters, digits and _, none twice whatever the case.

    >>> sav_names(["rating", "rosé wine", "2nd", "Rating", "by"])
    ['rating', 'ros__wine', 'v_2nd', 'Rating_2', 'v_by']
    """
    taken: set[str] = set()
    found = []
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9_]", "_", name)[:LONGEST_NAME]
        if not plain or not plain[0].isalpha() or plain.upper() in RESERVED:
            plain = f"v_{plain}"
        free, count = plain, 2
        while free.upper() in taken:
            free, count = f"{plain}_{count}", count + 1
        taken.add(free.upper())
        found.append(free)
    return found


def _called(names: Sequence[str], titles: dict[str, str]) -> dict[str, str]:
    """Give the columns whose names had been shortened, with their names before."""
    whole = [titles[name] or name for name in names]
    shortened = zip(names, whole, sav_names(whole), strict=True)
    return {name: title for name, title, short in shortened if short == name != title}


def _missing(ranges: Sequence[Any]) -> list[Code | Range]:
    return [each["lo"] if each["lo"] == each["hi"] else (each["lo"], each["hi"]) for each in ranges]


def _ranges(name: str, variable: Variable) -> list[Any]:
    """Give declared missing values as SPSS can hold them: three codes, or a range and a code."""
    ranges = [each for each in variable.missing if isinstance(each, tuple)]
    codes = [each for each in variable.missing if not isinstance(each, tuple)]
    long = [each for each in codes if isinstance(each, str) and len(each.encode()) > 8]
    if len(ranges) > 1 or len(codes) > (1 if ranges else 3) or long:
        raise InvalidInput(
            f"{name!r} declares {variable.missing} as missing; SPSS takes three codes, or one "
            "range and one code, texts of 8 letters at most."
        )
    return [{"lo": low, "hi": high} for low, high in ranges] + codes


def _column(column: pd.Series[Any], variable: Variable) -> tuple[pd.Series[Any], dict[Any, str]]:
    """Give a column of texts or floats, and its labels; yes and no become labels."""
    import pandas as pd

    if pd.api.types.is_bool_dtype(column.dtype):
        return column.astype(float), {0.0: "no", 1.0: "yes"}
    if pd.api.types.is_numeric_dtype(column.dtype):
        return column.astype(float), dict(variable.labels)
    texts = column.astype(object)
    texts = texts.where(texts.notna(), "").map(str)
    return texts, dict(variable.labels)
