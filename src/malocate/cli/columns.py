"""Files of answers on the command line: options that say what a file is, or questions for it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any

import typer

from malocate.cli.showing import spinning
from malocate.errors import InvalidInput
from malocate.files import Answers, Columns, Table, Unclear, read_table
from malocate.files.answers import answers_of

if TYPE_CHECKING:
    from malocate.files.layout import Layout

PANEL = "What the file is"


class LayoutName(StrEnum):
    """How answers stand in a table."""

    AUTO = "auto"
    LONG = "long"
    WIDE = "wide"


def _option(help_: str, metavar: str = "NAME") -> typer.models.OptionInfo:
    found: typer.models.OptionInfo = typer.Option(
        help=help_, metavar=metavar, rich_help_panel=PANEL, show_default=False
    )
    return found


Row = Annotated[str | None, _option("The column of who was asked.")]
Column = Annotated[str | None, _option("The column of what was asked about.")]
Value = Annotated[str | None, _option("The column of answers.")]
SegmentColumn = Annotated[str | None, _option("The column of segments.")]
Reason = Annotated[str | None, _option("The column of why there is no answer.")]
Items = Annotated[list[str] | None, _option("A column of answers in a wide table; once for each.")]
LayoutOption = Annotated[
    LayoutName,
    typer.Option(
        "--layout", help="long: a line per answer; wide: a line per row.", rich_help_panel=PANEL
    ),
]
Missing = Annotated[
    list[str] | None, _option("A code that is no answer: 98=refused; once for each.", "CODE=WHY")
]
Decimal = Annotated[str | None, _option("The decimal mark of a CSV file: , or .", "MARK")]
Sheet = Annotated[str | None, _option("The sheet of an Excel file; by default the first.")]
Encoding = Annotated[str | None, _option("Of a CSV file that is not UTF-8, such as cp1252.")]


WAY = "Such as: --row NAME --column NAME --value NAME"


@dataclass(frozen=True)
class Reader:
    """What a file is, as the options say it that `reads_files` gives to a command."""

    row: Row = None
    column: Column = None
    value: Value = None
    segment: SegmentColumn = None
    reason: Reason = None
    items: Items = None
    layout: LayoutOption = LayoutName.AUTO
    missing: Missing = None
    decimal: Decimal = None
    sheet: Sheet = None
    encoding: Encoding = None

    def table(self, path: str) -> Table:
        """Read a file's table."""
        with spinning(f"Reading {path}"):
            return file_table(path, self.sheet, self.encoding)

    def answers(self, table: Table, likely: Collection[str] = ()) -> Answers:
        """Find the answers in a table; ask on a terminal which column is what where it is unclear.

        `likely` are names of items: where a table has several as columns, it is a wide one.
        """
        named = Columns(*(self.row, self.column, self.value, self.segment, self.reason))
        named = replace(named, items=tuple(self.items or ()))
        if self.layout is not LayoutName.LONG:
            named = _with_items(table, named, likely)
        try:
            return self._found(table, named)
        except Unclear as problem:
            if not on_terminal():
                raise Unclear(f"{problem} {WAY}") from None
            typer.echo(str(problem), err=True)
        return self._found(table, asked(table))

    def _found(self, table: Table, columns: Columns) -> Answers:
        kind: Layout = self.layout.value
        reasons = declared(self.missing)
        return answers_of(table, columns, layout=kind, missing=reasons, decimal=self.decimal)


def reads_files(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a `Reader` in the place of its parameter `reader`."""
    own, options = (inspect.signature(each, eval_str=True) for each in (command, Reader))

    @wraps(command)
    def run(**told: Any) -> None:
        command(reader=Reader(**{name: told.pop(name) for name in options.parameters}), **told)

    kept = [each for each in own.parameters.values() if each.name != "reader"]
    whole = own.replace(parameters=[*kept, *options.parameters.values()])
    run.__signature__ = whole  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in whole.parameters.values()}
    return run


def declared(missing: Sequence[str] | None) -> dict[str, str]:
    """Read options such as 98=refused.

    >>> declared(["98=refused", "99=not asked"])
    {'98': 'refused', '99': 'not asked'}
    """
    found = {}
    for text in missing or []:
        code, equals, reason = text.partition("=")
        if not equals or not code.strip() or not reason.strip():
            raise InvalidInput(f"--missing {text} is no code with a reason; write 98=refused.")
        found[code.strip()] = reason.strip()
    return found


def asked(table: Table) -> Columns:
    """Ask which column is what."""
    names = table.names
    row = _choice("Which column says who was asked?", names)
    if typer.confirm("Is there one line for each answer (and not one for each row)?", default=True):
        column = _choice("Which says what was asked about?", names)
        value = _choice("Which holds the answers?", names)
        return Columns(row=row, column=column, value=value, segment=_segment(names))
    segment = _segment(names)
    rest = ", ".join(name for name in names if name not in (row, segment))
    items = str(typer.prompt("Which hold answers? (names with commas between)", default=rest))
    chosen = tuple(part.strip() for part in items.split(",") if part.strip())
    return Columns(row=row, segment=segment, items=chosen)


def file_table(path: str, sheet: str | None = None, encoding: str | None = None) -> Table:
    """Read a file's table."""
    return read_table(path, sheet_name=sheet, encoding=encoding)


def on_terminal() -> bool:
    """Say whether somebody is there to be asked."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def _with_items(table: Table, columns: Columns, likely: Collection[str]) -> Columns:
    """Take the columns that are called like items for those of a wide table."""
    found = tuple(name for name in table.names if name in likely)
    known = columns.items or columns.column or columns.value
    if known or len(found) < 2:
        return columns
    return Columns(row=columns.row, segment=columns.segment, items=found)


def _segment(names: Sequence[str]) -> str | None:
    none = "none"
    found = _choice("Which holds the segments?", [*names, none], none)
    return None if found == none else found


def _choice(question: str, names: Sequence[str], default: str | None = None) -> str:
    while True:
        found = str(typer.prompt(f"{question} ({', '.join(names)})", default=default)).strip()
        if found in names:
            return found
        typer.echo(f"There is no column {found!r}.", err=True)
