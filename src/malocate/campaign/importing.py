"""Answers that were there before the campaign: kept apart, and certified only if declared."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from malocate.campaign.stepping import Caveats
from malocate.design import Design
from malocate.errors import InvalidInput, InvalidType, MalocateError
from malocate.problem import Segment
from malocate.problem.draws import BEFORE
from malocate.store import Brought, Drawn, Look

if TYPE_CHECKING:
    import pandas

Found = tuple[int, int, float]
"""A row, a column and a value."""


def read_frame(design: Design, frame: pandas.DataFrame) -> dict[int, list[Found]]:
    """Read answers by label, grouped by the place of their segment; refuse by line, from 1."""
    import pandas

    if not isinstance(frame, pandas.DataFrame):
        raise InvalidType(f"import_answers was given a {type(frame).__name__}; give a DataFrame.")
    names = ["segment", "row", "column", "value"]
    wanted = names[1:] if len(design.segments) == 1 and "segment" not in frame else names
    if missing := [name for name in wanted if name not in frame]:
        raise InvalidInput(f"The answers have no column {missing[0]!r}; they need {wanted}.")
    only = design.segments[0].name
    segments = frame["segment"] if "segment" in wanted else [only] * len(frame)
    columns = (segments, *(frame[name] for name in names[1:]))
    places = {segment.name: place for place, segment in enumerate(design.segments)}
    own: dict[int, list[Any]] = {}
    for line, (segment, *answer) in enumerate(zip(*columns, strict=True), start=1):
        if segment not in places:
            raise InvalidInput(f"line {line}: there is no segment {segment!r}.")
        own.setdefault(places[segment], []).append((line, *answer))
    return {place: _checked(design.segments[place], lines) for place, lines in own.items()}


def _checked(segment: Segment, lines: Sequence[Any]) -> list[Found]:
    """Give a segment's answers; all are checked at once, and one by one only to name a bad one."""
    table = _table(segment)
    try:
        found = [_placed(segment, table, *line[1:]) for line in lines]
        segment.observations(*zip(*found, strict=True))
    except MalocateError:
        for line in lines:
            try:
                row, col, value = _placed(segment, table, *line[1:])
                segment.observations([row], [col], [value])
            except MalocateError as problem:
                raise type(problem)(f"line {line[0]}: {problem}") from None
        raise
    return [(row, col, float(value)) for row, col, value in found]


def prepared(look: Look, frame: pandas.DataFrame, uniform: bool, who: str) -> Brought:
    """Give the draws, caveats and events of imported answers."""
    design = Design.from_toml(look.held.design)
    found = read_frame(design, frame)
    caveats = Caveats.read(look.held.caveats)
    first = min((each.id for each in look.every_draw() if each.id < 0), default=0) - 1
    drawn: list[Drawn] = []
    reason = "Some answers were there before the campaign; nobody says how they were drawn."
    for place in () if uniform else found:
        caveats = doubted(caveats, design.segments[place].name, reason)
    events = []
    for place, answers in found.items():
        for row, own in _by_row(answers).items():
            told = {"segment": place, "row": row, "first": first - len(drawn), "answers": own}
            declared = {"uniform": uniform, "who": who, "caveats": caveats.to_plain()}
            events.append(told | declared)
            drawn += brought(place, row, first - len(drawn), own)
    return Brought(drawn, caveats.text(), events)


def _by_row(answers: Sequence[Found]) -> dict[int, list[tuple[int, float]]]:
    """Give each row's columns and values: an event of its own, so that it can be erased."""
    found: dict[int, list[tuple[int, float]]] = {}
    for row, col, value in answers:
        found.setdefault(row, []).append((col, value))
    return found


def brought(segment: int, row: int, first: int, answers: Sequence[Any]) -> list[Drawn]:
    """Give one row's imported answers as draws: their ids count down from `first`, below zero."""
    return [
        Drawn(
            first - place, 0, segment, BEFORE - 1 - (first - place), row, col, -1, None,
            "imported", 0, None, None, value, 0, False,
        )
        for place, (col, value) in enumerate(answers)
    ]  # fmt: skip


def doubted(caveats: Caveats, segment: str, reason: str) -> Caveats:
    """Add a reason why no band of a segment may be called certified."""
    before = caveats.doubts.get(segment, "")
    if reason in before:
        return caveats
    return replace(caveats, doubts=caveats.doubts | {segment: f"{before} {reason}".strip()})


Table = tuple[dict[Hashable, int], dict[Hashable, int]]


def _table(segment: Segment) -> Table:
    labels = segment.labels or tuple(range(side) for side in segment.shape)
    rows, cols = ({label: place for place, label in enumerate(side)} for side in labels)
    return rows, cols


def _placed(
    segment: Segment, table: Table, row: Any, column: Any, value: Any
) -> tuple[int, int, Any]:
    for name, label, side in (("row", row, table[0]), ("column", column, table[1])):
        if label not in side:
            raise InvalidInput(f"segment {segment.name!r} has no {name} {label!r}.")
    return table[0][row], table[1][column], value
