"""The store: all that a campaign keeps, in one database, each step a transaction of its own.

The contract, which SQLite and PostgreSQL both keep (`malocate.testing.StoreChecks` checks it):

- Each method that changes something is one transaction. It is done when the method has returned,
  and on the disk; when it has not returned, it is done in full or not at all.
- Any number of processes may call any methods at once. Nobody is told that the database is locked.
- An open draw is lent to one asker at a time. A draw is answered once: the first answer counts.
- A segment's draws are numbered from 0 on without gaps, by whoever plans its rounds; answers that
  were imported have numbers far above. `counts` goes by the last number.
- Every change leaves an event in the campaign's log, in the same transaction. Events are numbered
  in an order in which they could have happened one after the other: `looking` gives a state and a
  number such that the state is that after exactly the events up to that number.
- Nothing here knows what a design, a matrix or a clock is: they come from above, as texts and
  numbers.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, insert, select
from sqlalchemy.exc import IntegrityError

from malocate.errors import Conflict, NotFound
from malocate.store import (
    changes,
    counting,
    embedded,
    functions,
    locks,
    log,
    migrations,
    planning,
    telling,
)
from malocate.store import draws as drawing
from malocate.store.draws import Asked, Drawn, Redraw
from malocate.store.engines import Database
from malocate.store.log import Event, Seal
from malocate.store.looking import BY_ID, BY_NAME, HELD, MEMORIES, ROUNDS, SOME_ROUNDS, Held, Look
from malocate.store.planning import Planned
from malocate.store.schema import campaigns, rounds
from malocate.store.telling import Answer, Outcome


@dataclass(frozen=True)
class Lent:
    """What an asker has now, lent before and fresh; and the campaign's state and version."""

    state: str
    version: int
    before: list[Drawn]
    fresh: list[Drawn]


_names = select(campaigns.c.name).order_by(campaigns.c.id)
_this = campaigns.c.id == bindparam("of")
_asked = select(campaigns.c.state, campaigns.c.version, drawing.ANY_DUE, drawing.ANY_PENDING).where(
    _this
)
SEAL_EVERY = 1_000


