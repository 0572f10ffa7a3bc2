"""What every store must do when many use it at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from malocate.errors import Conflict
from malocate.store import Answer, Store, locks, log
from malocate.testing.store_base import HOUR, StoreBase, fresh, planned

CROWD = 6


class ThreadChecks(StoreBase):
    """Any number may call any methods at once; each thread has a store of its own.

    `patience` is how many seconds a check waits for what a right store may hold back.
    """

    patience = 0.3

    def test_a_draw_is_lent_to_one_of_a_crowd(self) -> None:
        with self.begun(60) as (store, campaign):
            lent: list[int] = []

            def ask(mine: Store, me: int) -> None:
                for turn in range(12):
                    got = mine.lend(campaign, 2, f"{me}-{turn}", now=2.0, until=HOUR)
                    lent.extend(each.id for each in got.fresh)

            self.at_once(ask)
            assert sorted(lent) == list(range(60))
            assert store.waiting(campaign) == (False, True)

    def test_one_asker_gets_the_same_tickets_in_several_places(self) -> None:
        with self.begun(40) as (_, campaign):
            given: list[tuple[int, ...]] = []

            def ask(mine: Store, _: int) -> None:
                got = mine.lend(campaign, 3, "Al", now=2.0, until=HOUR)
                given.append(tuple(each.id for each in (*got.before, *got.fresh)))

            self.at_once(ask)
            assert given == [(0, 1, 2)] * CROWD

    def test_of_answers_at_once_one_counts(self) -> None:
        with self.begun(20) as (store, campaign):
            store.lend(campaign, 20, "Al", now=2.0, until=HOUR)
            outcomes: list[str] = []

            def tell(mine: Store, me: int) -> None:
                for draw in range(20):
                    outcomes.extend(mine.tell(campaign, [Answer(draw, 1, float(me))], now=3.0))

            self.at_once(tell)
            assert outcomes.count("answered") == 20
            assert outcomes.count("conflict") == 20 * (CROWD - 1)
            kinds = [each.kind for each in store.events(campaign)]
            assert (kinds.count("told"), kinds.count("conflict")) == (20, 20 * (CROWD - 1))

    def test_batches_in_any_order_do_not_block_each_other(self) -> None:
        with self.begun(40) as (store, campaign):
            store.lend(campaign, 40, "Al", now=2.0, until=HOUR)

            def work(mine: Store, me: int) -> None:
                for turn in range(5):
                    order = sorted(range(40), key=lambda draw: (draw * (7 + 2 * me)) % 41)
                    mine.tell(campaign, [Answer(draw, 1, 1.0) for draw in order], now=3.0)
                    mine.reclaim(campaign, now=2 * HOUR)
                    mine.give_up(campaign, now=2 * HOUR + turn)

            self.at_once(work)
            answered = [each.draws for each in store.counts(campaign) if each.state == "answered"]
            assert sum(answered) == 40

    def test_a_state_is_that_of_its_number(self) -> None:
        with self.begun(240) as (store, campaign):
            seen: list[tuple[int, int]] = []
            over = threading.Event()

            def look() -> None:
                while not over.is_set():
                    with store.looking(campaign) as found:
                        answers = len(found.answered(0)) + len(found.answered(1))
                        seen.append((found.position, answers))

            def work(mine: Store, me: int) -> None:
                for turn in range(20):
                    got = mine.lend(campaign, 2, f"{me}-{turn}", now=2.0, until=HOUR)
                    mine.tell(campaign, [Answer(each.id, 1, 1.0) for each in got.fresh], now=3.0)

            with running(look):
                try:
                    self.at_once(work)
                finally:
                    over.set()
            told = [each.id for each in store.events(campaign) if each.kind == "told"]
            assert len(told) == 240
            assert seen
            for position, answers in seen:
                assert answers == sum(1 for event in told if event <= position)

    def test_a_look_is_not_overtaken_by_events_on_their_way(self) -> None:
        with self.begun(2) as (store, campaign), self.opened() as slow, self.opened() as quick:
            store.lend(campaign, 2, "Al", now=2.0, until=HOUR)
            told, looked = threading.Event(), threading.Event()
            seen: list[tuple[int, list[int]]] = []

            def tell() -> None:
                quick.tell(campaign, [Answer(0, 1, 1.0)], now=3.0)
                told.set()

            def look() -> None:
                told.wait(timeout=self.patience)
                with store.looking(campaign) as found:
                    seen.append((found.position, [each.id for each in found.events()]))
                looked.set()

            with ExitStack() as others, slow.database.writing() as connection:
                locks.beside_others(connection, campaign)
                log.append(connection, campaign, 3.0, "noted", {})
                others.enter_context(running(tell))
                others.enter_context(running(look))
                looked.wait(timeout=2 * self.patience)
            ((position, found),) = seen
            assert found == [each.id for each in store.events(campaign) if each.id <= position]

    def test_events_sealed_under_a_crowd_check(self) -> None:
        with self.begun(120) as (store, campaign):

            def work(mine: Store, me: int) -> None:
                for turn in range(10):
                    got = mine.lend(campaign, 2, f"{me}-{turn}", now=2.0, until=HOUR)
                    mine.tell(campaign, [Answer(each.id, 1, 1.0) for each in got.fresh], now=3.0)
                    mine.seal(campaign, at_least=2)

            self.at_once(work)
            store.seal(campaign)
            found = store.check(campaign)
            assert (found.broken, found.unsealed) == ("", 0)
            assert found.events == 2 + CROWD * 10 * 3

    def test_one_of_a_crowd_begins_a_round(self) -> None:
        with self.begun(0) as (store, campaign):
            began: list[int] = []

            def begin(mine: Store, me: int) -> None:
                if mine.begin(campaign, planned(2, fresh(5, number=2), b"%d" % me), now=2.0):
                    began.append(me)

            self.at_once(begin)
            (winner,) = began
            assert store.memories(campaign) == {0: b"%d" % winner}
            assert [each.kind for each in store.events(campaign)].count("planned") == 2

    def test_one_of_a_crowd_holds_the_lease_on_planning(self) -> None:
        with self.begun(0) as (_, campaign):
            mine_now: list[int] = []

            def claim(mine: Store, me: int) -> None:
                if mine.claim(campaign, str(me), after=1, now=2.0, until=60.0):
                    mine_now.append(me)

            self.at_once(claim)
            assert len(mine_now) == 1

    def test_a_crowd_may_make_the_database_and_one_the_campaign(self) -> None:
        made: list[int] = []

        def create(me: int) -> None:
            with self.opened() as store:
                try:
                    store.create("tasting", f"design of {me}", now=0.0)
                except Conflict:
                    return
                made.append(me)

        in_threads([partial(create, me) for me in range(CROWD)])
        with self.opened() as store:
            assert store.find("tasting").design == f"design of {made[0]}"
        assert len(made) == 1

    def at_once(self, work: Callable[[Store, int], None]) -> None:
        """Run the work in threads that begin together, each with a store of its own."""
        ready = threading.Barrier(CROWD)

        def run(me: int) -> None:
            with self.opened() as store:
                ready.wait(timeout=300)
                work(store, me)

        in_threads([partial(run, me) for me in range(CROWD)])


def in_threads(jobs: list[Callable[[], None]]) -> None:
    """Run jobs at once, and raise what the first that failed raised."""
    problems: list[BaseException] = []
    threads = [threading.Thread(target=_kept, args=(job, problems)) for job in jobs]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    if problems:
        raise problems[0]


@contextmanager
def running(job: Callable[[], None]) -> Iterator[None]:
    """Run a job beside what happens here."""
    problems: list[BaseException] = []
    thread = threading.Thread(target=_kept, args=(job, problems))
    thread.start()
    try:
        yield
    finally:
        thread.join()
    if problems:
        raise problems[0]


def _kept(job: Callable[[], None], problems: list[BaseException]) -> None:
    try:
        job()
    except BaseException as problem:  # noqa: BLE001  # raised again where the threads are joined
        problems.append(problem)
