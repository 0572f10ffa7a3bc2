"""`malocate tell` and `malocate correct`: answers, one by one or from a file."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from malocate.cli import columns as given
from malocate.cli.campaign.finding import AsJson, Name, Who, opened, parted
from malocate.cli.campaign.tables import print_json
from malocate.cli.showing import say
from malocate.errors import Conflict, InvalidInput, MalocateError
from malocate.files import Table
from malocate.files.answers import read_values
from malocate.files.codebook import EMPTY
from malocate.files.lines import Mistakes, number
from malocate.problem.counting import counted

if TYPE_CHECKING:
    from malocate.campaign import Campaign
    from malocate.store import Outcome

MEANINGS: dict[str, str] = {
    "answered": "recorded",
    "late": "recorded; they came after their deadline, and count all the same",
    "reversed": "recorded; they had been refused before, and count now",
    "same": "told before; nothing was changed",
    "extra": "kept, but not counted: somebody else had answered that question meanwhile",
    "conflict": "NOT recorded: the ticket has another answer; `malocate correct` changes it",
    "gone": "NOT recorded: the question was erased",
    "declined": "recorded as refused, with the reason; they are not asked again",
    "settled": "NOT recorded as refused: the ticket was settled otherwise, or ran out",
}
ALONE = {
    "late": "recorded; it came after its deadline, and counts all the same",
    "reversed": "recorded; it had been refused before, and counts now",
}
"""Meanings that differ where there is one answer only."""
REFUSED = {
    "conflict": "has another answer",
    "gone": "was erased",
    "settled": "is not out any more",
}
SILENT = (EMPTY, "not asked")
"""Reasons that leave a question as it is."""
_WORDS = typer.Argument(
    metavar="[CAMPAIGN] TICKET VALUE",
    show_default=False,
    help="The ticket as `ask` gave it, and the answer.",
)


def tell(
    words: Annotated[list[str] | None, _WORDS] = None,
    file: Annotated[
        str | None,
        typer.Option(
            help="A table with columns ticket and value: .csv, .xlsx, .parquet or .sav; - is CSV "
            "from the standard input."
        ),
    ] = None,
    missing: given.Missing = None,
    decimal: given.Decimal = None,
    sheet: given.Sheet = None,
    encoding: given.Encoding = None,
    as_json: AsJson = False,
    name: Name = None,
) -> None:
    """Record answers. When this ends with 0, they are on the disk; telling twice does no harm.

    A file may be what `malocate ask --out` wrote. Lines without a value are left out; a value
    such as refused or don't know, or a text in a column `reason`, records that the question was
    refused. Other columns do not matter. Lines that cannot be read are named, and nothing is
    recorded.

    Exit code 1: some answers contradict earlier ones, or their questions were erased; those were
    not recorded, the others were.
    """
    if file is None:
        where, (ticket, text) = parted(words, "TICKET", "VALUE")
        with opened(where, name) as campaign:
            outcome = campaign.tell(ticket, number(text, "value"))
        _tell_one(ticket, outcome, as_json)
        return
    where, _ = parted(words)
    lines = _lines(given.file_table(file, sheet, encoding), missing, decimal)
    filled = [line for line in lines if line.reason not in SILENT]
    with opened(where, name) as campaign:
        became = tell_lines(campaign, filled)
    _tell_many(filled, became, len(lines) - len(filled), as_json)


@dataclass(frozen=True)
class Told:
    """A line of a file: a ticket with its answer, or with the reason why there is none."""

    line: int
    ticket: str
    value: float
    reason: str


def _lines(table: Table, missing: list[str] | None, decimal: str | None) -> list[Told]:
    table.need(("ticket", "value"))
    reason = "reason" if "reason" in table.names else None
    declared = given.declared(missing)
    values, reasons = read_values(table, "value", reason, missing=declared, decimal=decimal)
    pairs = zip(table.each(), values.tolist(), reasons, strict=True)
    return [Told(line.number, line.text("ticket"), value, why) for line, value, why in pairs]


def tell_lines(campaign: Campaign, lines: list[Told]) -> list[str]:
    """Tell all lines at once; those that cannot be read are named by their numbers."""
    mistakes, answers = Mistakes(), []
    for line in lines:
        try:
            if line.reason:
                campaign.check_ticket(line.ticket)
            else:
                answers += campaign.read([(line.ticket, line.value)])
        except MalocateError as problem:
            mistakes.add(line.line, str(problem))
    mistakes.refuse()
    outcomes = iter(campaign.record(answers))
    return [_declined(campaign, line) if line.reason else next(outcomes) for line in lines]


def _declined(campaign: Campaign, line: Told) -> str:
    try:
        campaign.decline(line.ticket, line.reason)
    except Conflict:
        return "settled"
    return "declined"


def correct(
    words: Annotated[list[str], _WORDS],
    reason: Annotated[str, typer.Option(help="Why it was wrong; it is logged.")] = "",
    who: Who = "",
    name: Name = None,
) -> None:
    """Change an answer that was recorded; the one before stays in the log."""
    where, (ticket, text) = parted(words, "TICKET", "VALUE")
    if not reason:
        raise InvalidInput("--reason is missing; say why the answer was wrong.")
    value = number(text, "value")
    with opened(where, name) as campaign:
        before = campaign.correct(ticket, value, reason=reason, who=who)
    say(f"Corrected: it was {before:g}, and is {value:g}.")


def _tell_one(ticket: str, outcome: Outcome, as_json: bool) -> None:
    if as_json:
        print_json({"ticket": ticket, "outcome": outcome})
    else:
        say(f"{outcome}: {ALONE.get(outcome, MEANINGS[outcome])}")


def _tell_many(lines: list[Told], became: list[str], empty: int, as_json: bool) -> None:
    counts = Counter(became)
    pairs = zip(lines, became, strict=True)
    wrong = [(line, got) for line, got in pairs if got in REFUSED]
    if as_json:
        refused = [
            {"line": line.line, "ticket": line.ticket, "outcome": got} for line, got in wrong
        ]
        print_json({"outcomes": counts, "empty": empty, "refused": refused})
    else:
        _say_counts(lines, counts, empty)
    for line, got in wrong:
        typer.echo(f"line {line.line}: ticket {line.ticket} {REFUSED[got]}.", err=True)
    if wrong:
        raise typer.Exit(1)


def _say_counts(lines: list[Told], counts: Counter[str], empty: int) -> None:
    for outcome, meaning in MEANINGS.items():
        if counts[outcome]:
            say(f"{counts[outcome]:,} {outcome}: {meaning}")
    if empty or not lines:
        say(f"{counted(empty, 'line')} without a value left out")
