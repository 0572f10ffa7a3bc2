"""Rows and columns found by the text that somebody wrote, whatever kind their labels are."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from malocate.errors import NotFound
from malocate.files import Line

if TYPE_CHECKING:
    from malocate.design import Design
    from malocate.problem import Segment

SIDES = ("row", "column")


class Cells:
    """The segments of a design by name, and places on their sides by the text of the label."""

    def __init__(self, design: Design) -> None:
        self.segments = {segment.name: segment for segment in design.segments}
        self._places = {
            (segment.name, side): _places(segment, side)
            for segment in design.segments
            for side in (0, 1)
        }

    def segment(self, line: Line) -> Segment:
        """Give the segment that a line names; it may be left out where there is only one."""
        return self.named(line.text("segment"))

    def named(self, name: str) -> Segment:
        """Give a segment by its name, which may be empty where there is only one."""
        if not name and len(self.segments) == 1:
            return next(iter(self.segments.values()))
        if name in self.segments:
            return self.segments[name]
        if not name:
            raise NotFound(f"no segment is named; there is {', '.join(self.segments)}.")
        raise NotFound(f"there is no segment {name!r}; {_instead(name, list(self.segments))}")

    def place(self, segment: Segment, side: int, text: str) -> int:
        """Give the number of a row (side 0) or a column (side 1)."""
        known = self.places(segment, side)
        if text not in known:
            raise NotFound(self.none(segment, side, text))
        return known[text]

    def places(self, segment: Segment, side: int) -> dict[str, int]:
        """Give the places on one side of a segment by the texts of their labels."""
        return self._places[segment.name, side]

    def none(self, segment: Segment, side: int, text: str) -> str:
        """Say that a segment has no such row or column."""
        where = f"segment {segment.name!r} has no {SIDES[side]} {text!r}"
        return f"{where}; {_instead(text, list(self.places(segment, side)))}"

    def rows(self, texts: Sequence[str], segment: str | None) -> list[Hashable]:
        """Give the labels of rows that somebody wrote; of one segment, or of any."""
        chosen = [each for each in self.segments if segment in (None, each)]
        found: list[Hashable] = []
        for text in texts:
            here = [name for name in chosen if text in self._places[name, 0]]
            labels = [
                label_of(self.segments[name], 0, self._places[name, 0][text]) for name in here
            ]
            found += labels or [text]  # what is not there is told of by `Campaign.ask`
        return found


def label_of(segment: Segment, side: int, place: int) -> Hashable:
    """Give the label at a place, or the place itself where a segment has no labels."""
    return place if segment.labels is None else segment.labels[side][place]


def _places(segment: Segment, side: int) -> dict[str, int]:
    return {str(label_of(segment, side, place)): place for place in range(segment.shape[side])}


def _instead(text: str, known: list[str]) -> str:
    near = get_close_matches(text, known, n=1)
    if near:
        return f"is {near[0]!r} meant?"
    more = f" and {len(known) - 5:,} more" if len(known) > 5 else ""
    return f"there is {', '.join(known[:5])}{more}."
