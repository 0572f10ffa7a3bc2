"""Cells that are answers, or say why there is none."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from malocate.errors import InvalidInput
from malocate.files.codebook import EMPTY, Variable, known_reason, reason_of, text_of
from malocate.problem.arrays import Floats, Int64s

if TYPE_CHECKING:
    import pandas as pd

NOTHING = {"", ".", "-", "na", "n/a", "nan", "null", "none", "#n/a"}
"""Texts, without case, that programs write where there is nothing."""

WITH_COMMA = re.compile(r"[+-]?\d*,\d+")
THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+")

Cell = tuple[float, str]
"""A value and no reason, or nan and a reason; nan and no reason is a mistake."""


@dataclass(frozen=True)
class Reader:
    """How cells are read: the decimal mark, and texts that were declared to be reasons."""

    comma: bool = False
    reasons: Mapping[str, str] = field(default_factory=dict)

    def cell(self, content: Any, variable: Variable) -> Cell:
        """Read one cell."""
        text = text_of(content)
        number = self.number(text) if isinstance(content, str) else _number(content)
        for known in (text, text_of(number)):
            if known and known in self.reasons:
                return math.nan, self.reasons[known]
        if (missing := variable.reason(content)) is not None:
            return math.nan, missing
        if text.casefold() in NOTHING:
            return math.nan, EMPTY
        if math.isfinite(number):
            return number, ""
        return math.nan, known_reason(text) or ""

    def number(self, text: str) -> float:
        """Read a number, with the decimal mark of the file; nan if it is none."""
        plain = text.replace(",", ".") if self.comma else text
        try:
            return math.nan if "_" in plain else float(plain)
        except ValueError:
            return math.nan

    def column(self, column: pd.Series[Any], variable: Variable) -> Cells:
        """Read a column, each distinct cell once."""
        codes, distinct = coded(column)
        read = [self.cell(each, variable) for each in distinct]
        reasons = list(dict.fromkeys(reason for _, reason in read))
        numbers = {reason: place for place, reason in enumerate(reasons)}
        values = np.array([value for value, _ in read], np.float64)
        why = np.array([numbers[reason] for _, reason in read], np.int64)
        return Cells(values[codes], why[codes], reasons, codes, distinct)


@dataclass(frozen=True)
class Cells:
    """A column's values (nan where there is none), and its reasons as numbers of a list."""

    values: Floats
    why: Int64s
    reasons: list[str]
    codes: Int64s
    distinct: list[Any]

    @property
    def wrong(self) -> NDArray[np.bool_]:
        """Where a cell is neither an answer nor a reason."""
        reasons = np.array([reason == "" for reason in self.reasons], bool)
        return reasons[self.why] & np.isnan(self.values)

    def text(self, place: int) -> str:
        """Give what stands in a cell."""
        return text_of(self.distinct[self.codes[place]])


def coded(column: pd.Series[Any]) -> tuple[Int64s, list[Any]]:
    """Give each cell as the number of its content, and the contents; nothing is None."""
    import pandas as pd

    codes, found = pd.factorize(column)
    distinct = [_plain(each) for each in found]
    if (codes < 0).any():
        codes = np.where(codes < 0, len(distinct), codes)
        distinct.append(None)
    return codes.astype(np.int64), distinct


def decimal_comma(columns: list[pd.Series[Any]], decimal: str | None, source: str) -> bool:
    """Say whether numbers are written with a comma, as told, or as all of them show."""
    if decimal not in (None, ",", "."):
        raise InvalidInput(f"decimal is {decimal!r}; it must be ',' or '.'.")
    if decimal is not None:
        return decimal == ","
    texts = {text_of(each) for column in columns for each in coded(column)[1]}
    commas = {text for text in texts if WITH_COMMA.fullmatch(text) or THOUSANDS.fullmatch(text)}
    if not commas:
        return False
    points = any("." in text and math.isfinite(Reader().number(text)) for text in texts)
    if points or all(THOUSANDS.fullmatch(text) for text in commas):
        raise InvalidInput(
            f"{source} holds numbers such as {min(commas)}; say whether the comma is the decimal "
            "mark: decimal ',' or '.'."
        )
    return True


def declared(missing: Mapping[str, str]) -> dict[str, str]:
    """Give texts that are declared to be no answers, with their reasons in our words."""
    return {text_of(code): reason_of(reason) for code, reason in missing.items()}


def _number(content: Any) -> float:
    try:
        return math.nan if isinstance(content, bool) else float(content)
    except (TypeError, ValueError):
        return math.nan


def _plain(content: Any) -> Any:
    return content.item() if isinstance(content, np.generic) else content
