"""Amendments, answers brought along, and erasure: what changes, what is said, what stays true."""

from __future__ import annotations

import json

import numpy as np
import pandas
import pytest
from surveys import PEOPLE, WINES, live, small_design, town, value_of

from malocate import Campaign, Conflict, InvalidInput, NotFound


@pytest.fixture
def campaign(tmp_path):
    with Campaign.create(tmp_path / "tasting.db", small_design()) as made:
        yield made


def labels_of(campaign) -> dict[str, str]:
    return campaign.export("bands").set_index("segment")["label"].to_dict()


def before(count: int = 30) -> pandas.DataFrame:
    rng = np.random.default_rng(0)
    rows, columns = rng.choice(PEOPLE, count), rng.choice(WINES, count)
    values = rng.integers(1, 6, count)
    return pandas.DataFrame({"segment": "north", "row": rows, "column": columns, "value": values})


def test_a_larger_budget_wakes_a_campaign_that_has_ended(campaign):
    assert live(campaign) == 260
    campaign.amend(why="more money", budget=400)
    assert live(campaign) == 140
    assert campaign.verify().ok
    amended = campaign.export("log").query("kind == 'amended'")["body"].iloc[0]
    assert json.loads(amended)["why"] == "more money"


def test_a_goal_may_be_set_on_the_way(campaign):
    live(campaign, n=160, most=1)
    campaign.amend(why="a goal", rmse=4.5)
    live(campaign)
    assert "target" in campaign.status().words
    assert campaign.verify().ok


def test_new_rows_and_columns_are_asked_and_the_certificate_goes(campaign):
    live(campaign, n=160, most=1)
    campaign.amend(why="latecomers", rows={"north": ["p10", "p11"]}, columns={"north": ["w8"]})
    live(campaign)
    answers = campaign.export("answers").query("segment == 'north'")
    assert {"p10", "p11"} & set(answers["row"])
    assert "w8" in set(answers["column"])
    bands = campaign.export("bands").set_index("segment")
    assert bands.loc["north", "label"] == "approximate"
    assert "cells were changed" in bands.loc["north", "reason"]
    assert len(campaign.export("completions").query("segment == 'north'")) == 12 * 9
    assert campaign.verify().ok


def test_masked_cells_are_asked_no_more_and_count_no_more(campaign):
    live(campaign, n=100, most=1)
    wine = [(person, "w2") for person in PEOPLE]
    campaign.amend(why="sold out", mask={"north": wine})
    tickets = campaign.ask(300, who="w")
    assert all((each.segment, each.column) != ("north", "w2") for each in tickets)
    campaign.tell_many([(each, value_of(each)) for each in tickets])
    live(campaign)
    assert campaign.verify().ok


def test_a_segment_may_join_and_all_bands_own_up(campaign):
    live(campaign, n=160, most=1)
    campaign.amend(why="a third town", segments=[town("east")])
    live(campaign)
    assert set(campaign.export("answers")["segment"]) == {"north", "south", "east"}
    assert set(labels_of(campaign).values()) == {"approximate"}
    assert campaign.verify().ok


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"rows": {"west": ["x"]}}, NotFound, "no segment 'west'"),
        ({"rows": {"north": ["p1"]}}, InvalidInput, "p1"),
        ({"mask": {"north": [("nobody", "w1")]}}, NotFound, "no row 'nobody'"),
        ({"budget": -5}, InvalidInput, "budget"),
        ({"segments": [town("north")]}, InvalidInput, "both called"),
    ],
)
def test_an_amendment_that_makes_no_sense_changes_nothing(campaign, change, error, words):
    before = campaign.design
    with pytest.raises(error, match=words):
        campaign.amend(why="a mistake", **change)
    assert campaign.status().state == "open"
    assert campaign.design == before


def test_a_finished_campaign_is_not_amended(campaign):
    campaign.finish("enough")
    with pytest.raises(Conflict, match="finished"):
        campaign.amend(why="more", budget=500)


