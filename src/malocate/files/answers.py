"""Answers read from a table: one line for each, whatever the layout of the file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from malocate.errors import InvalidInput
from malocate.files.cells import Cells, Reader, coded, decimal_comma, declared
from malocate.files.codebook import Codebook, Variable, reason_of, text_of
from malocate.files.layout import Columns, Layout, few, understand
from malocate.files.lines import Mistakes, no_number
from malocate.files.reading import read_table
from malocate.problem.arrays import Floats, Int64s
from malocate.problem.checks import LARGEST, scale_of
from malocate.problem.counting import counted

if TYPE_CHECKING:
    import pandas as pd

    from malocate.files.table import Table
    from malocate.problem import Observations

Scale = tuple[float, float]
Side = tuple[Int64s, list[str]]
"""Labels as numbers of a list, and that list."""

WHOLE = re.compile(r"0|-?[1-9]\d{0,17}")


@dataclass(frozen=True)
class Answers:
    """Answers from a file, and what was understood of it; `read_answers` gives one.

    `frame` has a line for each answer and each cell that says why there is none: `line` (its
    number in the file), `segment` ("" where there is none), `row`, `column`, `value` (nan
    without an answer) and `reason` ("" with one). Labels are texts, or integers where all are
    whole numbers.

    >>> import pandas as pd
    >>> columns = {"line": [2, 3], "segment": "", "row": ["Al", "Bo"], "column": "red"}
    >>> found = Answers(pd.DataFrame({**columns, "value": [4, None], "reason": ["", "refused"]}))
    >>> found.unanswered, found.answered["row"].tolist()
    ({'refused': 1}, ['Al'])
    """

    frame: pd.DataFrame
    source: str = ""
    layout: Literal["long", "wide"] = "long"
    columns: Columns = field(default_factory=Columns)
    codebook: Codebook = field(default_factory=dict)
    form: str = ""
    aside: tuple[str, ...] = ()

    @property
    def answered(self) -> pd.DataFrame:
        """The lines that hold an answer."""
        return self.frame[self.frame["value"].notna()]

    @property
    def unanswered(self) -> dict[str, int]:
        """How many lines have no answer, by reason."""
        counts = self.frame.loc[self.frame["value"].isna(), "reason"].value_counts()
        told = {str(reason): int(count) for reason, count in counts.items() if count}
        return dict(sorted(told.items(), key=lambda each: (-each[1], each[0])))

    @property
    def understood(self) -> str:
        """What the file was taken for, in a sentence or two."""
        each = "answer" if self.layout == "long" else "row"
        roles = self.columns.words(self.layout)
        aside = f" Left aside: {few(self.aside)}." if self.aside else ""
        words = f"{self.source}: {self.form}, one line per {each}; {roles}.{aside}"
        return f"{words} {self._counts()}."

    def observations(self, scale: Scale | None = None) -> dict[str, Observations]:
        """Give the answers of each segment, by name; "" is the only one where none is named.

        An answer outside the scale is refused by the number of its line.
        """
        from malocate.problem import Observations

        self.check(scale)
        frame = self.answered.drop(columns=["line", "reason"])
        if frame.empty:
            raise InvalidInput(f"{self.source} holds no answer.")
        found = Observations.from_frame(frame, segment="segment", scale=scale)
        return found if isinstance(found, dict) else {"": found}

    def check(self, scale: Scale | None) -> None:
        """Refuse answers outside the scale, by the numbers of their lines."""
        mistakes = Mistakes()
        if scale is not None:
            scale_of(scale)
            values = self.frame["value"].to_numpy()
            wrong = (values < scale[0]) | (values > scale[1])
            lines = self.frame["line"].to_numpy()
            mistakes.add_where(wrong, lines, lambda at: self.outside(self.frame.iloc[at], scale))
        mistakes.refuse()

    def outside(self, line: pd.Series[Any], scale: Scale) -> str:
        """Say that the answer in a line of the frame is outside the scale."""
        name = line["column"] if self.layout == "wide" else self.columns.value or "value"
        return f"{name} {line['value']:g} is outside {scale[0]:g}–{scale[1]:g}."

    def _counts(self) -> str:
        unanswered = self.unanswered
        told = counted(int(self.frame["value"].notna().sum()), "answer")
        if unanswered:
            reasons = ", ".join(f"{count:,} {reason}" for reason, count in unanswered.items())
            told += f"; {counted(sum(unanswered.values()), 'cell')} without one ({reasons})"
        return told


def read_answers(
    path: str | Path,
    *,
    columns: Columns | None = None,
    layout: Layout = "auto",
    scale: Scale | None = None,
    missing: Mapping[str, str] | None = None,
    decimal: str | None = None,
    sheet_name: str | None = None,
    encoding: str | None = None,
) -> Answers:
    r"""Read answers from CSV, Excel, Parquet or SPSS, in long or wide layout.

    A long table has one line for each answer; a wide one has one line for each row, and one
    column for each item. What is what is told by `columns`, else by the names and contents;
    `Unclear` is raised where it cannot be told, and `Answers.understood` says what was.

    `missing` declares codes that are no answers, such as ``{"98": "don't know"}``, beside those
    that an SPSS file declares itself. They stay apart in the column `reason`, and never become
    numbers. Mistakes are told by line, the first several and the count of the others.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "wines.csv")
    ...     _ = path.write_text("taster,red,white\nAl,4,refused\nBo,,2\nBo,3,2\n")
    ...     answers = read_answers(path, scale=(1, 5))
    >>> answers.frame[["line", "row", "column", "value", "reason"]].values.tolist()[:3]
    [[2, 'Al', 'red', 4.0, ''], [2, 'Al', 'white', nan, 'refused'], [3, 'Bo', 'red', nan, 'empty']]
    >>> for sentence in answers.understood.removeprefix(str(path)).split(". "):
    ...     print(sentence)
    : CSV with commas, one line per row; row is 'taster', answers are in 'red', 'white'
    4 answers; 2 cells without one (1 empty, 1 refused).
    >>> answers.observations()[""]
    Observations(2×2, 4 answers on 3 entries)
    """
    table = read_table(path, sheet_name=sheet_name, encoding=encoding)
    answers = answers_of(
        table, columns or Columns(), layout=layout, missing=missing or {}, decimal=decimal
    )
    answers.check(scale)
    return answers


def answers_of(
    table: Table,
    columns: Columns,
    *,
    layout: Layout = "auto",
    missing: Mapping[str, str],
    decimal: str | None = None,
) -> Answers:
    """Find the answers in a table that was read."""
    reasons = declared(missing)
    lenient = Reader(True, reasons)
    found = understand(table, columns, layout, lambda name: _could_be(table, name, lenient))
    used = found.columns
    held = used.items if found.layout == "wide" else (used.value or "",)
    comma = table.words.startswith("CSV") and decimal_comma(
        [table.frame[name] for name in held], decimal, table.source
    )
    mistakes = Mistakes()
    build = _wide if found.layout == "wide" else _long
    frame = build(table, used, Reader(comma, reasons), mistakes)
    mistakes.refuse()
    aside = tuple(set_aside(table.names, used))
    form = f"{table.words}, decimal comma" if comma else table.words
    return Answers(frame, table.source, found.layout, used, table.codebook, form, aside)


def set_aside(names: list[str], used: Columns) -> list[str]:
    """Give the columns of a table that are not used."""
    return [name for name in names if name and name not in {*used.named().values(), *used.items}]


def _could_be(table: Table, name: str, reader: Reader) -> bool:
    """Say whether a column could hold answers: only numbers, reasons and empty cells."""
    return not reader.column(table.frame[name], _variable(table, name)).wrong.any()


def _variable(table: Table, name: str) -> Variable:
    return table.codebook.get(name, Variable())


def _long(table: Table, used: Columns, reader: Reader, mistakes: Mistakes) -> pd.DataFrame:
    """Read one answer per line."""
    import pandas as pd

    values, reason = _values(table, used.value or "", used.reason, reader, mistakes)
    sides = {
        role: _labels(table, name, mistakes, role)
        for role, name in (("segment", used.segment), ("row", used.row), ("column", used.column))
    }
    columns = {role: _categories(codes, labels) for role, (codes, labels) in sides.items()}
    return pd.DataFrame({"line": table.lines, **columns, "value": values, "reason": reason})


def read_values(
    table: Table,
    name: str,
    reason: str | None = None,
    *,
    missing: Mapping[str, str] | None = None,
    decimal: str | None = None,
) -> tuple[Floats, list[str]]:
    """Give a column's answers, nan where there is none, and why there is none; refuse by line."""
    comma = table.words.startswith("CSV") and decimal_comma(
        [table.frame[name]], decimal, table.source
    )
    mistakes = Mistakes()
    found = _values(table, name, reason, Reader(comma, declared(missing or {})), mistakes)
    mistakes.refuse()
    return found[0], list(found[1])


