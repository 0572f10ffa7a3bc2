"""A segment's answers as the store has them, as observations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from malocate.problem import Observations, Segment
from malocate.problem.arrays import Floats, Int64s
from malocate.rounds.looks import Cells
from malocate.store import Look


def observed(segment: Segment, rows: Sequence[tuple[Any, ...]]) -> Observations:
    """Give answers (number, row, column, repeats, chance, value) in the order of their numbers.

    Those at cells that are masked by now count no more.
    """
    if segment.mask is not None:
        rows = [row for row in rows if not segment.mask[row[1], row[2]]]
    numbers, at_rows, at_cols, repeats = (
        np.array([row[place] for row in rows], dtype=np.int64) for place in range(4)
    )
    values = np.array([row[5] for row in rows], dtype=np.float64)
    return segment.observations(
        at_rows,
        at_cols,
        values,
        draws=numbers,
        repeats=_with_origins(numbers, repeats),
        probability=_chances(segment, rows),
    )


def silent(segment: Segment, rows: Sequence[tuple[int, int, int]], stop: int) -> Cells:
    """Give the askable cells of draws numbered below `stop` that ended without an answer."""
    mask = np.zeros(segment.shape, dtype=np.bool_) if segment.mask is None else segment.mask
    chosen = [(row, col) for number, row, col in rows if number < stop and not mask[row, col]]
    cells = np.array(chosen, dtype=np.int64).reshape(-1, 2)
    return cells[:, 0], cells[:, 1]


def of_segment(look: Look, segment: Segment, place: int, stop: int) -> tuple[Observations, Cells]:
    """Give a segment's answers, and the cells of its draws below `stop` that have none."""
    return observed(segment, look.answered(place)), silent(segment, look.silent(place), stop)


def _with_origins(numbers: Int64s, repeats: Int64s) -> Int64s:
    """Let the first answered replicate of a draw without an answer stand for that draw."""
    again = repeats >= 0
    lost = again & ~np.isin(repeats, numbers)
    if not lost.any():
        return repeats
    found = repeats.copy()
    _, first, which = np.unique(repeats[lost], return_index=True, return_inverse=True)
    stand_ins = np.flatnonzero(lost)[first]
    found[lost] = numbers[stand_ins][which]
    found[stand_ins] = -1
    return found


def _chances(segment: Segment, rows: Sequence[tuple[Any, ...]]) -> Floats | None:
    """Give the chance that each draw had to land on its cell; None where all were uniform."""
    if all(row[4] is None for row in rows):
        return None
    usual = 1 / segment.n_askable
    return np.array([usual if row[4] is None else row[4] for row in rows], dtype=np.float64)
