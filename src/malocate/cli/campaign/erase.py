"""`malocate erase`: a person's data go, and the log stays valid."""

from __future__ import annotations

from typing import Annotated

import typer

from malocate.cli.campaign.finding import Name, Where, opened
from malocate.cli.campaign.labels import Cells
from malocate.cli.showing import say
from malocate.errors import InvalidInput
from malocate.problem.counting import counted


def erase(
    where: Where = None,
    who: Annotated[
        str | None, typer.Option(help="Erase what this asker was lent and told.")
    ] = None,
    segment: Annotated[str | None, typer.Option(help="The segment of the row.")] = None,
    row: Annotated[str | None, typer.Option(help="Erase this row's answers and its name.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Erase without asking first.")] = False,
    name: Name = None,
) -> None:
    """Erase a person's data: the answers of a row, or all that one asker was lent.

    It cannot be undone. The log keeps a fingerprint in place of what was erased, so that
    `malocate verify` still holds.
    """
    if (who is None) == (row is None):
        raise InvalidInput("Give either --who, or --row with its --segment.")
    with opened(where, name) as campaign:
        cells = Cells(campaign.design)
        if row is not None:
            own = cells.named(segment or "")
            segment, _ = own.name, cells.place(own, 0, row)
        whom = f"row {row!r} of segment {segment!r}" if row is not None else repr(who)
        if not yes:
            typer.confirm(f"Erase the data of {whom} for good?", default=False, abort=True)
        labels = None if row is None else cells.rows([row], segment)[0]
        count = campaign.erase(who=who, segment=segment, row=labels)
    say(f"{counted(count, 'answer')} erased.")
