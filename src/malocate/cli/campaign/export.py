"""`malocate export`: a campaign's tables for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from malocate.cli.campaign.finding import Name, opened, parted
from malocate.cli.campaign.tables import Form, check_folder, form_of, write
from malocate.cli.showing import say, spinning
from malocate.errors import InvalidInput

TABLES = {
    "answers": "every answer with its cell, who gave it and when",
    "completions": "every cell of every segment with its completed value, by label",
    "bands": "how wrong each segment's completion may be",
    "decisions": "each round: what was found, whom it asked, and why",
    "log": "every event",
}


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
            "--out", "-o", help="The file: .csv, .parquet or .json; by default CSV is printed."
        ),
    ] = None,
    form: Annotated[
        Form | None, typer.Option("--format", help="If the file's name does not say it.")
    ] = None,
    name: Name = None,
) -> None:
    """Write a table: the answers, completions with labels, bands, decisions or the log.

    An earlier file of that name is replaced once the new one is whole.
    """
    where, (what,) = parted(words, "WHAT")
    if what not in TABLES:
        raise InvalidInput(f"{what!r} cannot be exported; choose from {', '.join(TABLES)}.")
    chosen = form_of(out, form)
    check_folder(out)
    with opened(where, name) as campaign, spinning(f"Reading the {what}"):
        frame = campaign.export(what)
        write(frame, out, chosen)
    if out is not None:
        say(f"{out}: {len(frame):,} lines, {TABLES[what]}.")
