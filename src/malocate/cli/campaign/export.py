"""`malocate export`: a campaign's tables for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from malocate.cli.campaign.finding import Name, opened, parted
from malocate.cli.campaign.tables import check_out, write
from malocate.cli.showing import say, spinning
from malocate.errors import InvalidInput
from malocate.files.forms import Form
from malocate.files.shapes import widened
from malocate.problem.counting import counted

TABLES = {
    "answers": "every answer with its cell, who gave it and when",
    "completions": "every cell of every segment with its completed value, by label",
    "bands": "how wrong each segment's completion may be",
    "decisions": "each round: what was found, whom it asked, and why",
    "log": "every event",
}

WIDE = ("answers", "completions")


def export(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[CAMPAIGN] WHAT",
            show_default=False,
            help="answers, completions, bands, decisions or log.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            help="The file: .csv, .xlsx, .parquet, .sav or .json; by default CSV is printed.",
        ),
    ] = None,
    form: Annotated[
        Form | None, typer.Option("--format", help="If the file's name does not say it.")
    ] = None,
    wide: Annotated[
        bool,
        typer.Option(
            "--wide",
            help="Answers or completions: one line per row, one column per item. What was answered "
            "again stands in further lines.",
        ),
    ] = False,
    name: Name = None,
) -> None:
    """Write a table: the answers, completions with labels, bands, decisions or the log.

    An earlier file of that name is replaced once the new one is whole.
    """
    where, (what,) = parted(words, "WHAT")
    if what not in TABLES:
        raise InvalidInput(f"{what!r} cannot be exported; choose from {', '.join(TABLES)}.")
    if wide and what not in WIDE:
        raise InvalidInput(f"The {what} have no wide layout; leave --wide out.")
    chosen = check_out(out, form)
    with opened(where, name) as campaign, spinning(f"Reading the {what}"):
        frame = campaign.export(what)
        frame = widened(frame) if wide else frame
        write(frame, out, chosen)
    if out is not None:
        say(f"{out}: {counted(len(frame), 'line')}, {TABLES[what]}.")
