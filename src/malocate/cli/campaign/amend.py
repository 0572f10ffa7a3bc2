"""`malocate amend`: what may change while a campaign runs."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from malocate.cli.campaign.finding import Name, Where, Who, opened
from malocate.cli.campaign.labels import SIDES, Cells, label_of
from malocate.cli.segments import by_segment
from malocate.cli.showing import say
from malocate.errors import InvalidInput
from malocate.files import read_table
from malocate.files.lines import told_at

if TYPE_CHECKING:
    from malocate.campaign import Campaign
    from malocate.design import Design
    from malocate.problem import Segment


def amend(
    where: Where = None,
    why: Annotated[str, typer.Option(help="The reason; it is logged.")] = "",
    who: Who = "",
    budget: Annotated[float | None, typer.Option(help="The new budget, all in all.")] = None,
    rmse: Annotated[
        list[str] | None,
        typer.Option(help="The new goal: N for every segment, NAME=N for one.", metavar="GOAL"),
    ] = None,
    epsilon: Annotated[float | None, typer.Option(help="The new goal for the loss.")] = None,
    segments: Annotated[
        Path | None, typer.Option(help="More segments: a .toml file, as in a design.")
    ] = None,
    rows: Annotated[
        str | None,
        typer.Option(help="More rows: a table with columns segment and row.", metavar="FILE"),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(help="More columns: a table with columns segment and column.", metavar="FILE"),
    ] = None,
    mask: Annotated[
        str | None,
        typer.Option(
            help="Cells not to be asked any more: a table with segment, row, column.",
            metavar="FILE",
        ),
    ] = None,
    name: Name = None,
) -> None:
    """Change the budget, the goals, or what can be asked, while a campaign runs.

    The change and its reason are logged, and the next round is planned with it. In a file,
    `segment` may be missing where there is only one; - is the standard input. A line that cannot
    be read is named, and nothing is changed.
    """
    if not why:
        raise InvalidInput("--why is missing; say why the campaign is changed.")
    with opened(where, name) as campaign:
        design = campaign.design
        changes: dict[str, Any] = {
            "budget": budget,
            "epsilon": epsilon,
            "rmse": _goals(design, rmse),
            "segments": _segments(segments),
            "rows": _labels(design, rows, 0),
            "columns": _labels(design, columns, 1),
            "mask": _masked(design, mask),
        }
        _change(campaign, _given(changes), why, who)
        say(f"{campaign.name} is amended; the next round is planned with it.")


def _given(changes: dict[str, Any]) -> dict[str, Any]:
    return {name: change for name, change in changes.items() if change not in (None, (), {})}


def _change(campaign: Campaign, changes: dict[str, Any], why: str, who: str) -> None:
    if not changes:
        raise InvalidInput("Nothing is changed; give --budget, --rmse, --rows or another change.")
    campaign.amend(why=why, who=who, **changes)


def _goals(design: Design, given: Sequence[str] | None) -> float | dict[str, float] | None:
    """Read goals: "0.2" is for all segments, "north=0.1" for one, beside those that stand."""
    goals = by_segment(design, given or [], float, "--rmse", "goal")
    if not goals:
        return None
    return goals if any("=" in text for text in given or []) else next(iter(goals.values()))


def _segments(path: Path | None) -> tuple[Segment, ...]:
    from malocate.design.tables import from_table

    if path is None:
        return ()
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise InvalidInput(f"{path} cannot be read: {problem.strerror}.") from None
    except ValueError as problem:
        raise InvalidInput(f"{path} is not TOML: {problem}.") from None
    if set(table) != {"segments"}:
        raise InvalidInput(f"{path} must hold tables [[segments]] and nothing else.")
    return from_table({"budget": 1e15, **table}).segments


def _labels(design: Design, path: str | None, side: int) -> dict[str, list[Hashable]]:
    """Read labels to add; they are whole numbers where the others are."""
    found: dict[str, list[Hashable]] = defaultdict(list)
    cells = Cells(design)
    for line in [] if path is None else read_table(path, (SIDES[side],)).each():
        with told_at(line.number):
            segment = cells.segment(line)
            found[segment.name].append(_label(segment, side, line.text(SIDES[side])))
    return dict(found)


def _label(segment: Segment, side: int, text: str) -> Hashable:
    if not text:
        raise InvalidInput(f"the {SIDES[side]} is empty; give its label.")
    known = None if segment.labels is None else segment.labels[side]
    numbers = known is None or all(type(label) is int for label in known)
    if not numbers:
        return text
    try:
        return int(text)
    except ValueError:
        raise InvalidInput(
            f"the {SIDES[side]} is {text!r}; those of segment {segment.name!r} are whole numbers."
        ) from None


def _masked(design: Design, path: str | None) -> dict[str, list[tuple[Hashable, Hashable]]]:
    """Read the cells that are not to be asked any more."""
    found: dict[str, list[tuple[Hashable, Hashable]]] = defaultdict(list)
    cells = Cells(design)
    for line in [] if path is None else read_table(path, SIDES).each():
        with told_at(line.number):
            segment = cells.segment(line)
            places = [cells.place(segment, side, line.text(SIDES[side])) for side in (0, 1)]
            row, column = (label_of(segment, side, places[side]) for side in (0, 1))
            found[segment.name].append((row, column))
    return dict(found)
