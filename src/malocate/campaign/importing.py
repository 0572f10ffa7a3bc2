"""Answers that were there before the campaign: kept apart, and certified only if declared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from malocate.campaign.stepping import Caveats
from malocate.design import Design
from malocate.errors import InvalidInput, InvalidType, MalocateError
from malocate.problem import Segment
from malocate.problem.arrays import Floats, Int64s
from malocate.problem.counting import counted
from malocate.problem.draws import BEFORE
from malocate.store import Brought, Drawn, Imported, Look

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Found:
    """The answers of one segment, in the order of the frame."""

    rows: Int64s
    cols: Int64s
    values: Floats

    def by_row(self) -> Found:
        """Give the same, row after row."""
        order = np.argsort(self.rows, kind="stable")
        return Found(self.rows[order], self.cols[order], self.values[order])

    def parts(self) -> Iterator[tuple[int, int, int]]:
        """Give each row and where its answers are: an event of its own, so it can be erased."""
        starts = np.flatnonzero(np.r_[True, self.rows[1:] != self.rows[:-1]]).tolist()
        for start, stop in zip(starts, [*starts[1:], len(self.rows)], strict=True):
            yield int(self.rows[start]), start, stop

    def cells(self) -> list[tuple[int, float]]:
        """Give the columns and values of the answers."""
        return list(zip(self.cols.tolist(), self.values.tolist(), strict=True))

    def imported(self, segment: int, first: int) -> Imported:
        """Give the answers as draws, whose ids count down from `first`."""
        count = len(self.rows)
        return Imported(
            segment=[segment] * count,
            draw=range(first, first - count, -1),
            number=range(_number(first), _number(first) + count),
            row=self.rows.tolist(),
            col=self.cols.tolist(),
            value=self.values.tolist(),
        )


def read_frame(design: Design, frame: pandas.DataFrame) -> dict[int, Found]:
    """Read answers by label, grouped by the place of their segment; refuse by line, from 1."""
    import pandas

    if not isinstance(frame, pandas.DataFrame):
        raise InvalidType(f"import_answers was given a {type(frame).__name__}; give a DataFrame.")
    names = ["segment", "row", "column", "value"]
    wanted = names[1:] if len(design.segments) == 1 and "segment" not in frame else names
    if missing := [name for name in wanted if name not in frame]:
        raise InvalidInput(f"The answers have no column {missing[0]!r}; they need {wanted}.")
    if "segment" not in wanted:
        return {0: _checked(design.segments[0], frame, np.arange(len(frame)))} if len(frame) else {}
    places = {segment.name: place for place, segment in enumerate(design.segments)}
    codes = _places(frame["segment"], np.arange(len(frame)), places, "there is no segment")
    own = [(place, np.flatnonzero(codes == place)) for place in dict.fromkeys(codes.tolist())]
    return {place: _checked(design.segments[place], frame, lines) for place, lines in own}


def _checked(segment: Segment, frame: pandas.DataFrame, lines: Int64s) -> Found:
    """Give a segment's answers; all are checked at once, and again only to name a bad one."""
    sides = segment.labels or tuple(range(side) for side in segment.shape)
    rows, cols = (
        _places(
            frame[name],
            lines,
            {label: place for place, label in enumerate(side)},
            f"segment {segment.name!r} has no {name}",
        )
        for name, side in zip(("row", "column"), sides, strict=True)
    )
    values = frame["value"].iloc[lines].infer_objects().to_numpy()
    try:
        found = segment.observations(rows, cols, values)
    except MalocateError:
        at = _first_refused(segment, rows, cols, values)
        try:
            segment.observations(rows[at : at + 1], cols[at : at + 1], values[at : at + 1])
        except MalocateError as problem:
            raise type(problem)(f"line {lines[at] + 1}: {problem}") from None
        raise
    return Found(rows, cols, np.asarray(found.values, np.float64))


def _first_refused(segment: Segment, rows: Int64s, cols: Int64s, values: Any) -> int:
    """Give the place of the first answer that is refused, by halving."""
    low, high = 0, len(rows)  # the first `low` are fine, the first `high` are not
    while high - low > 1:
        middle = (low + high) // 2
        try:
            segment.observations(rows[:middle], cols[:middle], values[:middle])
            low = middle
        except MalocateError:
            high = middle
    return low


def _places(
    column: pandas.Series[Any], lines: Int64s, known: Mapping[Any, int], none: str
) -> Int64s:
    """Give the place of each label; `none` says that there is no such one."""
    import pandas

    try:
        codes, labels = pandas.factorize(column.iloc[lines], use_na_sentinel=False)
        places = np.array([known.get(label, -1) for label in labels.tolist()], np.int64)
    except TypeError:  # a label that cannot be one, such as a list
        found = [known.get(each, -1) if _can_be(each) else -1 for each in column.iloc[lines]]
        codes, places = np.arange(len(lines)), np.array(found, np.int64)
    numbers = places[codes] if len(places) else np.empty(0, np.int64)
    if (numbers < 0).any():
        at = lines[int(np.argmax(numbers < 0))]
        raise InvalidInput(f"line {at + 1}: {none} {column.iloc[at]!r}.")
    return numbers


def _can_be(label: object) -> bool:
    return isinstance(label, Hashable)


def prepared(
    look: Look,
    design: Design,
    frame: pandas.DataFrame,
    uniform: bool,
    who: str,
    again: bool = True,
    without: Mapping[str, int] | None = None,
) -> Brought:
    """Give the answers, caveats and events of an import; the first tells of cells `without` any."""
    found = read_frame(design, frame)
    if not again and found and all(_there(look, place, own) for place, own in found.items()):
        raise InvalidInput(
            f"All of it ({counted(len(frame), 'answer')}) is there already, imported before: taken "
            "twice, it would pass for answers without noise. If it is more of them, set again "
            "(--again)."
        )
    caveats = Caveats.read(look.held.caveats)
    reason = "Some answers were there before the campaign; nobody says how they were drawn."
    for place in () if uniform else found:
        caveats = doubted(caveats, design.segments[place].name, reason)
    declared = {"uniform": uniform, "who": who, "caveats": caveats.to_plain()}
    imported: list[Imported] = []
    events: list[dict[str, Any]] = []
    first = look.next_imported
    for place, answers in found.items():
        own = answers.by_row()
        cells = own.cells()
        for row, start, stop in own.parts():
            told = {"segment": place, "row": row, "first": first - start}
            events.append(told | {"answers": cells[start:stop]} | declared)
        imported.append(own.imported(place, first))
        first -= len(own.rows)
    if events and without:
        events[0]["without"] = dict(without)
    return Brought(imported, caveats.text(), events)


def _there(look: Look, segment: int, found: Found) -> bool:
    """Say whether all these answers are among those that were imported before."""
    if look.next_imported == -1:
        return False
    kept = (each for each in look.answered(segment) if each[0] >= BEFORE)
    before = Counter((row, col, value) for _, row, col, _, _, value in kept)
    own = zip(found.rows.tolist(), found.cols.tolist(), found.values.tolist(), strict=True)
    return Counter(own) <= before


def _number(draw: int) -> int:
    """Give the number within its segment: imported answers count up from `BEFORE`."""
    return BEFORE - 1 - draw


def brought(segment: int, row: int, first: int, answers: Sequence[Any]) -> list[Drawn]:
    """Give one row's imported answers as draws: their ids count down from `first`, below zero."""
    return [
        Drawn(
            first - place, 0, segment, _number(first - place), row, col, -1, None,
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
