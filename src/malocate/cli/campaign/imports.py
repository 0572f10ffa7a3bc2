"""`malocate import`: answers that were there before the campaign."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from malocate.cli.campaign.finding import AsJson, Name, Who, opened, parted
from malocate.cli.campaign.labels import Cells, label_of
from malocate.cli.campaign.lines import Line, number, read, told_at
from malocate.cli.campaign.tables import print_json
from malocate.cli.showing import progress, say, spinning
from malocate.errors import InvalidInput
from malocate.problem.checks import refuse_answer

if TYPE_CHECKING:
    import pandas as pd

    from malocate.design import Design

EVERY = 5_000
"""Lines between two steps of the bar."""


def import_(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[CAMPAIGN] FILE",
            show_default=False,
            help="A .csv or .parquet file; - is CSV from the standard input.",
        ),
    ],
    uniform: Annotated[
        bool,
        typer.Option(
            "--uniform",
            help="Declare that every askable cell had the same chance to be asked each time.",
        ),
    ] = False,
    who: Who = "",
    as_json: AsJson = False,
    name: Name = None,
) -> None:
    """Bring along answers that exist already: columns segment, row, column and value.

    Rows and columns go by their labels, or numbers from 0 where there are none; `segment` may be
    missing where there is only one. The answers are marked as imported. Without --uniform, no band
    of a segment that uses them is called certified: nobody knows how its cells were chosen.

    A line that cannot be read is named, and nothing is imported.
    """
    where, (file,) = parted(words, "FILE")
    lines = read(file, ("row", "column", "value"))
    with opened(where, name) as campaign:
        frame = checked(campaign.design, lines)
        with spinning(f"Writing {len(frame):,} answers"):
            count = campaign.import_answers(frame, uniform=uniform, who=who)
    if as_json:
        print_json({"imported": count})
    else:
        say(f"{count:,} answers imported.")


def checked(design: Design, lines: Sequence[Line]) -> pd.DataFrame:
    """Give the lines as a frame with labels of the segments' own kinds, or name the first wrong."""
    import pandas as pd

    cells = Cells(design)
    found = []
    with progress(len(lines), "lines") as show:
        for count, line in enumerate(lines):
            with told_at(line.number):
                found.append(_answer(cells, line))
            if count % EVERY == 0:
                show("Reading", count)
    return pd.DataFrame(found, columns=["segment", "row", "column", "value"])


def _answer(cells: Cells, line: Line) -> tuple[object, ...]:
    segment, value = cells.segment(line), number(line, "value")
    row, column = (
        cells.place(segment, side, line.text(("row", "column")[side])) for side in (0, 1)
    )
    if segment.scale is not None and not segment.scale[0] <= value <= segment.scale[1]:
        refuse_answer("value", value, segment.scale)
    if segment.mask is not None and segment.mask[row, column]:
        raise InvalidInput(
            f"the cell ({line.text('row')}, {line.text('column')}) of segment {segment.name!r} is "
            "masked; it cannot have an answer."
        )
    return segment.name, label_of(segment, 0, row), label_of(segment, 1, column), value
