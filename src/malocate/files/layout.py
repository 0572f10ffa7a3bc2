"""Which column of a table is what: one line for each answer (long), or for each row (wide)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from malocate.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable

    from malocate.files.table import Table

Layout = Literal["auto", "long", "wide"]
ROLES = ("row", "column", "value")
NAMES = {
    "row": "row respondent person user rater judge assessor taster participant subject panelist "
    "panellist customer reader interview case caseid id name who",
    "column": "column item product wine movie film brand question object stimulus sample book "
    "attribute candidate treatment",
    "value": "value rating score answer stars response points mark grade liking vote",
    "segment": "segment region panel cohort country market site city district stratum",
    "reason": "reason",
}
"""Names that say what a column is, whatever their case and with or without `_id`."""


class Unclear(InvalidInput):
    """A table of which nobody can tell what its columns are; naming them helps.

    >>> issubclass(Unclear, InvalidInput)
    True
    """


@dataclass(frozen=True)
class Columns:
    """The names of columns: who was asked (row), about what (column), the answer (value).

    What is left out is found by its name or by what it holds. `segment` and `reason` (why there
    is no answer) may be missing. In a wide table, `items` are the columns that hold answers.

    >>> Columns(row="respondent", value="rating").words("long")
    "row is 'respondent', value is 'rating'"
    """

    row: str | None = None
    column: str | None = None
    value: str | None = None
    segment: str | None = None
    reason: str | None = None
    items: tuple[str, ...] = ()

    def named(self) -> dict[str, str]:
        """Give the single columns that are known, by what they are."""
        single = {role: getattr(self, role) for role in (*ROLES, "segment", "reason")}
        return {role: name for role, name in single.items() if name is not None}

    def having(self, role: str, name: str) -> Columns:
        """Give the same, with one more column known."""
        change: dict[str, Any] = {role: name}
        return replace(self, **change)

    def words(self, layout: Layout) -> str:
        """Say which column is what."""
        parts = [f"{role} is {name!r}" for role, name in self.named().items()]
        if layout == "wide":
            parts.append(f"answers are in {few(self.items)}")
        return ", ".join(parts)


@dataclass(frozen=True)
class Understood:
    """What the columns of a table are, and in which layout."""

    layout: Literal["long", "wide"]
    columns: Columns


def understand(
    table: Table, given: Columns, layout: Layout, holds_answers: Callable[[str], bool]
) -> Understood:
    """Find out what a table's columns are; `holds_answers` says whether one could be answers.

    What was given is taken, then what the names say; what is left is told by what it holds.
    """
    table.need([*given.named().values(), *given.items])
    _each_once(given)
    known = _by_name(table.names, given)
    if layout != "wide" and not given.items:
        found = _long(table, known, holds_answers if layout == "auto" else None)
        if found is not None:
            return found
    if layout != "long":
        found = _wide(table, given, known, holds_answers, sure=layout == "wide")
        if found is not None:
            return found
    raise Unclear(
        f"{table.source} has the columns {few(table.names)}, and it cannot be told which is what; "
        "name them: row, column and value for one line per answer, or row for one line per row."
    )


def _each_once(given: Columns) -> None:
    """Refuse a column that was named for two things."""
    told = [*given.named().values(), *given.items]
    if twice := [name for name in told if told.count(name) > 1]:
        raise InvalidInput(f"Column {twice[0]!r} is named for two things; it can be one of them.")


def _by_name(names: list[str], given: Columns) -> Columns:
    """Add what the names of the columns say; a name is taken once."""
    taken = {*given.named().values(), *given.items}
    found = given
    for role, words in NAMES.items():
        fitting = [name for name in names if name not in taken and _plain(name) in words.split()]
        exact = [name for name in fitting if name.casefold() == role]
        if getattr(given, role) is None and len(exact or fitting) == 1:
            found = found.having(role, (exact or fitting)[0])
            taken.add((exact or fitting)[0])
    return found


def _plain(name: str) -> str:
    """Give a name without case, marks and an `id` at its end."""
    plain = re.sub(r"[^a-z0-9]", "", name.casefold())
    return re.sub(r"(id|name|no|nr)$", "", plain) or plain


def _long(
    table: Table, known: Columns, holds_answers: Callable[[str], bool] | None
) -> Understood | None:
    """Give one line per answer, if all three roles are known, or the one left is told by rest."""
    missing = [role for role in ROLES if getattr(known, role) is None]
    taken = known.named().values()
    rest = [name for name in table.names if name not in taken and name]
    if not missing:
        return Understood("long", known)
    if len(missing) == 1 and len(rest) == 1:
        fits = holds_answers is None or missing != ["value"] or holds_answers(rest[0])
        return Understood("long", known.having(missing[0], rest[0])) if fits else None
    if len(missing) == len(rest) == 3 and holds_answers is not None:
        texts = not holds_answers(rest[0]) and not holds_answers(rest[1])
        if texts and holds_answers(rest[2]):
            return Understood("long", replace(known, row=rest[0], column=rest[1], value=rest[2]))
    return None


def _wide(
    table: Table,
    given: Columns,
    known: Columns,
    holds_answers: Callable[[str], bool],
    *,
    sure: bool,
) -> Understood | None:
    """Give one line per row, if all columns beside the labels hold answers."""
    names = [
        name for place, name in enumerate(table.names) if name or (place == 0 and _alone(table))
    ]
    segment = known.segment if known.segment not in given.items else None
    labels = [name for name in names if name not in (segment, *given.items)]
    row = given.row or known.row or (labels[0] if labels else None)
    if row is None:
        return None
    told = given.row or known.row or row == ""
    items = given.items or tuple(name for name in labels if name != row)
    found = Understood("wide", Columns(row=row, segment=segment, items=items))
    if sure or given.items:
        return found if items else None
    texts = len(items) > 2 and not holds_answers(row)
    clear = told or texts or table.frame[row].is_unique
    fits = len(items) > 1 and clear and all(holds_answers(name) for name in items)
    return found if fits else None


def _alone(table: Table) -> bool:
    """Tell whether one column only has no name: programs leave that of row labels empty."""
    return table.names.count("") == 1


def few(names: tuple[str, ...] | list[str], most: int = 6) -> str:
    """List names, the first ones if there are many."""
    told = ", ".join(repr(name) for name in names[:most])
    return told + (f" and {len(names) - most:,} more" if len(names) > most else "")
