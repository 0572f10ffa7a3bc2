"""Looking at a campaign: how it is held, and one state of it read within one transaction."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, func, select

from malocate.store import changes, log
from malocate.store import draws as drawing
from malocate.store.draws import Drawn
from malocate.store.log import Event, Seal
from malocate.store.schema import campaigns, draws, memories, rounds


@dataclass(frozen=True)
class Held:
    """A campaign as the store holds it."""

    id: int
    name: str
    secret: bytes
    design: str
    version: int
    caveats: str
    standing: str
    state: str
    why: str
    round: int
    planner: str
    planner_until: float
    worker_until: float
    created: float


HELD = tuple(campaigns.c[name] for name in Held.__dataclass_fields__)
BY_NAME = select(*HELD).where(campaigns.c.name == bindparam("called"))
BY_ID = select(*HELD).where(campaigns.c.id == bindparam("of"))
MEMORIES = select(memories.c.segment, memories.c.body).where(memories.c.campaign == bindparam("of"))
ROUNDS = (
    select(rounds.c.number, rounds.c.planned, rounds.c.body)
    .where(rounds.c.campaign == bindparam("of"), rounds.c.number > bindparam("after"))
    .order_by(rounds.c.number)
)
_first_draw = select(func.min(draws.c.id)).where(draws.c.campaign == bindparam("of"))
SOME_ROUNDS = ROUNDS.limit(bindparam("most"))
_next_draw = select(func.max(draws.c.id)).where(draws.c.campaign == bindparam("of"))


class Look:
    """One state of a campaign, read within one transaction."""

    def __init__(self, connection: Connection, campaign: int) -> None:
        self._connection, self._campaign = connection, campaign
        self.position = log.newest(connection, campaign)
        self.held = Held(*connection.execute(BY_ID, {"of": campaign}).one())

    @property
    def waiting(self) -> tuple[bool, bool]:
        """Whether any draw is open, and whether any is lent."""
        return drawing.waiting(self._connection, self._campaign)

    @property
    def next_draw(self) -> int:
        """The number for the next draw of the whole campaign."""
        told = {"of": self._campaign}
        last = self._connection.execute(_next_draw, told).scalar_one()
        return 0 if last is None else max(0, int(last) + 1)

    @property
    def next_imported(self) -> int:
        """The number for the next answer from before the campaign; they count down from -1."""
        first = self._connection.execute(_first_draw, {"of": self._campaign}).scalar_one()
        return min(0, int(first or 0)) - 1

    def answered(self, segment: int) -> list[tuple[Any, ...]]:
        """A segment's answers: number, row, column, repeats, chance, value."""
        return drawing.answered(self._connection, self._campaign, segment)

    def pending(self, who: str) -> list[Drawn]:
        """What somebody has been lent and has not settled."""
        return drawing.pending(self._connection, self._campaign, who)

    def silent(self, segment: int) -> list[tuple[int, int, int]]:
        """A segment's draws that ended without an answer: number, row, column."""
        return drawing.silent(self._connection, self._campaign, segment)

    def every_draw(self) -> Iterator[Drawn]:
        """All draws, in order."""
        return changes.every_draw(self._connection, self._campaign)

    def events(self) -> Iterator[Event]:
        """All events, in order."""
        return log.events(self._connection, self._campaign)

    def memories(self) -> dict[int, bytes]:
        """What is remembered of each segment."""
        rows = self._connection.execute(MEMORIES, {"of": self._campaign})
        return {row[0]: bytes(row[1]) for row in rows}

    def rounds(self) -> list[tuple[int, float, str]]:
        """All rounds: number, time and body."""
        rows = self._connection.execute(ROUNDS, {"of": self._campaign, "after": 0})
        return [(row[0], row[1], row[2]) for row in rows]

    def check(self) -> Seal:
        """The chain of events, computed anew."""
        return log.check(self._connection, self._campaign)

    @property
    def digest(self) -> str:
        """The digest of the last sealed block."""
        return log.head(self._connection, self._campaign)
