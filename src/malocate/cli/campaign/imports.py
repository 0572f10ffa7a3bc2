"""`malocate import`: answers that were there before the campaign."""

from __future__ import annotations

from collections.abc import Hashable
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.console import Console

from malocate.cli import columns as given
from malocate.cli.campaign.finding import AsJson, Name, Who, opened, parted
from malocate.cli.campaign.labels import SIDES, Cells, label_of
from malocate.cli.campaign.tables import print_json
from malocate.cli.showing import say, spinning
from malocate.errors import MalocateError
from malocate.files import Answers
from malocate.files.lines import Mistakes
from malocate.problem.counting import counted

if TYPE_CHECKING:
    import pandas as pd

    from malocate.design import Design
    from malocate.problem import Segment

SHOWN = 5
"""Lines that a preview shows."""


@given.reads_files
def import_(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[CAMPAIGN] FILE",
            show_default=False,
            help="A .csv, .xlsx, .parquet or .sav file; - is CSV from the standard input.",
        ),
    ],
    preview: Annotated[
        bool, typer.Option("--preview", help="Show what would be imported; change nothing.")
    ] = False,
    uniform: Annotated[
        bool,
        typer.Option(
            "--uniform",
            help="Declare that every askable cell had the same chance to be asked each time.",
        ),
    ] = False,
    again: Annotated[
        bool,
        typer.Option(
            "--again", help="Import also what has been imported before: they are further answers."
        ),
    ] = False,
    who: Who = "",
    as_json: AsJson = False,
    name: Name = None,
    *,
    reader: given.Reader,
) -> None:
    """Bring along answers that exist already, from CSV, Excel, Parquet or SPSS.

    A file has one line per answer (who, about what, the answer), or one line per row and one
    column per item; what was understood is said. Rows and columns go by their labels, or numbers
    from 0 where there are none; the segment may be missing where there is only one. Cells without
    an answer are left out and counted by their reasons.

    The answers are marked as imported. Without --uniform, no band of a segment that uses them is
    called certified: nobody knows how its cells were chosen.

    Lines that cannot be read are named, and nothing is imported.
    """
    where, (file,) = parted(words, "FILE")
    table = reader.table(file)
    with opened(where, name) as campaign:
        answers = reader.answers(table, likely=_items(campaign.design))
        frame = placed(campaign.design, answers)
        count = len(frame)
        if not preview:
            with spinning(f"Writing {counted(count, 'answer')}"):
                told: dict[str, Any] = {"uniform": uniform, "who": who, "again": again}
                told["without"] = answers.unanswered
                count = campaign.import_answers(frame, **told)
    if as_json:
        print_json(_plain(answers, 0 if preview else count, count))
    else:
        _tell(answers, frame, preview)


def placed(design: Design, answers: Answers) -> pd.DataFrame:
    """Give the answers with labels of the segments' own kinds, or name the lines that are wrong."""
    import pandas as pd

    cells, mistakes = Cells(design), Mistakes()
    frame = answers.answered
    codes = frame["segment"].cat.codes.to_numpy()
    parts = []
    for code, text in enumerate(frame["segment"].cat.categories):
        here = frame[codes == code]
        if len(here):
            parts.append(_of_segment(cells, str(text), here, answers, mistakes))
    mistakes.refuse()
    names = ["segment", "row", "column", "value"]
    return pd.concat(parts) if parts else pd.DataFrame(columns=names)


def _of_segment(
    cells: Cells, text: str, frame: pd.DataFrame, answers: Answers, mistakes: Mistakes
) -> pd.DataFrame:
    import pandas as pd

    lines = frame["line"].to_numpy()
    try:
        segment = cells.named(text)
    except MalocateError as problem:
        told = str(problem)
        mistakes.add_where(np.ones(len(frame), bool), lines, lambda _: told)
        return pd.DataFrame()
    rows, cols = (
        _side(cells, segment, side, frame[SIDES[side]], lines, mistakes) for side in (0, 1)
    )
    values = frame["value"].to_numpy()
    if (scale := segment.scale) is not None:
        wrong = (values < scale[0]) | (values > scale[1])
        mistakes.add_where(wrong, lines, lambda at: answers.outside(frame.iloc[at], scale))
    if segment.mask is not None:
        masked = segment.mask[np.maximum(rows, 0), np.maximum(cols, 0)] & (rows >= 0) & (cols >= 0)
        mistakes.add_where(masked, lines, lambda at: _masked(segment, frame.iloc[at]))
    names = pd.Index(list(cells.segments), dtype=object)
    own = np.full(len(frame), names.get_loc(segment.name))
    return pd.DataFrame(
        {
            "segment": pd.Categorical.from_codes(own, names),
            "row": _own_labels(segment, 0, rows),
            "column": _own_labels(segment, 1, cols),
            "value": values,
        }
    )


def _side(
    cells: Cells,
    segment: Segment,
    side: int,
    column: pd.Series[Any],
    lines: Any,
    mistakes: Mistakes,
) -> Any:
    """Give the places of labels on one side, -1 for those that are not there."""
    known = cells.places(segment, side)
    texts = [str(label) for label in column.cat.categories]
    numbers = np.array([known.get(text, -1) for text in texts], np.int64)
    codes = column.cat.codes.to_numpy()
    places = numbers[codes]
    mistakes.add_where(places < 0, lines, lambda at: cells.none(segment, side, texts[codes[at]]))
    return places


def _own_labels(segment: Segment, side: int, places: Any) -> Any:
    """Give labels as categories: each of them is there once, however many answers it has."""
    import pandas as pd

    labels: list[Hashable] = [label_of(segment, side, at) for at in range(segment.shape[side])]
    own = np.empty(len(labels), dtype=object)
    own[:] = labels
    return pd.Categorical.from_codes(places, pd.Index(own, dtype=object))


def _masked(segment: Segment, line: pd.Series[Any]) -> str:
    return (
        f"the cell ({line['row']}, {line['column']}) of segment {segment.name!r} is masked; it "
        "cannot have an answer."
    )


def _items(design: Design) -> set[str]:
    return {
        str(label)
        for segment in design.segments
        if segment.labels is not None
        for label in segment.labels[1]
    }


def _plain(answers: Answers, imported: int, found: int) -> dict[str, Any]:
    return {
        "imported": imported,
        "answers": found,
        "unanswered": answers.unanswered,
        "understood": answers.understood,
    }


def _tell(answers: Answers, frame: pd.DataFrame, preview: bool) -> None:
    say(fill(answers.understood, Console().width, break_long_words=False, break_on_hyphens=False))
    if not preview:
        say(f"{counted(len(frame), 'answer')} imported.")
        return
    counts = frame["segment"].value_counts(sort=False)
    say("  ".join(f"{segment}: {count:,}" for segment, count in counts.items() if count))
    say(frame.head(SHOWN).to_string(index=False, max_colwidth=24))
    if len(frame) > SHOWN:
        say(f"and {len(frame) - SHOWN:,} more.")
    say("This is a preview: nothing was imported.")
