"""`malocate status` and `malocate report`: how a campaign stands, in short and in full."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from malocate.cli.campaign.finding import AsJson, Name, Where, opened
from malocate.cli.campaign.tables import check_folder, print_json, write_text
from malocate.cli.showing import say, spinning
from malocate.errors import InvalidInput
from malocate.problem.counting import counted

if TYPE_CHECKING:
    from malocate.campaign import SegmentStatus, Status

COUNTS = {"planned": "planned", "open": "open", "lent": "out", "answered": "answered"}
BESIDES = {
    "late": "answered after the deadline",
    "expired": "leases that ran out",
    "refused": "refused",
    "given_up": "given up",
    "erased": "erased",
}


def status(where: Where = None, as_json: AsJson = False, name: Name = None) -> None:
    """Say how a campaign stands: what was asked, answered, refused, and how sure it is."""
    with opened(where, name) as campaign:
        found = campaign.status()
    if as_json:
        print_json(found.to_plain())
        return
    say(f"{found.name}: {found.words}", style="bold")
    spent = f"{found.spent:,g} of {found.budget:,g} of the budget is planned"
    say(f"{counted(found.answered, 'answer')}; {spent}.")
    Console().print(table(found), highlight=False)
    for words in (_meaning(found), *besides(found), forecast(found)):
        if words:
            say(words)


def report(
    where: Where = None,
    html: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.html",
            help="Write a page with charts and tables, which prints well, too.",
        ),
    ] = None,
    as_json: AsJson = False,
    name: Name = None,
) -> None:
    """Say in full what a campaign found, how sure it is, and why it asked whom it asked."""
    if html is not None:
        _check_page(html, as_json)
        with opened(where, name) as campaign, spinning("Reading the campaign"):
            write_text(campaign.report_page(), html, "--html")
        say(f"{html}: open it in a browser, which also prints it or saves it as PDF.")
        return
    with opened(where, name) as campaign, spinning("Reading the campaign"):
        found = campaign.report()
    if as_json:
        print_json(found.to_plain())
    elif sys.stdout.isatty():
        Console().print(Text(str(found)))  # in lines as wide as the terminal
    else:
        typer.echo(str(found))


def _check_page(html: Path, as_json: bool) -> None:
    if as_json:
        raise InvalidInput("--html and --json are two reports; ask for one at a time.")
    if html.suffix.lower() not in (".html", ".htm"):
        raise InvalidInput(f"--html {html} must end in .html.")
    check_folder(html, "--html")


def table(found: Status) -> Table:
    """Give the segments as a table."""
    made = Table()
    made.add_column("segment", overflow="fold")
    for name in (*COUNTS.values(), "RMSE", "at most"):
        made.add_column(name, justify="right", no_wrap=True)
    for each in found.segments:
        counts = [f"{getattr(each, name):,}" for name in COUNTS]
        made.add_row(Text(each.name), *counts, *_errors(each))
    return made


def besides(found: Status) -> list[str]:
    """Say of each segment what else became of its questions."""
    lines = []
    for each in found.segments:
        counted = {words: getattr(each, name) for name, words in BESIDES.items()}
        told = [f"{count:,} {words}" for words, count in counted.items() if count]
        lines += [f"{each.name}: {', '.join(told)}."] if told else []
    return lines


def forecast(found: Status) -> str:
    """Say how many answers are missing to the goal; nothing without one, or at it."""
    left = {name: more for name, more in (found.answers_left or {}).items() if more}
    if not left or found.state != "open":
        return ""
    each = ", ".join(f"{name} {more:,}" for name, more in left.items())
    total = counted(sum(left.values()), "answer")
    return f"The goal takes about {total} more ({each}), if bounds go on falling so."


def _errors(segment: SegmentStatus) -> tuple[str, str]:
    rmse = f"{segment.rmse:.3f}" if math.isfinite(segment.rmse) else "–"
    if not math.isfinite(segment.upper):
        return rmse, "–"
    mark = "≈ " if segment.label == "approximate" else ""
    return rmse, f"{mark}{segment.rmse_upper:.3f}"


def _meaning(found: Status) -> str:
    looked = [each for each in found.segments if math.isfinite(each.upper)]
    if not looked:
        return ""
    words = "RMSE, at most: root mean squared error at the last look, and its bound."
    if any(each.label == "approximate" for each in looked):
        words += "\n≈: approximate, which promises nothing."
    return words
