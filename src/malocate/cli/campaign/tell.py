"""`malocate tell` and `malocate correct`: answers, one by one or from a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from malocate.cli.campaign.finding import AsJson, Name, Who, opened, parted
from malocate.cli.campaign.lines import Line, number, read, told_at
from malocate.cli.campaign.tables import print_json
from malocate.cli.showing import say
from malocate.errors import InvalidInput, MalocateError

if TYPE_CHECKING:
    from malocate.campaign import Campaign
    from malocate.store import Outcome

MEANINGS: dict[Outcome, str] = {
    "answered": "recorded",
    "late": "recorded; they came after their deadline, and count all the same",
    "same": "told before; nothing was changed",
    "extra": "kept, but not counted: somebody else had answered that question meanwhile",
    "conflict": "NOT recorded: the ticket has another answer; `malocate correct` changes it",
    "gone": "NOT recorded: the question was erased",
}
REFUSED: dict[Outcome, str] = {"conflict": "has another answer", "gone": "was erased"}
_WORDS = typer.Argument(
    metavar="[CAMPAIGN] TICKET VALUE",
    show_default=False,
    help="The ticket as `ask` gave it, and the answer.",
)


def tell(
    words: Annotated[list[str] | None, _WORDS] = None,
    file: Annotated[
        str | None,
        typer.Option(help="Answers as CSV with columns ticket and value; - is the standard input."),
    ] = None,
    as_json: AsJson = False,
    name: Name = None,
) -> None:
    """Record answers. When this ends with 0, they are on the disk; telling twice does no harm.

    In a file, lines without a value are left out, and other columns do not matter: it may be what
    `malocate ask --csv` gave. A line that cannot be read is named, and nothing is recorded.

    Exit code 1: some answers contradict earlier ones, or their questions were erased; those were
    not recorded, the others were.
    """
    if file is None:
        where, (ticket, text) = parted(words, "TICKET", "VALUE")
        with opened(where, name) as campaign:
            outcome = campaign.tell(ticket, number(Line(0, {"value": text}), "value"))
        _tell_one(ticket, outcome, as_json)
        return
    where, _ = parted(words)
    lines = read(file, ("ticket", "value"))
    filled = [line for line in lines if line.text("value")]
    with opened(where, name) as campaign:
        outcomes = tell_lines(campaign, filled)
    _tell_many(filled, outcomes, len(lines) - len(filled), as_json)


def tell_lines(campaign: Campaign, lines: Sequence[Line]) -> list[Outcome]:
    """Tell all lines at once; one that cannot be read is named by its number."""
    at = 0

    def answers() -> Iterator[tuple[str, float]]:
        nonlocal at
        for line in lines:
            at = line.number
            yield line.text("ticket"), number(line, "value")
        at = 0

    try:
        return campaign.tell_many(answers())
    except MalocateError:
        if not at:
            raise
        with told_at(at):
            raise


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
    value = number(Line(0, {"value": text}), "value")
    with opened(where, name) as campaign:
        before = campaign.correct(ticket, value, reason=reason, who=who)
    say(f"Corrected: it was {before:g}, and is {value:g}.")


def _tell_one(ticket: str, outcome: Outcome, as_json: bool) -> None:
    if as_json:
        print_json({"ticket": ticket, "outcome": outcome})
    else:
        say(f"{outcome}: {MEANINGS[outcome].replace('they came after their', 'it came after its')}")


def _tell_many(lines: Sequence[Line], outcomes: list[Outcome], empty: int, as_json: bool) -> None:
    counts = Counter(outcomes)
    pairs = zip(lines, outcomes, strict=True)
    wrong = [(line, got) for line, got in pairs if got in REFUSED]
    if as_json:
        refused = [
            {"line": line.number, "ticket": line.text("ticket"), "outcome": got}
            for line, got in wrong
        ]
        print_json({"outcomes": counts, "empty": empty, "refused": refused})
    else:
        for outcome, meaning in MEANINGS.items():
            if counts[outcome]:
                say(f"{counts[outcome]:,} {outcome}: {meaning}")
        if empty or not lines:
            say(f"{empty:,} lines without a value were left out")
    for line, got in wrong:
        words = f"line {line.number}: ticket {line.text('ticket')} {REFUSED[got]}."
        typer.echo(words, err=True)
    if wrong:
        raise typer.Exit(1)
