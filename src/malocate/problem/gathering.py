"""Answers by bands of whole rows, so that each band can be grouped by itself in little memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from malocate.problem.arrays import Floats, Int32s, Int64s

Piece = tuple[Int32s, Int32s, Floats]
Pieces = Callable[[], Iterator[Piece]]
"""Gives a walk over rows, columns and values of the answers, as often as it is called."""

AT_ONCE = 1 << 20
"""Answers that are gathered at once, at least."""

PASSES = 16
"""Walks over the answers, about: with more of them a band is as large as that asks for."""


def by_rows(pieces: Pieces, count: int, shape: tuple[int, int]) -> Iterator[Piece]:
    """Give the answers band by band, rows ascending from band to band, in their order inside.

    A band holds about a sixteenth of many answers, and of few all; but always whole rows.

    >>> rows, cols, values = np.array([2, 0, 2]), np.array([0, 1, 1]), np.array([5.0, 3.0, 4.0])
    >>> [band[0].tolist() for band in by_rows(lambda: iter([(rows, cols, values)]), 3, (3, 2))]
    [[2, 0, 2]]
    """
    at_once = max(AT_ONCE, -(-count // PASSES))
    if count <= at_once:
        only = next(pieces(), None)
        yield only if only and only[0].size == count else _within(pieces, 0, shape[0], count)
        return
    per_row = _visits(pieces, shape[0])
    for first, last in _cuts(per_row, at_once):
        yield _within(pieces, first, last, int(per_row[first:last].sum()))


def _within(pieces: Pieces, first: int, last: int, count: int) -> Piece:
    """Gather the answers of the rows from `first` to `last`, of which there are `count`."""
    rows, cols, values = np.empty(count, np.int32), np.empty(count, np.int32), np.empty(count)
    at = 0
    for piece in pieces():
        ours = np.flatnonzero((piece[0] >= first) & (piece[0] < last))
        part = slice(at, at + ours.size)
        rows[part], cols[part], values[part] = (column[ours] for column in piece)
        at = part.stop
    return rows, cols, values


def _visits(pieces: Pieces, rows: int) -> Int64s:
    """Count the answers of each row."""
    visits = np.zeros(rows, np.int64)
    for at, _, _ in pieces():
        found = np.bincount(at)
        visits[: found.size] += found
    return visits


def _cuts(per_row: Int64s, at_once: int) -> Iterator[tuple[int, int]]:
    """Cut the rows into runs of about so many answers, or of one row that has more."""
    ends = np.cumsum(per_row)
    first = 0
    while first < ends.size:
        done = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, done + at_once, side="right")))
        yield first, last
        first = last
