"""A campaign: ask and tell, for weeks, by many hands, through crashes."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from malocate.campaign import differing, erasing, exporting, importing, lending, tickets
from malocate.campaign.amending import Amendment, CellsOf, Lines, prepared
from malocate.campaign.checks import (
    check_texts,
    checked_lease,
    checked_name,
    checked_request,
    checked_text,
)
from malocate.campaign.lending import Rows
from malocate.campaign.opening import closed_on_error, usual_name
from malocate.campaign.planner import Planner, Result
from malocate.campaign.reporting import Report, reported
from malocate.campaign.status import Status, status_of
from malocate.campaign.telling import answer_of, check_recorded
from malocate.campaign.tickets import Stub, Ticket, id_of, not_out, ticket_of
from malocate.campaign.trays import on_tray
from malocate.campaign.verifying import Progress, Verification, verify
from malocate.campaign.waves import Wave, wave_of
from malocate.compute import Compute
from malocate.confidence.difference import Difference
from malocate.design import Design
from malocate.errors import Conflict, InvalidType, NotFound
from malocate.problem import Segment
from malocate.problem.collecting import not_collecting
from malocate.rounds import Finding
from malocate.store import Answer, Asked, Brought, Held, Lent, Look, Outcome, Store

if TYPE_CHECKING:
    import pandas

LEASE = 3600.0
"""Seconds for which a ticket is lent, unless somebody says otherwise."""


class Campaign:
    """A survey that runs: it lends questions, takes answers, and decides what to ask next.

    Everything is kept in a database: an SQLite file, or PostgreSQL. Any number of processes may
    have the same campaign open. What a method has done when it returns is on the disk.

    >>> import tempfile
    >>> from malocate import Campaign, Design, Segment
    >>> folder = tempfile.TemporaryDirectory()
    >>> wines = Segment("north", labels=(["Al", "Bo", "Cy"], ["red", "white"]), scale=(1, 5))
    >>> campaign = Campaign.create(f"{folder.name}/tasting.db", Design([wines], budget=24))
    >>> ticket, *_ = campaign.ask(2, who="tablet-3")
    >>> campaign.tell(ticket.id, 4)
    'answered'
    >>> campaign.tell(ticket.id, 4)  # a second time, such as after a broken connection
    'same'
    >>> campaign.status().answered
    1
    >>> campaign.close(); folder.cleanup()
    """

    def __init__(
        self,
        store: Store,
        held: Held,
        *,
        clock: Callable[[], float] = time.time,
        compute: Compute | None = None,
    ) -> None:
        self.store, self.id, self.name = store, held.id, held.name
        self._secret, self._clock = held.secret, clock
        self._version = -1
        self._read(held)
        self._planner = Planner(store, held.id, clock, compute=compute)

    @classmethod
    def create(
        cls, url: str | Path, design: Design, *, name: str | None = None, **settings: Any
    ) -> Campaign:
        """Begin a campaign in a database, which is made if it is an SQLite file and missing.

        The name tells campaigns in one database apart; by default it is that of the file.
        """
        if not isinstance(design, Design):
            raise InvalidType(f"design is {design!r}; it must be a Design.")
        if name is not None:
            checked_name("name", name, "give the campaign a name, or leave it out")
        text = checked_text("design", design.to_toml())
        Design.from_toml(text)  # what cannot be read back must not begin
        store = Store.open(str(url), create=True)
        with closed_on_error(store):
            held = store.create(name or usual_name(store), text, now=time.time())
            return cls(store, held, **settings)

    @classmethod
    def open(cls, url: str | Path, name: str | None = None, **settings: Any) -> Campaign:
        """Open a campaign; its name is needed where the database holds several."""
        store = Store.open(str(url))
        with closed_on_error(store):
            names = store.names()
            if name is None and len(names) != 1:
                listed = ", ".join(names)
                several = f"holds several campaigns: {listed}; say which"
                raise NotFound(f"{store} {several if names else 'holds no campaign'}.")
            return cls(store, store.find(name or names[0]), **settings)

    def close(self) -> None:
        """Let go of the database."""
        self.store.close()

    def __enter__(self) -> Campaign:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Campaign({self.name!r}, {self.store})"

    @property
    def design(self) -> Design:
        """The design, as it was when this process last heard of it."""
        return self._design

    def ask(
        self,
        n: int = 1,
        *,
        who: str,
        lease: float = LEASE,
        capacity: int | None = None,
        segment: str | None = None,
        rows: Rows | None = None,
        plan: bool = True,
    ) -> list[Ticket]:
        """Lend up to `n` questions to somebody, for `lease` seconds.

        Whoever asks again gets the tickets back that they have not settled, before fresh ones.
        `capacity` is the most that they may have at once. `segment` asks one segment only, and
        `rows` only who is present: a fresh draw then falls on their askable cells, all alike, and
        its chance is recorded; several tickets come in the order of a balanced tray.

        The list is empty when nothing is to be asked now; `status` says why. When the round is
        answered, the next is planned here, unless a worker does it or `plan` is False.
        """
        wanted = self.wanted(n, who=who, lease=lease, capacity=capacity)
        lent = self._lend(wanted, segment, rows)
        idle = plan and lent.state == "open" and not lent.before and not lent.fresh
        if idle and not self._worker_is_there() and self.plan() == "planned":
            wanted = self.wanted(n, who=who, lease=lease, capacity=capacity)
            lent = self._lend(wanted, segment, rows)
        given = self._tickets(lent)
        return on_tray(given, given[0].draw) if rows is not None and given else given

    def wanted(
        self, n: int = 1, *, who: str, lease: float = LEASE, capacity: int | None = None
    ) -> Asked:
        """Check what somebody asks for without lending it."""
        return Asked(checked_request(n, who, lease, capacity), who, self._clock() + lease)

    def lend_each(self, wanted: Sequence[Asked]) -> list[list[Ticket]]:
        """Lend to several at once, each as `ask` does without planning, most in one transaction."""
        now = self._clock()
        found = self.store.lend_each(self.id, wanted, now=now) if wanted else []

        def lend(each: Asked) -> Lent:
            return self.store.lend(self.id, each.most, each.who, now=now, until=each.until)

        pairs = zip(wanted, found, strict=True)
        return [self._tickets(lend(each) if lent is None else lent) for each, lent in pairs]

    def wave(self, n: int) -> Wave:
        """Say how many questions to send next to which segments; nothing is lent.

        `n` are shared as the round has questions waiting, by largest remainders: never more than
        it holds, and segments short of their floors first. A round that is answered is followed
        by the next, which is planned here, unless a worker does it.
        """
        checked_request(n, "wave", LEASE, None)
        status = self.status()
        idle = status.state == "open" and not any(each.open + each.lent for each in status.segments)
        if idle and not self._worker_is_there() and self.plan() == "planned":
            status = self.status()
        return wave_of(self._design, status, n)

    def ask_wave(self, n: int, *, who: str, lease: float = LEASE) -> list[Ticket]:
        """Lend up to `n` questions, from each segment as many as `wave` says.

        As with `ask`, what `who` has not settled comes first.
        """
        had = len(self.pending(who))
        given = self.ask(min(n, had), who=who, lease=lease, plan=False) if had else []
        for segment, count in self.wave(n - had).quotas.items() if n > had else ():
            if count:
                given = self.ask(
                    len(given) + count, who=who, lease=lease, segment=segment, plan=False
                )
        return given

    def pending(self, who: str) -> list[Ticket]:
        """Give the tickets that somebody has been lent and has not settled."""
        with self.store.looking(self.id) as look:
            drawn = look.pending(who)
        return [ticket_of(self._design, self._secret, each) for each in drawn]

    def tell(self, ticket: str | Ticket, value: float) -> Outcome:
        """Record an answer; when this returns, it is on the disk.

        Gives "answered", "late" (after the deadline: it counts all the same), "reversed" (it had
        been refused, and counts now), "same" (it was told before: nothing is changed) or "extra"
        (somebody else had answered it in the meantime: it is kept, and does not count). Another
        value than before is a `Conflict`: `correct` changes an answer.
        """
        (outcome,) = self.tell_many([(ticket, value)])
        check_recorded(outcome, ticket, value)
        return outcome

    def tell_many(self, answers: Iterable[tuple[str | Ticket, float]]) -> list[Outcome]:
        """Record many answers at once; say of each what became of it, as `tell` does.

        One that cannot be read refuses them all, and nothing is recorded. A "conflict", and a
        question that is "gone" because it was erased, are only reported: the others are recorded.
        """
        return self.record(self.read(answers))

    def read(self, answers: Iterable[tuple[str | Ticket, float]]) -> list[Answer]:
        """Check answers without recording them; refuse what is no answer to a ticket."""
        return [self._answer(ticket, value) for ticket, value in answers]

    def check_ticket(self, ticket: str | Ticket) -> None:
        """Refuse what is no ticket of this campaign."""
        self._stub(ticket)

    def record(self, answers: Sequence[Answer]) -> list[Outcome]:
        """Record answers that were read; say of each what became of it."""
        return self.store.tell(self.id, answers, now=self._clock()) if answers else []

    def record_each(self, answers: Sequence[Answer]) -> list[Outcome]:
        """Record answers that came one by one, most in one transaction; the order is kept."""
        now = self._clock()
        found = self.store.tell_each(self.id, answers, now=now) if answers else []
        others = [each for each, outcome in zip(answers, found, strict=True) if outcome is None]
        rest = iter(self.record(others))
        return [next(rest) if outcome is None else outcome for outcome in found]

    def renew(self, ticket: str | Ticket, lease: float = LEASE) -> None:
        """Keep a ticket for `lease` more seconds from now."""
        checked_lease(lease)
        stub, now = self._stub(ticket), self._clock()
        if not self.store.renew(self.id, stub.draw, stub.attempt, now=now, until=now + lease):
            raise Conflict(not_out(ticket, "renewed"))

    def release(self, ticket: str | Ticket) -> None:
        """Give a ticket back, so that somebody else can be asked."""
        stub = self._stub(ticket)
        if not self.store.release(self.id, stub.draw, stub.attempt, now=self._clock()):
            raise Conflict(not_out(ticket, "released"))

    def decline(self, ticket: str | Ticket, reason: str = "") -> None:
        """Record that a question was refused; it is not asked again."""
        stub, now = self._stub(ticket), self._clock()
        checked_text("reason", reason)
        drawn = self.store.decline(self.id, stub.draw, stub.attempt, reason=reason, now=now)
        if drawn is None or drawn.state != "refused" or drawn.attempt != stub.attempt:
            raise Conflict(not_out(ticket, "declined"))

    def correct(
        self, ticket: str | Ticket, value: float, *, reason: str, who: str = ""
    ) -> float | None:
        """Change an answer, and give the one before; the change and its reason are logged."""
        check_texts(reason=reason, who=who)
        stub, answer = self._stub(ticket), self._answer(ticket, value)
        before = self.store.correct(
            self.id,
            stub.draw,
            stub.attempt,
            answer.value,
            who=who,
            reason=reason,
            now=self._clock(),
        )
        if before is None:
            words = "has no answer that counts; `tell` gives it one."
            raise Conflict(f"Ticket {id_of(ticket)} {words}")
        return before.value

    def give_up(self) -> int:
        """Give up what nobody has been lent of the round that is out, and count it.

        A round is closed, and the next planned, when all its questions are answered, refused or
        given up; this ends the wait for people who cannot be reached.
        """
        return self.store.give_up(self.id, now=self._clock())

    def plan(self) -> Result:
        """Close the round that is out and begin the next, if it is time."""
        return self._planner.step()

    def status(self) -> Status:
        """Say how the campaign stands."""
        held = self.store.held(self.id)
        self._read(held)
        return status_of(self._design, held, self.store.counts(self.id), self._clock())

    def report(self) -> Report:
        """Tell what was asked, how sure one can be, and what all of it rests on."""
        return reported(self.store, self.id, self._design, self.status(), self.findings())

    def report_page(self) -> str:
        """Give the report as one page of HTML that loads nothing, with charts and tables."""
        from malocate.campaign.report_page import page_of

        found, status = self.findings(), self.status()
        return page_of(self.store, self.id, self._design, status, found, self._clock())

    def findings(self) -> Sequence[Finding | None]:
        """Give what each segment's last look found: its completion and its band."""
        self._refresh()
        return self._planner.findings(self._design)

    def differences(
        self,
        *,
        columns: Sequence[Hashable] | None = None,
        rows: Sequence[Hashable] | None = None,
        segments: Sequence[str] | None = None,
        segment: str | None = None,
        column: Hashable = None,
        row: Hashable = None,
    ) -> list[Difference]:
        """Compare every two of some columns or rows of a segment, or of some segments.

        Segments are compared over all their cells, or at one `column` or `row`. What is compared
        are the draws of the segments' last looks, and each look spends its share: comparisons
        that are made at every look hold at all of them, and at all segments.
        """
        question = differing.Question(columns, rows, segments, segment, column, row)
        findings = self.findings()
        with self.store.looking(self.id) as look:
            known = differing.known(look, findings, question)
        return differing.differences(self._design, known, question)

    def export(self, what: str) -> pandas.DataFrame:
        """Give "answers", "completions", "bands", "decisions" or the "log" as a frame."""
        self._refresh()
        return exporting.export(what, self.store, self.id, self._design, self.findings)

    def import_answers(
        self,
        frame: pandas.DataFrame,
        *,
        uniform: bool = False,
        who: str = "",
        again: bool = True,
        without: Mapping[str, int] | None = None,
    ) -> int:
        """Bring answers along from before the campaign; give how many.

        The frame has the columns row, column, value (and segment, where there are several), by
        label. They cost nothing of the budget. Only if `uniform` declares that every askable
        cell had the same chance can bands that rest on them be called certified. How many cells
        were `without` an answer, by reason, is noted in the log; they are no draws of ours.
        """
        check_texts(who=who)

        def prepare(look: Look) -> Brought:
            self._read(look.held)
            return importing.prepared(look, self._design, frame, uniform, who, again, without)

        with not_collecting():
            return self.store.bring(self.id, prepare, now=self._clock())

    def amend(
        self,
        *,
        why: str,
        who: str = "",
        budget: float | None = None,
        epsilon: float | None = None,
        rmse: float | Mapping[str, float] | None = None,
        segments: Sequence[Segment] = (),
        rows: Lines | None = None,
        columns: Lines | None = None,
        mask: CellsOf | None = None,
    ) -> None:
        """Change the design while it runs; the change and its reason are logged.

        - `budget`, `epsilon`, `rmse`: new limits and goals. A campaign that has ended goes on.
        - `segments`: more segments.
        - `rows`, `columns`: more lines of segments, by name: ``{"north": ["Dee", "Eve"]}``.
        - `mask`: cells not to be asked any more: ``{"north": [("Al", "red")]}``.

        Where cells or segments change, bands are called approximate from then on, and say why.
        """
        check_texts(why=why, who=who)
        change = Amendment(
            budget, epsilon, rmse, tuple(segments), rows or {}, columns or {}, mask or {}
        )
        self.store.amend(self.id, lambda look: prepared(look, change, why, who), now=self._clock())
        self._refresh()

    def erase(
        self, *, who: str | None = None, segment: str | None = None, row: Hashable = None
    ) -> int:
        """Erase a person's data: all that `who` answered, or all about a row; count the answers.

        The answers, and what the log says of them, are removed; the log's chain stays valid. What
        was completed from them stays until the segment is next looked at. Decisions that rest on
        them can no longer be checked by `verify`, which says so. An erased row is not asked again.
        """
        count = self.store.erase(
            self.id,
            lambda look: erasing.prepared(look, who, segment, row),
            now=self._clock(),
        )
        self._refresh()
        return count

    def verify(self, progress: Progress = lambda *_: None) -> Verification:
        """Check that every decision and band follows from the answers, by doing it all again."""
        return verify(self.store, self.id, progress, self._planner.compute)

    def pause(self, why: str = "", *, who: str = "") -> None:
        """Lend nothing until `resume`; answers are still taken."""
        self._turn("paused", ("open", "paused"), why, who)

    def resume(self, why: str = "", *, who: str = "") -> None:
        """Go on after a pause."""
        self._turn("open", ("open", "paused"), why, who)

    def finish(self, why: str = "", *, who: str = "") -> None:
        """End the campaign for good; answers that are on their way are still taken."""
        self._turn("finished", ("open", "paused", "done", "finished"), why, who)

    def _turn(self, state: str, allowed: tuple[str, ...], why: str, who: str) -> None:
        check_texts(why=why, who=who)
        now = self._clock()
        held = self.store.turn(self.id, state, why, now=now, who=who, allowed=allowed)
        if held.state not in allowed:
            raise Conflict(
                f"Campaign {self.name!r} is {held.state} ({held.why}); it cannot be {state} now."
            )

    def _read(self, held: Held) -> None:
        """Take over the design, if it is another one than before."""
        if held.version != self._version:
            self._design, self._version = Design.from_toml(held.design), held.version

    def _refresh(self) -> None:
        self._read(self.store.held(self.id))

    def _lend(self, wanted: Asked, segment: str | None, rows: Rows | None) -> Lent:
        told = (self._design, wanted, self._clock())
        return lending.lend(self.store, self.id, *told, segment, rows)

    def _tickets(self, lent: Lent) -> list[Ticket]:
        if lent.version != self._version:
            self._refresh()
        drawn = [*lent.before, *lent.fresh]
        return [ticket_of(self._design, self._secret, each) for each in drawn]

    def _worker_is_there(self) -> bool:
        return lending.worker_is_there(self.store.held(self.id), self._clock())

    def _stub(self, ticket: str | Ticket) -> Stub:
        return tickets.read(self._secret, id_of(ticket))

    def _answer(self, ticket: str | Ticket, value: Any) -> Answer:
        stub = self._stub(ticket)
        if stub.segment >= len(self._design.segments):
            self._refresh()
        return answer_of(self._design, stub, ticket, value)
