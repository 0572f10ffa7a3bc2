"""What people and programs hand to a campaign by mistake or by malice: refused in a sentence."""

from __future__ import annotations

import pytest
from surveys import PEOPLE, live, small_design, value_of

from malocate import (
    Campaign,
    Conflict,
    Design,
    InvalidInput,
    InvalidType,
    MalocateError,
    NotFound,
    Segment,
    StoreError,
)

NASTY = [
    "Robert'); DROP TABLE draws;--",
    'a "quoted"\nsecond line\t\\',
    '"""\n[[segments]]\nname = "x"',
    "Zoë 🍷 \u202eolleh",
    " ",
    "x" * 500,
]


@pytest.fixture
def clock():
    return [1_000.0]


@pytest.fixture
def campaign(url, clock):
    with Campaign.create(url, small_design(), clock=lambda: clock[0]) as made:
        yield made


def test_any_name_comes_back_as_it_was(campaign):
    for who in NASTY:
        ticket, other = campaign.ask(2, who=who)
        assert ticket.who == who
        campaign.tell(ticket, 3)
        campaign.decline(other, reason=who)
    assert list(campaign.export("answers")["who"]) == NASTY
    assert campaign.verify().ok


def test_any_label_and_any_name_of_a_campaign_comes_back(url):
    for number, name in enumerate(NASTY):
        segment = Segment(name, labels=(NASTY, NASTY), scale=(1, 5))
        with Campaign.create(url, Design([segment], budget=60), name=name) as made:
            ticket = made.ask(1, who="w")[0]
            assert (ticket.segment, ticket.row in NASTY) == (name, True)
        with Campaign.open(url, name) as again:
            assert again.id == number + 1
            assert again.design.segments[0].labels[0] == tuple(NASTY)


@pytest.mark.parametrize("who", ["a\x00b", "half \ud83d", "x" * 501, "", None, 7])
def test_what_is_no_name_is_refused(campaign, who):
    with pytest.raises(MalocateError, match=r"who (is|has)"):
        campaign.ask(1, who=who)


@pytest.mark.parametrize("text", ["a\x00b", "half \ud83d", None])
def test_what_is_no_text_is_refused(campaign, text):
    (ticket,) = campaign.ask(1, who="w")
    for work in (
        lambda: campaign.decline(ticket, text),
        lambda: campaign.correct(ticket, 3, reason=text),
        lambda: campaign.amend(why=text, budget=300),
        lambda: campaign.pause(text),
    ):
        with pytest.raises(MalocateError, match=r"(reason|why) is"):
            work()
    assert campaign.tell(ticket, 3) == "answered"


def test_numbers_beyond_all_bounds(campaign):
    tickets = campaign.ask(10**30, who="w", lease=1e9)
    assert len(tickets) > 20
    with pytest.raises(InvalidInput, match="too large"):
        campaign.tell(tickets[0], 10**5_000)
    with pytest.raises(InvalidInput, match="lease is 1e"):
        campaign.ask(1, who="v", lease=1e300)
    with pytest.raises(NotFound, match="no ticket"):
        campaign.tell("0-1-1-\ud800", 3)


def test_one_name_is_not_taken_letter_by_letter(campaign):
    with pytest.raises(InvalidType, match="rows of segment 'north' are 'Dan'; give a list"):
        campaign.amend(why="joined", rows={"north": "Dan"})
    with pytest.raises(InvalidType, match="holds 'p1'; give pairs"):
        campaign.amend(why="left", mask={"north": ["p1"]})


def test_who_is_present_is_asked_past_questions_for_who_is_not(campaign):
    """Questions that were lent before stay where they are; they must not bar later ones."""
    for ticket in campaign.ask(30, who="w"):
        campaign.release(ticket)
    for person in PEOPLE[:3]:
        tickets = campaign.ask(4, who=f"tablet of {person}", rows=[person])
        assert [each.row for each in tickets] == [person] * 4
        campaign.tell_many([(each, value_of(each)) for each in tickets])
    live(campaign)
    found = campaign.verify()
    assert found.ok, found.broken


def test_a_masked_question_that_was_out_is_not_asked_again(campaign, clock):
    out, late = campaign.ask(2, who="w", lease=10)
    cells = [(each.row, each.column) for each in (out, late)]
    campaign.amend(why="sold out", mask={out.segment: cells[:1], late.segment: cells[1:]})
    clock[0] += 100
    asked = campaign.ask(300, who="v")
    masked = {(out.segment, *cells[0]), (late.segment, *cells[1])}
    assert not masked & {(each.segment, each.row, each.column) for each in asked}
    assert campaign.tell(late, 3) == "late"  # kept, though it counts no more
    campaign.tell_many([(each, value_of(each)) for each in asked])
    live(campaign)
    found = campaign.verify()
    assert found.ok, found.broken


@pytest.mark.parametrize("url", ["postgresql://me:hush@host:port/x", "post gres://me:hush@host/x"])
def test_no_message_shows_a_password(url):
    with pytest.raises(InvalidInput, match="no address") as caught:
        Campaign.open(url)
    assert "hush" not in str(caught.value)


def test_no_message_shows_a_password_among_the_options():
    with pytest.raises(StoreError, match="cannot be reached") as caught:
        Campaign.open("postgresql://me@127.0.0.1:1/x?password=hush&sslpassword=hush")
    assert "hush" not in str(caught.value)


def test_an_answer_that_no_fit_could_bear_is_refused(tmp_path):
    design = Design([Segment("north", (4, 3))], budget=60)
    with Campaign.create(tmp_path / "a.db", design) as campaign:
        (ticket,) = campaign.ask(1, who="w")
        with pytest.raises(InvalidInput, match=r"is 1e\+200; answers of segment 'north' go from"):
            campaign.tell(ticket, 1e200)


def test_a_clock_that_went_back_a_day_keeps_nobody_from_planning(campaign, clock):
    tomorrow = clock[0] + 86_400
    campaign.store.beat(campaign.id, until=tomorrow + 15)
    assert campaign.store.claim(campaign.id, "dead", after=0, now=tomorrow, until=tomorrow + 30)
    assert campaign.ask(1, who="w")
    assert campaign.verify().ok


def test_a_pause_does_not_wake_what_was_finished_meanwhile(campaign, monkeypatch):
    usual = campaign.store.turn

    def late(*arguments, **settings):
        usual(campaign.id, "finished", "for good", now=1_000.0, who="")
        return usual(*arguments, **settings)

    monkeypatch.setattr(campaign.store, "turn", late)
    with pytest.raises(Conflict, match="is finished"):
        campaign.pause("a holiday")
    assert campaign.status().state == "finished"
    assert campaign.verify().ok
