"""A campaign against a model in memory: asks, answers and accidents in any order."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from malocate import Batches, Campaign, Conflict, Design, Segment, SoftImpute

LEASE = 10.0
PEOPLE = st.sampled_from(["Al", "Bo", "Cy"])
VALUES = st.sampled_from([-1.0, 0.5, 2.0])


@dataclass
class Draw:
    """A draw as it should be."""

    state: str = "open"
    attempt: int = 0
    expired: int = 0
    who: str | None = None
    deadline: float | None = None
    value: float | None = None
    told_on: int | None = None
    late: bool = False
    extras: dict[int, float] = field(default_factory=dict)

    def is_out(self, attempt: int) -> bool:
        return self.state == "lent" and self.attempt == attempt

    def reopen(self) -> None:
        self.state, self.who, self.deadline = "open", None, None

    def tell(self, attempt: int, value: float, now: float) -> str:
        if self.state != "answered":
            in_time = self.is_out(attempt) and now <= self.deadline
            refused = self.state == "refused" and self.attempt == attempt
            self.state, self.value, self.told_on = "answered", value, attempt
            self.deadline, self.late = None, not (in_time or refused)
            return "reversed" if refused else "answered" if in_time else "late"
        if self.told_on == attempt:
            return "same" if self.value == value else "conflict"
        if attempt not in self.extras:
            self.extras[attempt] = value
            return "extra"
        return "same" if self.extras[attempt] == value else "conflict"


@dataclass(frozen=True)
class Slip:
    """A ticket that somebody got."""

    id: str

    @property
    def draw(self) -> int:
        return int(self.id.split("-")[1])

    @property
    def attempt(self) -> int:
        return int(self.id.split("-")[2])


class Survey(RuleBasedStateMachine):
    """A campaign and its model."""

    tickets = Bundle("tickets")

    @initialize()
    def begin(self):
        self.folder = tempfile.TemporaryDirectory()
        self.url = f"sqlite:///{self.folder.name}/survey.db"
        self.now, self.state, self.events = 1_000.0, "open", 0
        self.draws: dict[int, Draw] = {}
        design = Design(
            [Segment("north", (4, 3)), Segment("south", (3, 3))],
            26,
            estimator=SoftImpute(penalty=1.0, tol=1e-2),
            schedule=Batches(size=4, first=5),
        )
        self.campaign = Campaign.create(self.url, design, clock=self.clock)

    def clock(self) -> float:
        return self.now

    def teardown(self):
        if hasattr(self, "campaign"):
            self.campaign.store.seal(self.campaign.id)
            found = self.campaign.store.check(self.campaign.id)
            assert (found.broken, found.unsealed) == ("", 0)
            self.campaign.close()
            self.folder.cleanup()

    def reclaim(self):
        for each in self.draws.values():
            if each.state == "lent" and each.deadline < self.now:
                each.reopen()
                each.expired += 1
                each.state = "given up" if each.expired == 5 else "open"

    def learn_round(self):
        """Learn of draws that were planned because there was nothing left to ask."""
        with self.campaign.store.looking(self.campaign.id) as look:
            ids = [each.id for each in look.every_draw()]
            self.state = look.held.state
        new = [each for each in ids if each not in self.draws]
        settled = all(each.state not in ("open", "lent") for each in self.draws.values())
        assert settled or not new
        self.draws.update((each, Draw()) for each in new)

    @rule(target=tickets, who=PEOPLE, n=st.integers(1, 4))
    def ask(self, who, n):
        got = self.campaign.ask(n, who=who, lease=LEASE)
        self.reclaim()
        self.learn_round()
        mine = [k for k, each in sorted(self.draws.items()) if each.who == who and self.lent(k)]
        room = max(0, n - len(mine)) if self.state == "open" else 0
        fresh = [k for k, each in sorted(self.draws.items()) if each.state == "open"][:room]
        for each in (self.draws[k] for k in fresh):
            each.state, each.who, each.deadline = "lent", who, self.now + LEASE
            each.attempt += 1
        slips = [Slip(ticket.id) for ticket in got]
        assert [each.draw for each in slips] == [*mine[:n], *fresh]
        assert [each.attempt for each in slips] == [self.draws[k.draw].attempt for k in slips]
        assert [ticket.deadline for ticket in got] == [self.draws[k.draw].deadline for k in slips]
        return multiple(*slips)

    def lent(self, draw):
        return self.draws[draw].state == "lent"

    @rule(ticket=tickets, value=VALUES)
    def tell(self, ticket, value):
        expected = self.draws[ticket.draw].tell(ticket.attempt, value, self.now)
        if expected == "conflict":
            with pytest.raises(Conflict, match="answered otherwise"):
                self.campaign.tell(ticket.id, value)
        else:
            assert self.campaign.tell(ticket.id, value) == expected

    @rule(chosen=st.lists(st.tuples(tickets, VALUES), max_size=5))
    def tell_many(self, chosen):
        expected = [
            self.draws[each.draw].tell(each.attempt, value, self.now) for each, value in chosen
        ]
        told = [(each.id, value) for each, value in chosen]
        assert self.campaign.tell_many(told) == expected

    def when_out(self, ticket, work) -> Draw | None:
        """Do it, if the ticket is out, and see that it is refused otherwise."""
        each = self.draws[ticket.draw]
        if each.is_out(ticket.attempt):
            work()
            return each
        with pytest.raises(Conflict, match="not out any more"):
            work()
        return None

    @rule(ticket=tickets)
    def renew(self, ticket):
        if each := self.when_out(ticket, lambda: self.campaign.renew(ticket.id, LEASE)):
            each.deadline = self.now + LEASE

    @rule(ticket=tickets)
    def release(self, ticket):
        if each := self.when_out(ticket, lambda: self.campaign.release(ticket.id)):
            each.reopen()

    @rule(ticket=tickets)
    def decline(self, ticket):
        before = self.draws[ticket.draw]
        if before.state == "refused" and before.attempt == ticket.attempt:
            self.campaign.decline(ticket.id)  # a second time changes nothing
        elif each := self.when_out(ticket, lambda: self.campaign.decline(ticket.id, "no")):
            each.state, each.deadline = "refused", None

    @rule(ticket=tickets, value=VALUES)
    def correct(self, ticket, value):
        each = self.draws[ticket.draw]
        if each.state == "answered" and each.told_on == ticket.attempt:
            assert self.campaign.correct(ticket.id, value, reason="typo") == each.value
            each.value = value
            return
        with pytest.raises(Conflict, match="no answer that counts"):
            self.campaign.correct(ticket.id, value, reason="typo")

    @rule(seconds=st.sampled_from([1.0, LEASE / 2, LEASE + 1, -3.0, -2 * LEASE]))
    def time_passes(self, seconds):
        self.now += seconds

    @rule()
    def give_up(self):
        self.reclaim()
        given = [each for each in self.draws.values() if each.state == "open"]
        assert self.campaign.give_up() == len(given)
        for each in given:
            each.state = "given up"

    @rule()
    def pause(self):
        self.turn("paused", self.campaign.pause)

    @rule()
    def resume(self):
        self.turn("open", self.campaign.resume)

    def turn(self, to, work):
        if self.state in ("open", "paused"):
            work()
            self.state = to
            return
        with pytest.raises(Conflict, match="is done"):
            work()

    @rule()
    def reopen(self):
        self.campaign.close()
        self.campaign = Campaign.open(self.url, clock=self.clock)

    @invariant()
    def the_database_holds_what_it_should(self):
        if not hasattr(self, "campaign"):
            return
        with self.campaign.store.looking(self.campaign.id) as look:
            found = {each.id: each for each in look.every_draw()}
            assert look.held.state == self.state
        assert found.keys() == self.draws.keys()
        counts = self.campaign.store.counts(self.campaign.id)
        expired = sum(each.expired for each in self.draws.values())
        assert sum(each.draws for each in counts) == len(found)
        assert sum(each.expired for each in counts) == expired
        for state in ("open", "lent", "answered", "refused", "given up"):
            stand = [each.late for each in self.draws.values() if each.state == state]
            assert sum(each.draws for each in counts if each.state == state) == len(stand)
            late = sum(each.draws for each in counts if (each.state, each.late) == (state, True))
            assert late == sum(stand)
        for number, each in self.draws.items():
            kept = found[number]
            assert (kept.state, kept.attempt, kept.deadline) == (
                each.state,
                each.attempt,
                each.deadline,
            )
            assert (kept.value, kept.told_attempt, kept.late) == (
                each.value,
                each.told_on,
                each.late,
            )
            if each.state in ("open", "lent"):
                assert kept.who == each.who

    @invariant()
    def the_log_only_grows(self):
        if not hasattr(self, "campaign"):
            return
        count = sum(1 for _ in self.campaign.store.events(self.campaign.id))
        assert count >= self.events
        self.events = count


TestSurvey = Survey.TestCase
TestSurvey.settings = settings(max_examples=12, stateful_step_count=30)


@pytest.mark.slow
class TestSurveyAtLength(Survey.TestCase):
    settings = settings(max_examples=300, stateful_step_count=60)