def _values(
    table: Table, name: str, reason: str | None, reader: Reader, mistakes: Mistakes
) -> tuple[Floats, pd.Categorical[Any]]:
    import pandas as pd

    cells = reader.column(table.frame[name], _variable(table, name))
    why, reasons = cells.why, cells.reasons
    _check(cells, name, table, mistakes)
    if reason is not None:
        why, reasons = _with_reasons(table, reason, cells, mistakes)
    return cells.values, pd.Categorical.from_codes(why, pd.Index(reasons, dtype=object))


def _wide(table: Table, used: Columns, reader: Reader, mistakes: Mistakes) -> pd.DataFrame:
    """Read one row per line: its answers become lines of their own, in the order of the items."""
    import pandas as pd

    values, whys, reasons = [], [], [""]
    for name in used.items:
        cells = reader.column(table.frame[name], _variable(table, name))
        _check(cells, name, table, mistakes)
        reasons += [each for each in cells.reasons if each not in reasons]
        numbers = np.array([reasons.index(each) for each in cells.reasons], np.int64)
        values.append(cells.values)
        whys.append(numbers[cells.why] if len(cells.why) else cells.why)
    count = len(used.items)
    columns = {
        role: _categories(np.repeat(codes, count), labels)
        for role, (codes, labels) in (
            ("segment", _labels(table, used.segment, mistakes, "segment")),
            ("row", _labels(table, used.row, mistakes, "row")),
        )
    }
    items = np.tile(np.arange(count), len(table.lines))
    columns["column"] = pd.Categorical.from_codes(items, _numbered(used.items), ordered=True)
    columns["value"] = np.stack(values, axis=1).ravel()
    why = np.stack(whys, axis=1).ravel()
    columns["reason"] = pd.Categorical.from_codes(why, pd.Index(reasons, dtype=object))
    return pd.DataFrame({"line": np.repeat(table.lines, count), **columns})


