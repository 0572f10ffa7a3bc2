"""Where answers come from when people gave them before: recorded answers, drawn anew."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np

from malocate.errors import InvalidInput, InvalidType
from malocate.problem import Observations, Segment
from malocate.problem.arrays import Bools, Floats, Int64s, frozen
from malocate.problem.settings import check_switch
from malocate.sources.base import Asked
from malocate.sources.keyed import Key, pair_hash, uniforms

if TYPE_CHECKING:
    import pandas

__all__ = ["Replay"]


@dataclass(frozen=True, eq=False, init=False)
class Replay:
    """Recorded answers that answer again: a draw gets one of its cell's real answers.

    Parameters
    ----------
    answers : an `Observations`, or a frame with one line per answer; in what order does not matter.
    replace : True draws each answer uniformly among those of its cell, so that repeats are
        independent, and the truth is the matrix of the cells' mean answers. False gives the m-th
        visit of a cell the m-th of its answers, in an order by chance: no answer is used twice.
    exhausted : what a cell does without replacement once all its answers are used: "restart"
        uses them again, in a new order (`restarts` tells where); "refuse" raises an error.
    columns : names of columns and what else `Observations.from_frame` takes.

    Cells without an answer cannot be asked: `mask` marks them, and `segment` hands the mask on.

    Without replacement nothing is known about the truth, and it is None. Against the recorded
    means, errors of repeats would be negatively correlated (they sum to 0 over a cell's answers):
    repeats scatter more than single answers do, too much noise is subtracted, and bands come out
    too narrow. Bands then hold, if the recorded answers were independent, for the means that the
    people *would* give; and no longer where cells restart.

    >>> import pandas
    >>> tasting = pandas.DataFrame(
    ...     {"row": ["Al", "Al", "Bo"], "column": ["red", "red", "white"], "value": [4, 5, 2]}
    ... )
    >>> source = Replay(tasting, scale=(1, 5))
    >>> source.truth.tolist()
    [[4.5, nan], [nan, 2.0]]
    >>> source.segment("north").n_askable
    2
    """

    pool: Observations
    replace: bool
    exhausted: Literal["restart", "refuse"]

    def __init__(
        self,
        answers: Observations | pandas.DataFrame,
        *,
        replace: bool = True,
        exhausted: Literal["restart", "refuse"] = "restart",
        **columns: Any,
    ) -> None:
        check_switch("replace", replace)
        if exhausted not in ("restart", "refuse"):
            raise InvalidInput(f"exhausted is {exhausted!r}; it must be 'restart' or 'refuse'.")
        pool = _pool(answers, columns)
        if not len(pool):
            raise InvalidInput("There are no answers to replay; give at least one.")
        self.__dict__.update(pool=pool, replace=bool(replace), exhausted=exhausted)

    @classmethod
    def from_frame(
        cls,
        frame: pandas.DataFrame,
        *,
        segment: str = "segment",
        replace: bool = True,
        exhausted: Literal["restart", "refuse"] = "restart",
        **columns: Any,
    ) -> dict[Any, Replay]:
        """Give one source for each segment that a column of the frame names.

        >>> import pandas
        >>> lines = {"town": ["A", "B"], "row": [1, 1], "column": [1, 1], "value": [4, 2]}
        >>> list(Replay.from_frame(pandas.DataFrame(lines), segment="town"))
        ['A', 'B']
        """
        pools = Observations.from_frame(frame, segment=segment, **columns)
        by_name = cast("dict[Any, Observations]", pools)  # a dict, for a segment is named
        settings: dict[str, Any] = {"replace": replace, "exhausted": exhausted}
        return {name: cls(pool, **settings) for name, pool in by_name.items()}

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and columns the matrix has."""
        return self.pool.shape

    @cached_property
    def mask(self) -> Bools | None:
        """True where a cell has no answer and cannot be asked; None where all have."""
        if self.pool.n_seen == self.shape[0] * self.shape[1]:
            return None
        mask = np.ones(self.shape, dtype=np.bool_)
        mask[self.pool.entries.rows, self.pool.entries.cols] = False
        return frozen(mask)

    @cached_property
    def truth(self) -> Floats | None:
        """The cells' mean answers, nan where there is none; None without replacement."""
        if not self.replace:
            return None
        truth = np.full(self.shape, np.nan)
        truth[self.pool.entries.rows, self.pool.entries.cols] = self.pool.entries.means
        return frozen(truth)

    def segment(self, name: str, **settings: Any) -> Segment:
        """Give the segment that this source answers for; `settings` are those of `Segment`."""
        own = {"scale": self.pool.scale, "labels": self.pool.labels, "mask": self.mask}
        return Segment(name, self.shape, **{**own, **settings})

    def answer(self, asked: Asked, *key: Key) -> Floats:
        """Give one recorded answer for each draw.

        With replacement it depends on key, draw number and cell alone, without on key, cell and
        how often the cell was visited before.

        >>> pool = Observations([0, 0, 0], [0, 0, 0], [3, 4, 5], shape=(1, 1))
        >>> same, times = np.zeros(3, dtype=np.int64), np.arange(3)
        >>> drawn = Replay(pool, replace=False).answer(Asked(same, same, times, times), "a run")
        >>> sorted(drawn.tolist())
        [3.0, 4.0, 5.0]
        """
        entries = self._entries_of(asked)
        first, count = self._starts[entries], self.pool.entries.visits[entries]
        if self.replace:
            chance = uniforms(asked.draws, self._cells[entries], *key, "answer")
            return self._sorted[first + (chance * count).astype(np.int64)]
        if self.exhausted == "refuse":
            self._refuse_exhausted(asked, count)
        return self._sorted[self._shuffled(entries, asked.visits, *key)]

    def restarts(self, asked: Asked) -> Bools:
        """Tell which draws, without replacement, use an answer that was used before.

        >>> pool = Observations([0, 0], [0, 0], [3, 4], shape=(1, 1))
        >>> same, times = np.zeros(3, dtype=np.int64), np.arange(3)
        >>> Replay(pool, replace=False).restarts(Asked(same, same, times, times)).tolist()
        [False, False, True]
        """
        return asked.visits >= self.pool.entries.visits[self._entries_of(asked)]

    @cached_property
    def _cells(self) -> Int64s:
        return self.pool.entries.cells

    @cached_property
    def _sorted(self) -> Floats:
        """The answers by cell and then by value, so that the order of lines is forgotten."""
        return self.pool.values[np.lexsort((self.pool.values, self.pool.entry_numbers))]

    @cached_property
    def _starts(self) -> Int64s:
        """Where the answers of each entry begin in `_sorted`."""
        visits = self.pool.entries.visits
        return np.cumsum(visits) - visits

    def _entries_of(self, asked: Asked) -> Int64s:
        """Give the number of the entry that each draw asks; refuse cells without answers."""
        known, cells = self._cells, asked.rows * self.shape[1] + asked.cols
        found = np.minimum(np.searchsorted(known, cells), len(known) - 1)
        missing = known[found] != cells
        if missing.any():
            place = int(np.argmax(missing))
            raise InvalidInput(
                f"Draw {asked.draws[place]} asks cell ({asked.rows[place]}, {asked.cols[place]}),"
                " which has no recorded answer; ask a segment made by `segment`, which masks it."
            )
        return found

    def _refuse_exhausted(self, asked: Asked, count: Int64s) -> None:
        over = asked.visits >= count
        if over.any():
            place = int(np.argmax(over))
            raise InvalidInput(
                f"Draw {asked.draws[place]} asks cell ({asked.rows[place]}, {asked.cols[place]})"
                f" for the {asked.visits[place] + 1}. time, and it has {count[place]} recorded"
                " answers; draw with replace=True, or let cells restart with exhausted='restart'."
            )

    def _shuffled(self, entries: Int64s, visits: Int64s, *key: Key) -> Int64s:
        """Give the place in `_sorted` of the answer of each visit, in an order by chance.

        Only the entries asked are put in order: each pass over an entry's answers anew.
        """
        counts = self.pool.entries.visits
        turns = visits // counts[entries]
        most = int(turns.max(initial=0)) + 1
        passes, which = np.unique(entries * most + turns, return_inverse=True)
        entry, length = passes // most, counts[passes // most]
        begin = np.cumsum(length) - length
        group = np.repeat(np.arange(len(passes)), length)
        places = np.arange(len(group)) + (self._starts[entry] - begin)[group]
        order = np.lexsort((pair_hash(places, (passes % most)[group], *key, "order"), group))
        chosen: Int64s = places[order[begin[which] + visits % counts[entries]]]
        return chosen


def _pool(answers: Any, columns: dict[str, Any]) -> Observations:
    """Give the answers to draw from: as they are, or as a frame has them."""
    if isinstance(answers, Observations):
        if columns:
            raise InvalidType(f"{', '.join(columns)}: only a frame's columns are read by name.")
        return answers
    pool = Observations.from_frame(answers, **columns)
    if isinstance(pool, dict):
        raise InvalidInput(
            f"The frame has {len(pool)} segments; Replay.from_frame gives a source for each."
        )
    return pool
