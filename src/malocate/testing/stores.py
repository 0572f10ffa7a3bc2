"""What every store must do: a class of checks to derive from."""

from __future__ import annotations

from collections.abc import Sequence

from malocate.errors import Conflict, NotFound
from malocate.store import Answer, Cell, Drawn
from malocate.store.draws import MOST_EXPIRED
from malocate.testing.store_base import HOUR, fresh, planned, refuses
from malocate.testing.store_logs import LogChecks
from malocate.testing.store_threads import ThreadChecks


class StoreChecks(LogChecks, ThreadChecks):
    """What any store must do; derive from it, name the class `Test…` and set `url`.

    `url` is the address of an empty database, another one for every check.

    >>> import tempfile
    >>> class TestFile(StoreChecks):
    ...     url = f"sqlite:///{tempfile.mkdtemp()}/campaign.db"
    >>> TestFile().test_the_first_answer_counts()
    """

    # campaigns

    def test_a_campaign_is_found_by_its_name(self) -> None:
        with self.opened() as store:
            made = store.create("été", "the design", now=5.0)
            assert store.find("été") == made == store.held(made.id)
            assert (made.state, made.round, made.created) == ("open", 0, 5.0)
            assert store.names() == ["été"]

    def test_a_name_is_taken_once(self) -> None:
        with self.opened() as store:
            made = store.create("tasting", "the design", now=0.0)
            assert refuses(Conflict, lambda: store.create("tasting", "another", now=1.0))
            assert store.held(made.id) == made
            assert store.names() == ["tasting"]

    def test_a_campaign_that_is_not_there_is_named(self) -> None:
        with self.begun() as (store, _):
            assert "'tasting'" in refuses(NotFound, lambda: store.find("testing"))

    def test_what_was_written_is_there_for_whoever_opens_it_next(self) -> None:
        with self.begun() as (store, campaign):
            store.lend(campaign, 2, "Al", now=2.0, until=HOUR)
            counts, held = store.counts(campaign), store.held(campaign)
        with self.opened() as store:
            assert store.counts(campaign) == counts
            assert store.held(campaign) == held
            assert store.memories(campaign) == {0: b"\x00memory"}

    def test_two_campaigns_in_one_database_do_not_mix(self) -> None:
        with self.begun() as (store, one):
            other = store.create("other", "another design", now=0.0).id
            assert store.lend(other, 3, "Al", now=2.0, until=HOUR).fresh == []
            assert store.begin(other, planned(1, fresh(2)), now=2.0)
            (mine,) = store.lend(other, 1, "Al", now=2.0, until=HOUR).fresh
            before = store.counts(one), list(store.events(one)), store.seal(one)
            assert store.tell(other, [Answer(mine.id, 1, 3.0)], now=3.0) == ["answered"]
            assert store.tell(one, [Answer(mine.id, 1, 3.0)], now=3.0) == ["gone"]
            store.turn(other, "paused", "", now=3.0, who="")
            assert store.give_up(other, now=2 * HOUR) == 1
            store.seal(other)
            assert (store.counts(one), list(store.events(one))) == before[:2]
            assert store.held(one).state == "open"
            assert [store.check(each).broken for each in (one, other)] == ["", ""]

    # lending

    def test_draws_are_lent_in_order_and_once(self) -> None:
        with self.begun(5) as (store, campaign):
            lent = [store.lend(campaign, 2, who, now=2.0, until=HOUR) for who in ("Al", "Bo", "Cy")]
            assert [[each.id for each in one.fresh] for one in lent] == [[0, 1], [2, 3], [4]]
            assert store.lend(campaign, 2, "Di", now=2.0, until=HOUR).fresh == []
            first = lent[0].fresh[0]
            assert (first.who, first.attempt, first.deadline) == ("Al", 1, HOUR)
            assert (first.state, first.segment, first.number) == ("lent", 0, 0)

    def test_who_asks_again_gets_the_same_tickets(self) -> None:
        with self.begun() as (store, campaign):
            first = store.lend(campaign, 2, "Al", now=2.0, until=HOUR)
            again = store.lend(campaign, 2, "Al", now=3.0, until=2 * HOUR)
            assert (again.before, again.fresh) == (first.fresh, [])
            more = store.lend(campaign, 3, "Al", now=3.0, until=HOUR)
            assert more.before == first.fresh
            assert [each.id for each in more.fresh] == [2]

    def test_any_name_comes_back_as_it_was(self) -> None:
        for who in ("Zoë", "愛子", "O'Hara", '"quoted" \\ \n', "🦊", " "):
            with self.opened() as store:
                campaign = store.create(f"of {who}", "the design", now=0.0).id
                store.begin(campaign, planned(1, fresh(2)), now=1.0)
                (lent,) = store.lend(campaign, 1, who, now=2.0, until=HOUR).fresh
                assert lent.who == who
                assert store.lend(campaign, 1, who, now=2.0, until=HOUR).before == [lent]
                assert store.tell(campaign, [Answer(lent.id, 1, 2.0)], now=3.0) == ["answered"]
                *_, said, told = store.events(campaign)
                assert (said.told["who"], told.told["who"]) == (who, who)

    def test_one_segment_can_be_asked(self) -> None:
        with self.begun() as (store, campaign):
            lent = store.lend(campaign, 9, "Al", now=2.0, until=HOUR, segments=[1])
            assert [each.id for each in lent.fresh] == [1, 3, 5]

    def test_draws_can_be_lent_at_other_cells(self) -> None:
        with self.begun() as (store, campaign):

            def move(found: Sequence[Drawn]) -> list[Cell]:
                return [Cell(found[0].id, 4, 2, -1, 0.25)]

            lent = store.lend(
                campaign, 2, "Al", now=2.0, until=HOUR, segments=[0, 1], redraw=move,
                note={"present": [[0, 4]]},
            )  # fmt: skip
            assert [(e.id, e.row, e.col, e.probability) for e in lent.fresh] == [(0, 4, 2, 0.25)]
            *_, last = store.events(campaign)
            assert last.told["cells"] == [[0, 4, 2, -1, 0.25]]
            assert last.told["present"] == [[0, 4]]
            assert store.waiting(campaign) == (True, True)

    def test_nothing_is_lent_while_paused(self) -> None:
        with self.begun() as (store, campaign):
            mine = store.lend(campaign, 1, "Al", now=2.0, until=HOUR).fresh
            store.turn(campaign, "paused", "holidays", now=3.0, who="Di")
            lent = store.lend(campaign, 2, "Al", now=4.0, until=HOUR)
            assert (lent.state, lent.before, lent.fresh) == ("paused", mine, [])
            assert store.tell(campaign, [Answer(0, 1, 2.0)], now=5.0) == ["answered"]
            store.turn(campaign, "open", "", now=6.0, who="Di")
            assert len(store.lend(campaign, 2, "Al", now=7.0, until=HOUR).fresh) == 2

    # deadlines

    def test_what_ran_out_is_lent_to_others(self) -> None:
        with self.begun(1) as (store, campaign):
            store.lend(campaign, 1, "Al", now=2.0, until=10.0)
            assert store.lend(campaign, 1, "Bo", now=10.0, until=20.0).fresh == []
            (again,) = store.lend(campaign, 1, "Bo", now=10.5, until=20.0).fresh
            assert (again.id, again.attempt, again.who) == (0, 2, "Bo")

    def test_what_ran_out_too_often_is_given_up(self) -> None:
        with self.begun(1) as (store, campaign):
            for time in range(MOST_EXPIRED):
                assert len(store.lend(campaign, 1, "Al", now=time, until=time + 0.5).fresh) == 1
            assert store.lend(campaign, 1, "Al", now=100.0, until=HOUR).fresh == []
            (left,) = store.counts(campaign)
            assert (left.state, left.draws, left.expired) == ("given up", 1, MOST_EXPIRED)
            assert store.waiting(campaign) == (False, False)

    def test_a_clock_that_goes_back_takes_nothing_away(self) -> None:
        with self.begun(1) as (store, campaign):
            store.lend(campaign, 1, "Al", now=100.0, until=200.0)
            assert store.reclaim(campaign, now=50.0) == 0
            assert store.tell(campaign, [Answer(0, 1, 2.0)], now=50.0) == ["answered"]

    def test_a_deadline_can_be_moved(self) -> None:
        with self.begun(1) as (store, campaign):
            store.lend(campaign, 1, "Al", now=2.0, until=10.0)
            assert store.renew(campaign, 0, 1, now=9.0, until=30.0)
            assert store.reclaim(campaign, now=20.0) == 0
            assert store.reclaim(campaign, now=31.0) == 1
            assert not store.renew(campaign, 0, 1, now=32.0, until=60.0)

    # settling without an answer

    def test_a_released_draw_is_lent_again_on_another_ticket(self) -> None:
        with self.begun(1) as (store, campaign):
            store.lend(campaign, 1, "Al", now=2.0, until=HOUR)
            assert store.release(campaign, 0, 1, now=3.0)
            assert not store.release(campaign, 0, 1, now=3.0)
            (again,) = store.lend(campaign, 1, "Bo", now=4.0, until=HOUR).fresh
            assert (again.attempt, again.who) == (2, "Bo")
            assert not store.release(campaign, 0, 1, now=5.0)

    def test_a_refused_draw_is_not_asked_again(self) -> None:
        with self.begun(1) as (store, campaign):
            store.lend(campaign, 1, "Al", now=2.0, until=HOUR)
            drawn = store.decline(campaign, 0, 1, reason="allergic", now=3.0)
            assert drawn is not None
            assert (drawn.state, drawn.attempt) == ("refused", 1)
            assert store.lend(campaign, 1, "Bo", now=4.0, until=HOUR).fresh == []
            again = store.decline(campaign, 0, 1, reason="allergic", now=5.0)
            assert again == drawn
            assert [each.kind for each in store.events(campaign)].count("declined") == 1

    def test_a_draw_that_is_not_there_changes_nothing(self) -> None:
        with self.begun(1) as (store, campaign):
            before = list(store.events(campaign))
            assert store.tell(campaign, [Answer(99, 1, 2.0), Answer(0, 0, 2.0)], now=2.0) == [
                "gone",
                "gone",
            ]
            assert store.decline(campaign, 99, 1, reason="", now=2.0) is None
            assert not store.renew(campaign, 99, 1, now=2.0, until=3.0)
            assert not store.release(campaign, 0, 0, now=2.0)
            assert store.correct(campaign, 0, 0, 2.0, who="", reason="", now=2.0) is None
            assert list(store.events(campaign)) == before

    def test_what_nobody_has_is_given_up(self) -> None:
        with self.begun(4) as (store, campaign):
            store.lend(campaign, 1, "Al", now=2.0, until=HOUR)
            store.lend(campaign, 1, "Bo", now=2.0, until=5.0)
            assert store.give_up(campaign, now=10.0) == 3
            assert store.waiting(campaign) == (False, True)
            assert store.give_up(campaign, now=10.0) == 0

    # answers

    def test_the_first_answer_counts(self) -> None:
        with self.begun() as (store, campaign):
            store.lend(campaign, 2, "Al", now=2.0, until=HOUR)
            told = [Answer(0, 1, 3.5), Answer(1, 1, -2.25)]
            assert store.tell(campaign, told, now=3.0) == ["answered", "answered"]
            with store.looking(campaign) as look:
                assert look.answered(0) == [(0, 0, 0, -1, None, 3.5)]
                assert look.answered(1) == [(0, 1, 1, -1, None, -2.25)]

    def test_telling_it_again_changes_nothing(self) -> None:
        with self.begun() as (store, campaign):
            store.lend(campaign, 1, "Al", now=2.0, until=HOUR)
            store.tell(campaign, [Answer(0, 1, 3.5)], now=3.0)
            before = store.counts(campaign), list(store.events(campaign))
            assert store.tell(campaign, [Answer(0, 1, 3.5)] * 2, now=4.0) == ["same", "same"]
            assert (store.counts(campaign), list(store.events(campaign))) == before

    def test_one_batch_may_tell_a_ticket_twice(self) -> None:
        with self.begun() as (store, campaign):
            store.lend(campaign, 1, "Al", now=2.0, until=HOUR)
            told = [Answer(0, 1, 3.5), Answer(0, 1, 3.5), Answer(0, 1, 4.0)]
            assert store.tell(campaign, told, now=3.0) == ["answered", "same", "conflict"]

    def test_another_answer_is_a_conflict_and_leaves_a_trace(self) -> None:
        with self.begun() as (store, campaign):
            store.lend(campaign, 1, "Al", now=2.0, until=HOUR)
            store.tell(campaign, [Answer(0, 1, 3.5)], now=3.0)
            before = store.counts(campaign)
            assert store.tell(campaign, [Answer(0, 1, 4.0)], now=4.0) == ["conflict"]
            assert store.counts(campaign) == before
            with store.looking(campaign) as look:
                assert [row[-1] for row in look.answered(0)] == [3.5]
            *_, last = store.events(campaign)
            assert (last.kind, last.told["draw"], last.told["value"]) == ("conflict", 0, 4.0)

    def test_an_answer_after_the_deadline_is_late_and_counts(self) -> None:
        with self.begun(3) as (store, campaign):
            store.lend(campaign, 2, "Al", now=2.0, until=10.0)
            assert store.tell(campaign, [Answer(0, 1, 3.0)], now=11.0) == ["late"]
            assert store.reclaim(campaign, now=12.0) == 1
            assert store.tell(campaign, [Answer(1, 1, 3.0)], now=13.0) == ["late"]
            late = [each for each in store.counts(campaign) if each.late]
            assert [(each.state, each.draws) for each in late] == [("answered", 1)] * 2

    def test_the_first_of_two_tickets_of_a_draw_wins(self) -> None:
        for first, second in ((1, 2), (2, 1)):
            with self.opened() as store:
                campaign = store.create(f"tasting {first}", "the design", now=0.0).id
                store.begin(campaign, planned(1, fresh(1)), now=1.0)
                store.lend(campaign, 1, "Al", now=2.0, until=10.0)
                store.lend(campaign, 1, "Bo", now=11.0, until=20.0)
                got = "answered" if first == 2 else "late"
                assert store.tell(campaign, [Answer(0, first, 3.0)], now=12.0) == [got]
                assert store.tell(campaign, [Answer(0, second, 4.0)], now=13.0) == ["extra"]
                assert store.tell(campaign, [Answer(0, second, 4.0)], now=13.0) == ["same"]
                assert store.tell(campaign, [Answer(0, second, 5.0)], now=13.0) == ["conflict"]
                with store.looking(campaign) as look:
                    assert [row[-1] for row in look.answered(0)] == [3.0]

    def test_a_refused_draw_can_still_be_answered(self) -> None:
        with self.begun(1) as (store, campaign):
            store.lend(campaign, 1, "Al", now=2.0, until=HOUR)
            store.decline(campaign, 0, 1, reason="", now=3.0)
            assert store.tell(campaign, [Answer(0, 1, 3.0)], now=4.0) == ["reversed"]
            assert store.tell(campaign, [Answer(0, 1, 3.0)], now=5.0) == ["same"]
            (count,) = store.counts(campaign)
            assert (count.state, count.late, count.draws) == ("answered", False, 1)

    def test_an_answer_can_be_corrected(self) -> None:
        with self.begun() as (store, campaign):
            store.lend(campaign, 1, "Al", now=2.0, until=HOUR)
            assert store.correct(campaign, 0, 1, 4.0, who="Di", reason="typo", now=3.0) is None
            store.tell(campaign, [Answer(0, 1, 3.5)], now=3.0)
            before = store.correct(campaign, 0, 1, 4.0, who="Di", reason="typo", now=4.0)
            assert before is not None
            assert before.value == 3.5
            assert store.tell(campaign, [Answer(0, 1, 4.0)], now=5.0) == ["same"]
            *_, last = store.events(campaign)
            told = {name: last.told[name] for name in ("was", "value", "who", "reason")}
            assert told == {"was": 3.5, "value": 4.0, "who": "Di", "reason": "typo"}

    def test_numbers_come_back_bit_for_bit(self) -> None:
        values = [0.1 + 0.2, 5e-324, -1.7976931348623157e308, 1 / 3, 0.0, 3.0]
        with self.begun(6) as (store, campaign):
            store.lend(campaign, 6, "Al", now=1 / 3, until=HOUR)
            told = [Answer(each, 1, value) for each, value in enumerate(values)]
            store.tell(campaign, told, now=0.1 + 0.2)
            with store.looking(campaign) as look:
                found = [row[-1] for place in (0, 1) for row in look.answered(place)]
            assert [each.hex() for each in found] == [v.hex() for v in values[::2] + values[1::2]]
            assert store.tell(campaign, told, now=9.0) == ["same"] * 6