def test_a_plan_made_for_another_design_is_thrown_away(campaign, monkeypatch):
    tickets = campaign.ask(300, who="w")
    campaign.tell_many([(each, value_of(each)) for each in tickets])
    from malocate.campaign import planner

    usual = planner.advance

    def slow(*arguments):
        campaign.amend(why="meanwhile", budget=300)
        return usual(*arguments)

    monkeypatch.setattr(planner, "advance", slow)
    assert campaign.plan() == "elsewhere"
    monkeypatch.setattr(planner, "advance", usual)
    assert campaign.plan() == "planned"
    assert campaign.verify().ok


def test_answers_from_before_count_and_cost_nothing(campaign):
    assert campaign.import_answers(before()) == 30
    assert live(campaign) == 260
    bands = campaign.export("bands").set_index("segment")
    assert bands.loc["north", "label"] == "approximate"
    assert "before the campaign" in bands.loc["north", "reason"]
    assert bands.loc["north", "answers"] > 0
    status = campaign.status()
    assert (status.spent, status.segments[0].imported) == (260, 30)
    assert campaign.export("answers")["imported"].sum() == 30
    assert campaign.verify().ok


def test_answers_from_before_may_be_declared_uniform(tmp_path):
    with Campaign.create(tmp_path / "a.db", small_design(budget=240)) as campaign:
        campaign.import_answers(before(), uniform=True)
        live(campaign)
        assert "before the campaign" not in campaign.export("bands")["reason"].iloc[0]
        assert campaign.verify().ok


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"row": "nobody"}, "line 3: .*no row 'nobody'"),
        ({"value": 9}, "line 3: .*9"),
        ({"segment": "west"}, "line 3: there is no segment 'west'"),
    ],
)
def test_a_bad_line_refuses_the_whole_import(campaign, change, words):
    frame = before(5).astype(object)
    for name, value in change.items():
        frame.loc[2, name] = value
    with pytest.raises(InvalidInput, match=words):
        campaign.import_answers(frame)
    assert campaign.export("answers").empty


def test_an_asker_is_erased_and_the_chain_stays_valid(campaign):
    anna = campaign.ask(20, who="anna")
    campaign.tell_many([(each, value_of(each)) for each in anna])
    live(campaign)
    assert campaign.verify().ok
    assert campaign.erase(who="anna") == 20
    found = campaign.verify()
    assert found.ok
    assert found.unproven > 0
    assert "anna" not in campaign.export("log")["body"].str.cat()
    assert "anna" not in set(campaign.export("answers")["who"])
    with pytest.raises(NotFound, match="'anna'"):
        campaign.erase(who="anna")


def test_a_row_is_erased_with_its_name_and_not_asked_again(campaign):
    live(campaign, n=160, most=1)
    erased = campaign.erase(segment="north", row="p3")
    assert erased > 0
    north = campaign.export("answers").query("segment == 'north'")
    assert "p3" not in set(north["row"])
    created = campaign.export("log").query("kind == 'created'")["body"].iloc[0]
    assert created.count('\\"p3\\"') == 1  # south has a p3 of its own
    live(campaign)
    assert "(erased 3)" not in set(campaign.export("answers")["row"])
    assert campaign.verify().ok


def test_erasure_wants_one_person(campaign):
    for request in ({}, {"who": "a", "segment": "north", "row": "p1"}, {"segment": "north"}):
        with pytest.raises(InvalidInput, match="Name who"):
            campaign.erase(**request)


def test_the_first_answered_repeat_stands_for_a_draw_without_an_answer():
    from malocate.campaign.answers import _with_origins

    numbers = np.array([3, 5, 6, 8, 9])
    repeats = np.array([1, -1, 1, 2, 5])  # draws 1 and 2 have no answer
    assert _with_origins(numbers, repeats).tolist() == [-1, -1, 3, -1, 5]
