"""What every store must do with its log, and with rounds."""

from __future__ import annotations

import tracemalloc

from malocate.store import Answer, Event, Store
from malocate.store.log import append
from malocate.store.schema import blocks, log
from malocate.testing.store_base import HOUR, StoreBase, fresh, planned


class LogChecks(StoreBase):
    """The log tells everything, cannot be changed unseen, and rounds begin once."""

    # the log

    def test_every_change_is_an_event(self) -> None:
        with self.begun(5) as (store, campaign):
            store.lend(campaign, 4, "Al", now=2.0, until=HOUR)
            store.tell(campaign, [Answer(0, 1, 3.0)], now=3.0)
            store.renew(campaign, 1, 1, now=4.0, until=2 * HOUR)
            store.release(campaign, 1, 1, now=5.0)
            store.decline(campaign, 2, 1, reason="no", now=6.0)
            store.correct(campaign, 0, 1, 4.0, who="Di", reason="typo", now=7.0)
            store.reclaim(campaign, now=HOUR + 1)
            store.lend(campaign, 1, "Bo", now=HOUR + 2, until=2 * HOUR)
            store.tell(campaign, [Answer(1, 1, 3.0)], now=HOUR + 3)
            store.tell(campaign, [Answer(1, 2, 3.0)], now=HOUR + 4)
            store.give_up(campaign, now=HOUR + 5)
            store.turn(campaign, "paused", "tea", now=HOUR + 6, who="Di")
            store.end(campaign, planned(2, []), "enough", now=HOUR + 7)
            events = list(store.events(campaign))
            assert [each.kind for each in events] == [
                "created", "planned", "lent", "told", "renewed", "released", "declined",
                "corrected", "expired", "lent", "told", "extra", "given up", "turned", "stopped",
            ]  # fmt: skip
            assert [each.at for each in events] == sorted(each.at for each in events)
            assert [each.id for each in events] == sorted({each.id for each in events})
            assert list(store.events(campaign, after=events[4].id)) == events[5:]

    def test_an_event_says_what_happened(self) -> None:
        with self.begun(2) as (store, campaign):
            store.lend(campaign, 2, "Al", now=2.0, until=10.0)
            store.tell(campaign, [Answer(0, 1, 0.1)], now=3.0)
            store.tell(campaign, [Answer(1, 1, 0.2)], now=11.0)
            lent, told, late = (each.told for each in list(store.events(campaign))[2:])
            assert {name: lent[name] for name in ("who", "until", "draws")} == {
                "who": "Al", "until": 10.0, "draws": [[0, 1], [1, 1]],
            }  # fmt: skip
            assert (told["draw"], told["try"], told["value"], told["who"]) == (0, 1, 0.1, "Al")
            assert "late" not in told
            assert late["late"] is True

    def test_sealed_events_check(self) -> None:
        with self.begun() as (store, campaign):
            assert store.check(campaign).unsealed == 2
            assert store.seal(campaign, at_least=3) == 0
            assert store.seal(campaign) == 2
            assert store.seal(campaign) == 0
            store.lend(campaign, 3, "Al", now=2.0, until=HOUR)
            found = store.check(campaign)
            assert (found.events, found.blocks, found.unsealed, found.broken) == (3, 1, 1, "")
            assert store.seal(campaign) == 1
            assert store.check(campaign).blocks == 2

    def test_memory_is_bound_by_the_data_and_not_by_the_log(self) -> None:
        with self.begun() as (store, campaign):
            peaks = []
            for more in (2, 4):
                for _ in range(more):
                    _note(store, campaign, 6_000)
                peaks.append(_peak(store, campaign))
            assert peaks[1] < 1.2 * peaks[0]  # with three times as many events

    def test_a_changed_event_is_found(self) -> None:
        with self.begun() as (store, campaign):
            chosen = _sealed(store, campaign)
            for name, value in {"body": "{}", "at": 0.5, "kind": "lost"}.items():
                _change(store, chosen, **{name: value})
                assert "not what block 2 sealed" in store.check(campaign).broken
                _change(store, chosen, **{name: getattr(chosen, name)})
                assert store.check(campaign).broken == ""

    def test_a_dropped_event_is_found(self) -> None:
        with self.begun() as (store, campaign):
            chosen = _sealed(store, campaign)
            with store.database.writing() as connection:
                connection.execute(log.delete().where(log.c.id == chosen.id))
            assert "block 2 was sealed over 4 events and holds 3" in store.check(campaign).broken

    def test_an_event_slipped_in_is_found(self) -> None:
        with self.begun() as (store, campaign):
            chosen = _sealed(store, campaign)
            row = {"id": chosen.id, "campaign": campaign, "at": 0.0, "kind": "told", "body": "{}"}
            with store.database.writing() as connection:
                connection.execute(log.delete().where(log.c.id == chosen.id))
                connection.execute(log.insert().values(row))
            assert "not what block 2 sealed" in store.check(campaign).broken

    def test_an_event_of_another_campaign_slipped_in_is_found(self) -> None:
        with self.begun() as (store, campaign):
            other = store.create("other", "", now=2.0).id
            chosen = next(store.events(other))
            _sealed(store, campaign)
            store.seal(other)
            _change(store, chosen, campaign=campaign)
            assert "block 2 was sealed over 4 events and holds 5" in store.check(campaign).broken
            assert "block 1 was sealed over 1 events and holds 0" in store.check(other).broken

    def test_a_changed_block_is_found(self) -> None:
        with self.begun() as (store, campaign):
            _sealed(store, campaign)
            with store.database.writing() as connection:
                connection.execute(
                    blocks.update().where(blocks.c.number == 1).values(digest=bytes(32))
                )
            assert "not what block 1 sealed" in store.check(campaign).broken

    # rounds

    def test_a_round_begins_once(self) -> None:
        with self.begun(2) as (store, campaign):
            events = list(store.events(campaign))
            for number in (0, 1, 3):
                late = planned(number, fresh(2, number=number, first=50), b"other")
                assert not store.begin(campaign, late, now=2.0)
            assert not store.end(campaign, planned(1, []), "enough", now=2.0)
            assert list(store.events(campaign)) == events
            assert store.memories(campaign) == {0: b"\x00memory"}
            assert store.begin(campaign, planned(2, fresh(2, number=2, first=2)), now=3.0)
            assert store.held(campaign).round == 2
            found = [(number, body) for number, _, body in store.rounds(campaign)]
            assert found == [(1, '{"round": 1}'), (2, '{"round": 2}')]
            assert [each.draws for each in store.counts(campaign)] == [2, 2]

    def test_no_round_begins_once_it_is_paused_or_over(self) -> None:
        with self.begun(0) as (store, campaign):
            for state in ("paused", "finished"):
                store.turn(campaign, state, "", now=2.0, who="")
                assert not store.begin(campaign, planned(2, fresh(2, number=2)), now=3.0)
            assert store.held(campaign).round == 1

    def test_a_campaign_ends_once(self) -> None:
        with self.begun(0) as (store, campaign):
            assert store.end(campaign, planned(2, [], b"last"), "enough", now=2.0)
            assert not store.end(campaign, planned(2, []), "again", now=3.0)
            assert not store.begin(campaign, planned(2, fresh(2, number=2)), now=3.0)
            held = store.held(campaign)
            assert (held.state, held.why) == ("done", "enough")
            assert store.memories(campaign) == {0: b"last"}

    def test_one_plans_at_a_time(self) -> None:
        with self.begun(0) as (store, campaign):
            assert store.claim(campaign, "one", after=1, now=2.0, until=10.0)
            assert not store.claim(campaign, "two", after=1, now=9.0, until=20.0)
            assert store.claim(campaign, "one", after=1, now=9.0, until=20.0)
            assert not store.claim(campaign, "two", after=1, now=19.0, until=30.0)
            assert store.claim(campaign, "two", after=1, now=20.5, until=30.0)
            assert not store.claim(campaign, "one", after=1, now=21.0, until=40.0)

    def test_a_lease_on_planning_can_be_given_back(self) -> None:
        with self.begun(0) as (store, campaign):
            assert store.claim(campaign, "one", after=1, now=2.0, until=10.0)
            store.unclaim(campaign, "two")
            assert not store.claim(campaign, "two", after=1, now=3.0, until=10.0)
            store.unclaim(campaign, "one")
            assert store.claim(campaign, "two", after=1, now=3.0, until=10.0)

    def test_nobody_plans_what_follows_an_old_round(self) -> None:
        with self.begun(0) as (store, campaign):
            assert not store.claim(campaign, "one", after=0, now=2.0, until=10.0)
            assert not store.claim(campaign, "one", after=2, now=2.0, until=10.0)

    def test_draws_of_a_whole_campaign_are_numbered_on(self) -> None:
        with self.begun(4) as (store, campaign):
            with store.looking(campaign) as look:
                assert (look.next_draw, look.waiting) == (4, (True, False))
                assert look.held == store.held(campaign)
            other = store.create("other", "", now=0.0).id
            with store.looking(other) as look:
                assert look.next_draw == 0


def _note(store: Store, campaign: int, count: int) -> None:
    """Write events that change nothing, and seal them."""
    with store.database.writing() as connection:
        append(connection, campaign, 2.0, "noted", *({"said": "x" * 80} for _ in range(count)))
    store.seal(campaign)


def _peak(store: Store, campaign: int) -> int:
    """Give the bytes that are held at most while the chain is checked and the log is read."""
    tracemalloc.start()
    try:
        assert store.check(campaign).broken == ""
        with store.looking(campaign) as look:
            assert sum(1 for _ in look.events()) >= 6_000
        assert len(store.counts(campaign)) == 2
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _sealed(store: Store, campaign: int) -> Event:
    """Seal two blocks, and give an event in the middle of the second."""
    store.seal(campaign)
    for who in ("Al", "Bo", "Cy", "Di"):
        store.lend(campaign, 1, who, now=2.0, until=HOUR)
    store.seal(campaign)
    return list(store.events(campaign))[3]


def _change(store: Store, event: Event, **values: object) -> None:
    with store.database.writing() as connection:
        connection.execute(log.update().where(log.c.id == event.id).values(**values))
