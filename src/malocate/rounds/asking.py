"""Which cell a draw asks: a function of the seed, the segment and the draw's number alone.

So draws are the same however they are cut into rounds, runs of different strategies with one
seed ask the same cells in the same order, and a replay asks what was asked.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from malocate.design import Design
from malocate.problem import Segment
from malocate.problem.arrays import Bools, Floats, Int64s, frozen
from malocate.problem.hashing import keyed_hash
from malocate.sources.base import Asked

LARGEST_SHARE = 0.1
"""The most draws that re-ask an earlier one while ``replicates="auto"`` needs pairs."""

ENOUGH_PAIRS = 200
"""Pairs that settle a segment's noise level."""


@dataclass(frozen=True)
class Replicates:
    """A `share` of the draws numbered below `until` re-ask the cell of an earlier draw."""

    share: float
    until: float

    @classmethod
    def of(cls, design: Design, segment: Segment) -> Replicates:
        """Give the design's replicates in a segment.

        "auto" re-asks just enough for about 200 pairs, counting those that come by chance; none
        where the noise is declared, or where a look sees fresh draws alone.
        """
        if design.replicates != "auto":
            return cls(float(design.replicates), math.inf)
        if design.noise_variance is not None or design.schedule.fresh:
            return cls(0.0, 0.0)
        cells = segment.n_askable  # n draws give about n² / (2 · cells) pairs by chance
        until = cells * (math.sqrt(LARGEST_SHARE**2 + 2 * ENOUGH_PAIRS / cells) - LARGEST_SHARE)
        return cls(LARGEST_SHARE, until)

    def among(self, draws: Int64s, since: int = 0) -> Bools:
        """Tell which draws re-ask; evenly spread, and never the first, numbered `since`."""
        again: Bools = np.floor(self.share * (draws + 1)) > np.floor(self.share * draws)
        again &= (draws < self.until) & (draws > since)
        return again


def origins(draws: Int64s, replicates: Replicates, *key: int | str, since: int = 0) -> Int64s:
    """Give the draw whose cell each draw asks: itself, or the fresh draw that it repeats."""
    found = draws.copy()
    again = replicates.among(found, since)
    while again.any():  # a replicate of a replicate repeats the draw behind it
        earlier = found[again] - since
        chosen = (uniform(found[again], *key, "repeat") * earlier).astype(np.int64)
        found[again] = since + chosen
        again = replicates.among(found, since)
    return found


def cells(draws: Int64s, segment: Segment, *key: int | str) -> tuple[Int64s, Int64s]:
    """Give the row and the column of each draw, uniform among the askable cells."""
    place = (uniform(draws, *key, "cell") * segment.n_askable).astype(np.int64)
    if segment.mask is not None:
        place = np.flatnonzero(~segment.mask.ravel())[place]
    return place // segment.shape[1], place % segment.shape[1]


@dataclass(frozen=True, eq=False)
class Questions:
    """The draws of one segment in a round: which cells to ask, and which repeat which draw."""

    rows: Int64s
    cols: Int64s
    draws: Int64s
    repeats: Int64s  # -1 for a fresh draw

    def __len__(self) -> int:
        """Count the draws."""
        return len(self.draws)

    def asked(self, visits: Int64s) -> Asked:
        """Give them as a source takes them; `visits` of each cell before each draw."""
        return Asked(self.rows, self.cols, self.draws, visits)


def questions(design: Design, segment: Segment, first: int, stop: int, since: int = 0) -> Questions:
    """Give a segment's draws from number `first` up to `stop`, without it.

    `since` is the first draw that may be repeated: draws before a change of the segment's cells
    were at other cells than they would be now.

    >>> from malocate import Design, Segment
    >>> design = Design([Segment("north", (4, 3))], budget=100, seed=7)
    >>> some, more = (questions(design, design.segments[0], 0, stop) for stop in (5, 9))
    >>> bool((some.rows == more.rows[:5]).all())
    True
    """
    draws = np.arange(first, stop, dtype=np.int64)
    key = design.seed, segment.name
    origin = origins(draws, Replicates.of(design, segment), *key, since=since)
    rows, cols = cells(origin, segment, *key)
    repeats = np.where(origin == draws, -1, origin)
    return Questions(frozen(rows), frozen(cols), frozen(draws), frozen(repeats))


def uniform(numbers: Int64s, *key: int | str) -> Floats:
    """Give a number on [0, 1) for each number, by a hash."""
    return (keyed_hash(numbers, *key) >> np.uint64(11)).astype(np.float64) * 2.0**-53
