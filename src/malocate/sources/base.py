"""What answers questions: the seam between asking and whoever is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from malocate.problem.arrays import Floats, Int64s


@dataclass(frozen=True, eq=False)
class Asked:
    """Cells that are asked, one for each draw.

    `draws` are the draws' numbers in their segment, and `visits` how often each draw's cell had
    been asked before it, in the order of the draws.
    """

    rows: Int64s
    cols: Int64s
    draws: Int64s
    visits: Int64s

    def __len__(self) -> int:
        """Count the draws."""
        return len(self.draws)


class Source(Protocol):
    """Answers draws of one segment.

    An answer depends on the draw and on `key` alone (a run's seed and a segment's name), never
    on what else is asked in the same call: so runs with one key see the same answers, however
    they are cut into rounds.
    """

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and columns the matrix has."""
        ...

    @property
    def truth(self) -> Floats | None:
        """The dense matrix of mean answers, where it is known."""
        ...

    def answer(self, asked: Asked, *key: int | str) -> Floats:
        """Give one answer for each draw."""
        ...