class Store:
    """The database of one or several campaigns; see the contract above.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> store = Store.open(f"sqlite:///{folder.name}/tasting.db", create=True)
    >>> store.create("tasting", "the design", now=0.0).state
    'open'
    >>> store.names()
    ['tasting']
    >>> store.close(); folder.cleanup()
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self._usual = embedded if database.is_sqlite else functions

    @classmethod
    def open(cls, url: str, *, create: bool = False) -> Store:
        """Open a database, upgrading it where it is older; `create` makes one that is missing."""
        database = Database(url)
        try:
            _make_ready(database, create)
        except BaseException:
            database.close()
            raise
        return cls(database)

    def __str__(self) -> str:
        return str(self.database)

    def close(self) -> None:
        """Let go of all connections."""
        self.database.close()

    def create(self, name: str, design: str, *, now: float) -> Held:
        """Begin a campaign; its name is its own in this database."""
        row = {
            "name": name, "secret": secrets.token_bytes(16), "design": design, "version": 0,
            "caveats": "{}", "standing": "{}", "state": "open", "why": "", "round": 0,
            "planner": "", "planner_until": 0.0, "worker_until": 0.0, "created": now,
        }  # fmt: skip
        with self.database.writing() as connection:
            if connection.execute(BY_NAME, {"called": name}).first() is not None:
                raise Conflict(
                    f"{self} already holds a campaign {name!r}; open it, or take another name."
                )
            try:
                made = connection.execute(insert(campaigns).returning(*HELD), row).one()
            except IntegrityError:
                raise Conflict(
                    f"{self} already holds a campaign {name!r}; open it, or take another name."
                ) from None
            held = Held(*made)
            zero = {"campaign": held.id, "number": 0, "planned": now, "body": "{}"}
            connection.execute(insert(rounds), zero)
            log.append(connection, held.id, now, "created", {"name": name, "design": design})
            return held

    def names(self) -> list[str]:
        """Give the campaigns' names, the oldest first."""
        with self.database.reading() as connection:
            return [row[0] for row in connection.execute(_names)]

    def find(self, name: str) -> Held:
        """Give a campaign by its name."""
        with self.database.reading() as connection:
            found = connection.execute(BY_NAME, {"called": name}).first()
        if found is None:
            known = ", ".join(repr(each) for each in self.names()) or "none"
            raise NotFound(f"{self} holds no campaign {name!r}; there is {known}.")
        return Held(*found)

    def held(self, campaign: int) -> Held:
        """Give a campaign as it stands."""
        with self.database.reading() as connection:
            return Held(*connection.execute(BY_ID, {"of": campaign}).one())

    def lend(
        self,
        campaign: int,
        most: int,
        who: str,
        *,
        now: float,
        until: float,
        segments: Sequence[int] | None = None,
        redraw: Redraw | None = None,
        note: Mapping[str, Any] | None = None,
    ) -> Lent:
        """Lend draws to somebody, `most` of them together with those that they have already.

        A `note` goes into the log beside them.
        """
        usual = segments is None and redraw is None and note is None
        if usual:
            version, found = self._usual.lend(self.database, campaign, most, who, now, until)
            if found:
                return Lent("open", version, [], found)
        with self._changing(campaign, alone=redraw is not None) as connection:
            locks.asking(connection, campaign, who)
            told = {"of": campaign, "now": now, "asker": who}
            state, version, due, has_some = connection.execute(_asked, told).one()
            if due:
                self._reclaim(connection, campaign, now)
            before = drawing.pending(connection, campaign, who)[:most] if has_some else []
            fresh: list[Drawn] = []
            room = most - len(before) if state == "open" else 0
            if room > 0 and redraw is not None:
                fresh = drawing.lend_redrawn(
                    connection, campaign, room, who, until, segments or (), redraw
                )
            elif room > 0:
                fresh = drawing.lend(connection, campaign, room, who, until, segments)
            if fresh:
                body = _lent(who, until, fresh, redraw is not None)
                log.append(connection, campaign, now, "lent", {**body, **(note or {})})
            return Lent(state, version, before, fresh)

    def lend_each(self, campaign: int, asked: Sequence[Asked], *, now: float) -> list[Lent | None]:
        """Lend to several askers in one transaction; None for who has some, or gets none.

        `lend` knows what to do for those.
        """
        found = self._usual.lend_each(self.database, campaign, asked, now)
        return [Lent("open", version, [], lent) if lent else None for version, lent in found]

    def tell_each(
        self, campaign: int, answers: Sequence[Answer], *, now: float
    ) -> list[Outcome | None]:
        """Record first answers in one transaction; None for any other, which `tell` understands."""
        found: list[Outcome | None] = self._usual.tell_each(self.database, campaign, answers, now)
        return found

    def tell(self, campaign: int, answers: Sequence[Answer], *, now: float) -> list[Outcome]:
        """Record answers; say of each what became of it."""
        if len(answers) == 1:
            outcome = self._usual.tell(self.database, campaign, answers[0], now)
            if outcome is not None:
                return [outcome]
        with self._changing(campaign) as connection:
            return telling.tell(connection, campaign, answers, now)

    def renew(self, campaign: int, draw: int, attempt: int, *, now: float, until: float) -> bool:
        """Move a ticket's deadline; tell whether the ticket is out."""
        with self._changing(campaign) as connection:
            done = drawing.renew(connection, campaign, draw, attempt, until)
            if done:
                body = {"draw": draw, "try": attempt, "until": until}
                log.append(connection, campaign, now, "renewed", body)
            return done

    def release(self, campaign: int, draw: int, attempt: int, *, now: float) -> bool:
        """Put a ticket's draw back among the open ones; tell whether the ticket was out."""
        with self._changing(campaign) as connection:
            done = drawing.reopen(connection, campaign, draw, attempt)
            if done:
                log.append(connection, campaign, now, "released", {"draw": draw, "try": attempt})
            return done

    def decline(
        self, campaign: int, draw: int, attempt: int, *, reason: str, now: float
    ) -> Drawn | None:
        """Settle a ticket as refused; give the draw as it stands after that."""
        with self._changing(campaign) as connection:
            if drawing.settle(connection, campaign, draw, attempt, "refused"):
                body = {"draw": draw, "try": attempt, "reason": reason}
                log.append(connection, campaign, now, "declined", body)
            return drawing.one(connection, campaign, draw)

    def correct(
        self,
        campaign: int,
        draw: int,
        attempt: int,
        value: float,
        *,
        who: str,
        reason: str,
        now: float,
    ) -> Drawn | None:
        """Change an answer; give the draw as it stood before, None where that ticket has none."""
        with self._changing(campaign) as connection:
            before = drawing.one(connection, campaign, draw, lock=True)
            if before is None or before.state != "answered" or before.told_attempt != attempt:
                return None
            if before.value != value:
                drawing.correct(connection, campaign, draw, value)
                body = {"draw": draw, "was": before.value, "value": value, "who": who}
                log.append(connection, campaign, now, "corrected", body | {"reason": reason})
            return before

    def give_up(self, campaign: int, *, now: float) -> int:
        """Give up the draws that nobody has, and those whose deadline is over; count them."""
        with self._changing(campaign, alone=True) as connection:
            self._reclaim(connection, campaign, now)
            given = sorted(drawing.give_up(connection, campaign))
            if given:
                log.append(connection, campaign, now, "given up", {"draws": given})
            return len(given)

    def reclaim(self, campaign: int, *, now: float) -> int:
        """Take back what is lent beyond its deadline; count it."""
        with self._changing(campaign) as connection:
            return self._reclaim(connection, campaign, now)

    def waiting(self, campaign: int) -> tuple[bool, bool]:
        """Tell whether any draw is open, and whether any is lent."""
        with self.database.reading() as connection:
            return drawing.waiting(connection, campaign)

    def counts(self, campaign: int) -> list[counting.Count]:
        """Count draws by segment, state, whether late and whether imported."""
        with self.database.reading() as connection:
            return counting.counts(connection, campaign)

    def cells(
        self, campaign: int, segment: int, numbers: Sequence[int]
    ) -> dict[int, tuple[int, int, float | None]]:
        """Give row, column and chance of a segment's draws by their numbers."""
        with self.database.reading() as connection:
            return drawing.cells(connection, campaign, segment, numbers)

    def claim(self, campaign: int, me: str, *, after: int, now: float, until: float) -> bool:
        """Take or keep the lease on planning what follows a round; tell whether it is ours."""
        with self.database.writing() as connection:
            return planning.claim(connection, campaign, me, after, now, until)

    def unclaim(self, campaign: int, me: str) -> None:
        """Give the lease on planning back."""
        with self.database.writing() as connection:
            planning.unclaim(connection, campaign, me)

    def beat(self, campaign: int, *, until: float) -> None:
        """Say that a worker plans for this campaign, at least until then."""
        with self.database.writing() as connection:
            planning.beat(connection, campaign, until)

    def begin(self, campaign: int, planned: Planned, *, now: float) -> bool:
        """Begin a round; tell whether it was the one to follow, and nobody had begun it."""
        with self._changing(campaign, alone=True) as connection:
            return planning.begin(connection, campaign, planned, now)

    def end(self, campaign: int, planned: Planned, why: str, *, now: float) -> bool:
        """End a campaign whose last round is closed, instead of beginning another round."""
        with self._changing(campaign, alone=True) as connection:
            return planning.end(connection, campaign, planned, why, now)

    def turn(
        self,
        campaign: int,
        state: str,
        why: str,
        *,
        now: float,
        who: str,
        allowed: Sequence[str] = ("open", "paused", "done", "finished"),
    ) -> Held:
        """Pause, reopen or finish a campaign in an allowed state; give it as it was before."""
        with self._changing(campaign, alone=True) as connection:
            return planning.turn(connection, campaign, state, why, who, allowed, now)

    @contextmanager
    def _changing(self, campaign: int, *, alone: bool = False) -> Iterator[Connection]:
        """Begin a transaction that writes events of this campaign, beside others or alone."""
        with self.database.writing() as connection:
            (locks.alone if alone else locks.beside_others)(connection, campaign)
            yield connection

    @contextmanager
    def looking(self, campaign: int) -> Iterator[Look]:
        """Give one state of a campaign, and the number of the last event that it contains."""
        with self.database.reading() as connection:
            with locks.nobody_writing(self.database, campaign):
                look = Look(connection, campaign)
            yield look

    def seal(self, campaign: int, at_least: int = 1) -> int:
        """Seal the events that are in no block yet, if there are so many; count them."""
        with self._changing(campaign, alone=True) as connection:
            return log.seal(connection, campaign, at_least)

    def amend(
        self, campaign: int, prepare: Callable[[Look], changes.Amended], *, now: float
    ) -> None:
        """Change the design to what `prepare` makes of a state that nobody changes meanwhile."""
        with self._changing(campaign, alone=True) as connection:
            amended = prepare(Look(connection, campaign))
            changes.amend(connection, campaign, amended, now)

    def bring(
        self, campaign: int, prepare: Callable[[Look], changes.Brought], *, now: float
    ) -> int:
        """Add the answers from before the campaign that `prepare` gives; count them."""
        with self._changing(campaign, alone=True) as connection:
            brought = prepare(Look(connection, campaign))
            if brought.answers:
                changes.bring(connection, campaign, brought, now)
            return brought.count

    def erase(self, campaign: int, prepare: Callable[[Look], changes.Erased], *, now: float) -> int:
        """Remove the answers that `prepare` finds, and what the log says of them; count them."""
        with self._changing(campaign, alone=True) as connection:
            erased = prepare(Look(connection, campaign))
            changes.erase(connection, campaign, erased, now)
        self.database.scrub()
        return len(erased.draws)

    def check(self, campaign: int) -> Seal:
        """Compute the chain of events anew, and say where it breaks."""
        with self.database.reading() as connection:
            return log.check(connection, campaign)

    def events(self, campaign: int, after: int = 0) -> Iterator[Event]:
        """Give the events of a campaign, in order."""
        with self.database.reading() as connection:
            yield from log.events(connection, campaign, after)

    def rounds(
        self, campaign: int, after: int = 0, most: int | None = None
    ) -> list[tuple[int, float, str]]:
        """Give the rounds begun after a number, or so many of them: number, time and body."""
        with self.database.reading() as connection:
            told = {"of": campaign, "after": after}
            if most is None:
                rows = connection.execute(ROUNDS, told)
            else:
                rows = connection.execute(SOME_ROUNDS, told | {"most": most})
            return [(row[0], row[1], row[2]) for row in rows]

    def memories(self, campaign: int) -> dict[int, bytes]:
        """Give what is remembered of each segment."""
        with self.database.reading() as connection:
            rows = connection.execute(MEMORIES, {"of": campaign})
            return {row[0]: bytes(row[1]) for row in rows}

    def _reclaim(self, connection: Connection, campaign: int, now: float) -> int:
        over = drawing.reclaim(connection, campaign, now)
        if over:
            listed = [[draw, attempt] for draw, attempt, _ in over]
            lost = [draw for draw, _, state in over if state == "given up"]
            body = {"draws": listed, "given up": lost}
            log.append(connection, campaign, now, "expired", body)
        return len(over)


def _make_ready(database: Database, create: bool) -> None:
    """See that a database is ours and of this program's version, upgrading it where it is older."""
    if not database.exists and not create:
        raise NotFound(f"There is no database {database}; `malocate new` makes one.")
    with database.reading() as connection:
        version = migrations.version_of(connection)
    if version == 0 and not create:
        raise NotFound(f"{database} holds no campaign; `malocate new` makes one.")
    if version != len(migrations.MIGRATIONS):
        database.prepare()
        with database.writing() as connection:
            locks.upgrading(connection)
            migrations.upgrade(connection)


def _lent(who: str, until: float, fresh: Sequence[Drawn], moved: bool) -> dict[str, Any]:
    body: dict[str, Any] = {
        "who": who,
        "until": until,
        "draws": [[each.id, each.attempt] for each in fresh],
    }
    if moved:
        body["cells"] = [
            [each.id, each.row, each.col, each.repeats, each.probability] for each in fresh
        ]
    return body