def _check(cells: Cells, name: str, table: Table, mistakes: Mistakes) -> None:
    """Note cells that are neither answers nor reasons, and answers that are too large."""
    mistakes.add_where(cells.wrong, table.lines, lambda at: no_number(cells.text(at), name))
    large = np.abs(cells.values) > LARGEST
    mistakes.add_where(large, table.lines, lambda at: _too_large(cells.text(at), name))


def _too_large(text: str, name: str) -> str:
    return f"{name} is {text}; an answer must be between -{LARGEST:g} and {LARGEST:g}."


def _with_reasons(
    table: Table, name: str, cells: Cells, mistakes: Mistakes
) -> tuple[Int64s, list[str]]:
    """Take reasons from a column of their own, where a cell has no value."""
    codes, distinct = coded(table.frame[name])
    texts = [reason_of(text_of(each)) for each in distinct]
    given = np.array([text != "" for text in texts], bool)[codes]
    both = given & ~np.isnan(cells.values)
    mistakes.add_where(both, table.lines, lambda _: "it has a value and a reason; leave one.")
    known = list(dict.fromkeys([*cells.reasons, *texts]))
    mine = np.array([known.index(each) for each in cells.reasons], np.int64)
    theirs = np.array([known.index(each) for each in texts], np.int64)
    return np.where(given, theirs[codes], mine[cells.why]), known


def _labels(table: Table, name: str | None, mistakes: Mistakes, role: str) -> Side:
    """Give the labels in a column: texts, those of a codebook where it has some."""
    if name is None:
        return np.zeros(len(table.lines), np.int64), [""]
    codes, distinct = coded(table.frame[name])
    named = _variable(table, name).labels
    texts = [text_of(named.get(each, each)) for each in distinct]
    if role != "segment":
        empty = np.array([text == "" for text in texts], bool)[codes]
        mistakes.add_where(empty, table.lines, lambda _: f"{name} is empty; each line needs it.")
    labels = list(dict.fromkeys(texts))
    numbers = {label: place for place, label in enumerate(labels)}
    own = np.array([numbers[text] for text in texts], np.int64)
    return own[codes], labels


def _categories(codes: Int64s, labels: list[str]) -> Any:
    """Give labels as ordered categories: integers where all are whole numbers, else texts."""
    import pandas as pd

    numbered = _numbered(labels)
    order = np.argsort(numbered.to_numpy(), kind="stable")
    place = np.empty(len(labels), np.int64)
    place[order] = np.arange(len(labels))
    return pd.Categorical.from_codes(place[codes], numbered[order], ordered=True)


def _numbered(labels: Sequence[str]) -> pd.Index[Any]:
    import pandas as pd

    whole = all(WHOLE.fullmatch(label) for label in labels)
    return pd.Index([int(label) for label in labels] if whole else list(labels), dtype=object)
