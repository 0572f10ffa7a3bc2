"""Asking who is present: draws moved to their rows, uniform among their askable cells."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from malocate.design import Design
from malocate.errors import InvalidInput, NotFound
from malocate.problem import Segment
from malocate.problem.arrays import Int64s
from malocate.rounds.asking import uniform
from malocate.store import Cell, Drawn


@dataclass(frozen=True)
class Presence:
    """The rows that can be asked now, by the place of their segment."""

    design: Design
    rows: Mapping[int, tuple[int, ...]]

    @classmethod
    def of(cls, design: Design, rows: Iterable[Hashable], segment: str | None) -> Presence:
        """Find rows by their labels, or numbers where a segment has none."""
        wanted = list(dict.fromkeys(rows))
        if not wanted:
            raise InvalidInput("rows is empty; name who is present, or leave rows out.")
        found: dict[int, tuple[int, ...]] = {}
        for place in places_of(design, segment):
            here = _rows_of(design.segments[place], wanted)
            if here:
                found[place] = here
        known = {row for place, here in found.items() for row in _named(design, place, here)}
        if missing := [row for row in wanted if row not in known]:
            where = f"segment {segment!r}" if segment else "any segment"
            raise NotFound(f"There is no row {missing[0]!r} in {where}; check its spelling.")
        return cls(design, found)

    def redraw(self, candidates: Sequence[Drawn]) -> list[Cell]:
        """Move fresh draws to cells of the present rows; keep others that are there already.

        A draw that repeats another goes where that one goes; one that was lent before stays.
        """
        found: list[Cell] = []
        moved: dict[tuple[int, int], Cell] = {}
        for drawn in candidates:
            origin = moved.get((drawn.segment, drawn.repeats))
            cell = self._cell(drawn) if origin is None else replace(origin, id=drawn.id)
            if cell is not None:
                found.append(replace(cell, repeats=drawn.repeats))
                moved[drawn.segment, drawn.number] = cell
        return found

    def cell_of(self, segment: int, number: int) -> tuple[int, int, float]:
        """Give the row and column that a draw is moved to, and the chance that it had."""
        cells = self._cells(segment)
        own = self.design.segments[segment]
        key = (self.design.seed, own.name, "present")
        place = int(uniform(np.array([number], dtype=np.int64), *key)[0] * len(cells))
        row, col = divmod(int(cells[place]), own.shape[1])
        return row, col, 1 / len(cells)

    def note(self) -> dict[str, list[list[int]]]:
        """Give them as the log keeps them: pairs of a segment's place and a row."""
        return {"present": [[place, row] for place, rows in self.rows.items() for row in rows]}

    def _cell(self, drawn: Drawn) -> Cell | None:
        if drawn.repeats >= 0 or drawn.attempt > 0:
            here = drawn.row in self.rows[drawn.segment]
            kept = Cell(drawn.id, drawn.row, drawn.col, drawn.repeats, drawn.probability)
            return kept if here else None
        if not len(self._cells(drawn.segment)):
            return None
        row, col, chance = self.cell_of(drawn.segment, drawn.number)
        return Cell(drawn.id, row, col, -1, chance)

    def _cells(self, place: int) -> Int64s:
        """Give the numbers of the askable cells of the present rows."""
        segment = self.design.segments[place]
        rows = np.array(sorted(self.rows[place]), dtype=np.int64)
        cells = (rows[:, None] * segment.shape[1] + np.arange(segment.shape[1])).ravel()
        return cells if segment.mask is None else cells[~segment.mask.ravel()[cells]]


def places_of(design: Design, segment: str | None) -> list[int]:
    """Give the places of the segment of that name, or of all."""
    names = [each.name for each in design.segments]
    if segment is None:
        return list(range(len(names)))
    if segment not in names:
        raise NotFound(f"There is no segment {segment!r}; there is {', '.join(names)}.")
    return [names.index(segment)]


def _rows_of(segment: Segment, wanted: Sequence[Hashable]) -> tuple[int, ...]:
    names = segment.labels[0] if segment.labels is not None else range(segment.shape[0])
    numbers = {name: number for number, name in enumerate(names)}
    return tuple(sorted(numbers[name] for name in wanted if name in numbers))


def _named(design: Design, place: int, rows: Sequence[int]) -> list[Hashable]:
    labels = design.segments[place].labels
    return [row if labels is None else labels[0][row] for row in rows]
