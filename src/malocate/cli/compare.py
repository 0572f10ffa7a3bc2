"""`malocate compare`: which of two columns, rows or segments is rated higher, and how surely."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from malocate.cli import columns as given
from malocate.cli import reading
from malocate.cli.campaign.finding import AsJson, Name, opened
from malocate.cli.campaign.tables import print_json
from malocate.cli.showing import say, spinning
from malocate.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from malocate.campaign import Campaign
    from malocate.confidence.difference import Difference
    from malocate.problem import Observations

FILES = {".csv", ".tsv", ".txt", ".xlsx", ".parquet", ".sav"}
LISTED = 20
MOST = 100
Pair = tuple[str, str] | None
IN_A_FILE = "Where answers come from a file"


@given.reads_files
def compare(
    where: Annotated[
        str | None,
        typer.Argument(
            metavar="CAMPAIGN|FILE",
            show_default=False,
            help="A campaign's database, or a .csv, .xlsx, .parquet or .sav file of answers.",
        ),
    ] = None,
    columns: Annotated[Pair, typer.Option(help="Two columns.", metavar="ONE TWO")] = None,
    rows: Annotated[Pair, typer.Option(help="Two rows.", metavar="ONE TWO")] = None,
    segments: Annotated[Pair, typer.Option(help="Two segments.", metavar="ONE TWO")] = None,
    every: Annotated[
        str | None, typer.Option(help="Every two: columns, rows or segments.", metavar="KIND")
    ] = None,
    inside: Annotated[
        str | None,
        typer.Option("--in", metavar="SEGMENT", help="The segment whose columns or rows."),
    ] = None,
    at_column: Annotated[
        str | None, typer.Option(metavar="LABEL", help="Compare segments at one column.")
    ] = None,
    at_row: Annotated[
        str | None, typer.Option(metavar="LABEL", help="Compare segments at one row.")
    ] = None,
    scale: Annotated[
        tuple[float, float] | None,
        typer.Option(
            metavar="LEAST LARGEST",
            help="The least and the largest answer, such as 1 5.",
            rich_help_panel=IN_A_FILE,
        ),
    ] = None,
    uniform: Annotated[
        bool,
        typer.Option(
            "--uniform",
            help="Declare that each time every cell had the same chance.",
            rich_help_panel=IN_A_FILE,
        ),
    ] = False,
    delta: Annotated[
        float,
        typer.Option(
            min=0, max=1, help="The chance of error, of all comparisons.", rich_help_panel=IN_A_FILE
        ),
    ] = 0.05,
    as_json: AsJson = False,
    name: Name = None,
    *,
    reader: given.Reader,
) -> None:
    """Say which of two columns, rows or segments is rated higher, by how much, and how surely.

    Compared are the means over all cells, answered or not. Choose what to compare before you see
    the answers; to look for the largest differences, take --every, whose intervals all hold at
    once. In a campaign the draws of the last look count, and the interval holds at all looks.
    """
    if every is not None and every not in ("columns", "rows", "segments"):
        raise InvalidInput(f"--every is {every!r}; it takes columns, rows or segments.")
    asked = {"columns": columns, "rows": rows, "segments": segments}
    chosen = [kind for kind, pair in asked.items() if pair is not None] + ([every] if every else [])
    if len(chosen) != 1:
        raise InvalidInput("Give one of --columns A B, --rows A B, --segments A B or --every KIND.")
    told = Told(chosen[0], asked[chosen[0]], inside, at_column, at_row)
    if where is not None and (where == "-" or Path(where).suffix.lower() in FILES):
        answers = reading.observed(reader.answers(reader.table(where)), scale, uniform)
        found = _in_file(answers, told, delta, uniform)
    else:
        _check_for_campaign(reader)
        with opened(where, name) as campaign, spinning("Comparing"):
            found = _in_campaign(campaign, told)
    _show(found, as_json, every is not None)


def _check_for_campaign(reader: given.Reader) -> None:
    """Refuse options that say what a file is where there is none."""
    if reader.segment is not None:
        raise InvalidInput("--segment names a column of a file; a campaign's segment goes by --in.")
    if reader != given.Reader():
        raise InvalidInput("Options that say what a file is go with a file, not with a campaign.")


class Told:
    """What is compared, in the words of the command line."""

    def __init__(
        self,
        kind: str,
        pair: tuple[str, str] | None,
        segment: str | None,
        column: str | None,
        row: str | None,
    ) -> None:
        self.kind, self.pair, self.segment = kind, pair, segment
        self.column, self.row = column, row
        if kind == "segments" and segment is not None:
            raise InvalidInput("--in goes with columns or rows; here segments are compared.")
        if kind != "segments" and (column is not None or row is not None):
            raise InvalidInput(
                f"--at-column and --at-row go with segments; here {kind} are compared."
            )

    def things(self, known: Sequence[Hashable]) -> list[Hashable]:
        """Give the labels that are compared: those that were written, or all."""
        if self.pair is not None:
            return [_label(each, known) for each in self.pair]
        if len(known) < 2 or len(known) > MOST:
            raise InvalidInput(
                f"There are {len(known):,} {self.kind}; every two are compared of 2 to {MOST}. "
                f"Name two by --{self.kind}."
            )
        return list(known)

    def at(self, labels: Sequence[Sequence[Hashable]]) -> dict[str, Any]:
        """Give the row and the column at which segments are compared."""
        told = zip(("row", "column"), (self.row, self.column), labels, strict=True)
        return {side: None if text is None else _label(text, known) for side, text, known in told}


def _label(text: str, known: Sequence[Hashable]) -> Hashable:
    """Give the label that somebody wrote, whatever its kind is; else the text itself."""
    return next((label for label in known if str(label) == text), text)


def _in_file(
    answers: Mapping[str, Observations], told: Told, delta: float, uniform: bool
) -> list[Difference]:
    from malocate import LowRankLeastSquares, differences

    settings: dict[str, Any] = {"delta": delta, "check_uniform": uniform}
    if told.kind == "segments":
        if not any(answers):
            raise InvalidInput("The file has no column of segments; compare columns or rows.")
        settings |= {"segments": told.things(list(answers))}
        settings |= told.at(_labels(next(iter(answers.values()))))
        with spinning("Comparing"):
            found = differences(LowRankLeastSquares(), answers, **settings)
    else:
        name = _one_of(answers, told.segment)
        side = 1 if told.kind == "columns" else 0
        things = told.things(_labels(answers[name])[side])
        settings |= {told.kind: things, "segment": name}
        with spinning("Comparing"):
            found = differences(LowRankLeastSquares(), answers[name], **settings)
    return found if uniform else [each.doubted(reading.UNKNOWN) for each in found]


def _labels(answers: Observations) -> tuple[Sequence[Hashable], Sequence[Hashable]]:
    return answers.labels or (range(answers.shape[0]), range(answers.shape[1]))


def _one_of(answers: Mapping[str, Observations], name: str | None) -> str:
    names = [str(each) for each in answers]
    if name is not None and not any(names):
        raise NotFound("The file has no column of segments; leave --in out.")
    if name is None and len(names) > 1:
        raise InvalidInput(f"There are several segments, {', '.join(names)}; say --in.")
    if name is not None and name not in names:
        raise NotFound(f"There is no segment {name!r}; there is {', '.join(names)}.")
    return list(answers)[names.index(name) if name is not None else 0]


def _in_campaign(campaign: Campaign, told: Told) -> list[Difference]:
    design = campaign.design
    segments = {each.name: each for each in design.segments}
    first = segments.get(told.segment or "", design.segments[0])
    labels = first.labels or (range(first.shape[0]), range(first.shape[1]))
    if told.kind == "segments":
        names: Any = told.things(list(segments))
        return campaign.differences(segments=names, **told.at(labels))
    things = told.things(labels[1 if told.kind == "columns" else 0])
    own: dict[str, Any] = {told.kind: things}
    return campaign.differences(segment=told.segment, **own)


def _show(found: Sequence[Difference], as_json: bool, every: bool) -> None:
    if as_json:
        print_json([_plain(each) for each in found])
        return
    if every:
        Console().print(_table(found), highlight=False)
        if len(found) > LISTED:
            say(f"{len(found) - LISTED:,} smaller ones are in --json.")
        say(_together(found))
    else:
        say(found[0].sentence)
    for words in dict.fromkeys(f"Given {each.given}. {each.reason}".strip() for each in found):
        say(words)


def _together(found: Sequence[Difference]) -> str:
    """Say how many differences can be told, and how all intervals are labelled: as the weakest."""
    told = f"{sum(each.certain for each in found):,} of {len(found):,} intervals leave zero out."
    certainty = f"certainty {found[0].certainty:.4g}"
    if all(each.label == "certified" for each in found):
        return f"{told} All hold at once with {certainty} (certified)."
    return f"{told} ≈: approximate; together meant for {certainty}, and not all of it is proven."


def _table(found: Sequence[Difference]) -> Table:
    """Give the comparisons as a table, the largest differences first."""
    ordered = sorted(found, key=lambda each: (not each.certain, -abs(np.nan_to_num(each.estimate))))
    made = Table()
    for name in ("higher", "lower"):
        made.add_column(name, overflow="fold")
    for name in ("by", "from", "to"):
        made.add_column(name, justify="right", no_wrap=True)
    for each in ordered[:LISTED]:
        up = each.estimate >= 0
        names = (each.one, each.two) if up else (each.two, each.one)
        size = (
            (each.estimate, each.low, each.high) if up else (-each.estimate, -each.high, -each.low)
        )
        style = "" if each.certain else "dim"
        mark = "≈ " if each.label == "approximate" else ""
        cells = [*map(str, names), *map(_signed, size[:1]), *(mark + _signed(x) for x in size[1:])]
        made.add_row(*(Text(cell, style=style) for cell in cells))
    return made


def _signed(number: float) -> str:
    return f"{number:+.2f}" if math.isfinite(number) else "–"


def _plain(each: Difference) -> dict[str, Any]:
    names = ("kind", "one", "two", "where", "estimate", "se", "low", "high", "certain", "label")
    more = ("certainty", "answers", "given", "reason", "sentence")
    return {name: getattr(each, name) for name in (*names, *more)}
