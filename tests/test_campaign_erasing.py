"""Erasure on both databases: what goes, what stays true, and what is left of a name."""

from __future__ import annotations

import json
from pathlib import Path

import pandas
import pytest
from surveys import live, small_design, value_of

from malocate import Campaign
from malocate.problem.draws import BEFORE
from malocate.store import log
from malocate.store.counting import Count

NAME = "Anneliese-Quux"


@pytest.fixture
def clock():
    return [1_000.0]


@pytest.fixture
def campaign(url, clock):
    with Campaign.create(url, small_design(), clock=lambda: clock[0]) as made:
        yield made


def named(campaign, name: str) -> list[str]:
    """Give the tables that hold a name anywhere."""
    with campaign.store.database.reading() as connection:
        return [
            table
            for table in ("campaigns", "rounds", "draws", "log", "extras")
            if name in str(connection.exec_driver_sql(f"SELECT * FROM {table}").all())
        ]


def counted(campaign) -> list[Count]:
    """Count draws as `Store.counts` should, by going through all of them."""
    about = f"segment, state, late, number >= {BEFORE} AS imported"
    query = f"SELECT {about}, count(*), sum(expired) FROM draws GROUP BY 1, 2, 3, 4"
    with campaign.store.database.reading() as connection:
        rows = connection.exec_driver_sql(query).all()
    return sorted(
        Count(place, state, bool(late), bool(imported), *sums)
        for place, state, late, imported, *sums in rows
    )


def test_all_that_an_asker_did_goes_and_the_log_stays_true(campaign, clock):
    told, corrected, declined, released, late, out = campaign.ask(6, who=NAME, lease=10)
    campaign.tell(told, 3)
    campaign.tell(corrected, 3)
    campaign.correct(corrected, 4, reason="a slip", who=NAME)
    campaign.decline(declined, "private")
    campaign.release(released)
    campaign.renew(out, 1_000)
    clock[0] += 100
    assert campaign.tell(late, 1) == "late"
    campaign.erase(who=NAME)
    assert named(campaign, NAME) == []
    assert named(campaign, "private") == []
    assert "corrected" not in [
        kind
        for kind, body in campaign.export("log")[["kind", "body"]].itertuples(index=False)
        if body
    ]
    found = campaign.verify()
    assert found.ok, found.broken
    live(campaign, who="bo")
    found = campaign.verify()
    assert found.ok, found.broken


def test_an_answer_kept_aside_goes_too(campaign, clock):
    (mine,) = campaign.ask(1, who=NAME, lease=10)
    clock[0] += 100
    (same,) = campaign.ask(1, who="bo")
    campaign.tell(same, 2)
    assert campaign.tell(mine, 5) == "extra"
    assert campaign.erase(who=NAME) == 0
    with campaign.store.database.reading() as connection:
        assert connection.exec_driver_sql("SELECT * FROM extras").all() == []
    assert campaign.status().answered == 1
    assert campaign.verify().ok


def test_one_row_is_erased_after_another(campaign):
    frame = pandas.DataFrame({"segment": "north", "row": ["p1", "p2"], "column": "w1", "value": 3})
    campaign.import_answers(frame)
    live(campaign, n=60, most=1)
    asked = campaign.status().segments[0].planned
    for row in ("p1", "p2"):
        assert campaign.erase(segment="north", row=row) > 0
    north = campaign.status().segments[0]
    assert north.imported == 0
    assert north.planned == asked  # an answer from before was never asked for
    found = campaign.verify()
    assert found.ok, found.broken


def test_a_row_that_only_declined_is_erased(campaign):
    tickets = campaign.ask(300, who="w")
    for each in tickets:
        if (each.segment, each.row) == ("north", "p1"):
            campaign.decline(each, "private")
        else:
            campaign.tell(each, value_of(each))
    assert campaign.plan() == "planned"
    campaign.erase(segment="north", row="p1")
    assert named(campaign, "private") == []
    found = campaign.verify()
    assert found.ok, found.broken
    assert found.unproven


def test_an_erased_row_stays_unasked_when_an_ended_campaign_goes_on(campaign):
    live(campaign)
    campaign.erase(segment="north", row="p3")
    assert campaign.status().state == "done"
    campaign.amend(why="more money", budget=400)
    while tickets := campaign.ask(50, who="w"):
        assert all(str(each.row).startswith("p") for each in tickets)
        campaign.tell_many([(each, value_of(each)) for each in tickets])
    assert campaign.verify().ok


def test_no_name_can_be_guessed_from_what_the_chain_keeps(campaign):
    campaign.ask(1, who=NAME)
    with campaign.store.looking(campaign.id) as look:
        before = {each.id: each for each in look.events() if NAME in (each.body or "")}
    campaign.erase(who=NAME)
    with campaign.store.looking(campaign.id) as look:
        after = {each.id: each for each in look.events() if each.id in before}
    for event in after.values():
        guess = event.told | {"who": NAME}
        text = log._encode(guess)
        assert log.body_digest(event) != log.body_digest(event._replace(body=text, digest=None))
        assert log.body_digest(event) == log.body_digest(before[event.id])
        assert "salt" not in json.loads(event.body)


def test_an_answer_told_meanwhile_is_erased_and_an_amendment_kept(campaign, monkeypatch):
    ticket, other = campaign.ask(2, who=NAME)
    campaign.tell(other, 2)
    usual = campaign.store.erase

    def slow(*arguments, **settings):
        campaign.tell(ticket, 3)
        campaign.amend(why="meanwhile", budget=300)
        return usual(*arguments, **settings)

    monkeypatch.setattr(campaign.store, "erase", slow)
    assert campaign.erase(who=NAME) == 2
    assert campaign.design.budget == 300
    assert campaign.verify().ok


def test_a_file_forgets_what_was_erased(tmp_path):
    path = tmp_path / "a.db"
    with Campaign.create(path, small_design()) as campaign:
        for ticket in campaign.ask(20, who=NAME):
            campaign.tell(ticket, 3)
        campaign.decline(campaign.ask(1, who=NAME)[0], "because " + NAME)
        live(campaign)
        campaign.erase(who=NAME)
        files = [each for each in Path(tmp_path).iterdir() if each.is_file()]
        assert [each.name for each in files if NAME.encode() in each.read_bytes()] == []
        assert campaign.verify().ok


def test_counts_are_those_of_the_draws_whatever_became_of_them(campaign, clock):
    def agree() -> list[str]:
        found = campaign.store.counts(campaign.id)
        assert found == counted(campaign)
        return [each.state for each in found]

    assert agree() == []
    before = {"segment": ["north"] * 3, "row": ["p0", "p1", "p1"], "column": ["w0", "w1", "w1"]}
    campaign.import_answers(pandas.DataFrame(before | {"value": [1, 2, 3]}), who="of old")
    assert agree() == ["imported"]
    told, late, declined, released, given, *_ = campaign.ask(9, who=NAME, lease=10)
    campaign.tell(told, 3)
    campaign.decline(declined, "private")
    campaign.release(released)
    assert {"open", "lent", "answered", "refused"} < set(agree())
    clock[0] += 100
    assert campaign.tell(late, 1) == "late"
    campaign.give_up()
    assert campaign.tell(given, 1) == "late"
    assert {"given up", "answered"} < set(agree())
    campaign.erase(who=NAME)
    campaign.erase(row="p1", segment="north")  # two of the imported answers are about it
    assert "erased" in agree()
    live(campaign, who="bo")
    agree()
