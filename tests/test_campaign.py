"""Campaigns: asking, telling, and everything that life does to a ticket."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from surveys import PEOPLE, WINES, decisions, live, recorded, small_design, town, value_of

from malocate import Campaign, Conflict, Design, InvalidInput, InvalidType, NotFound, simulate
from malocate.campaign.tickets import AGAIN
from malocate.campaign.trays import williams_row


@pytest.fixture
def clock():
    return [1_000.0]


@pytest.fixture
def campaign(tmp_path, clock):
    with Campaign.create(tmp_path / "tasting.db", small_design(), clock=lambda: clock[0]) as made:
        yield made


def test_a_campaign_decides_what_a_simulation_of_it_decides(campaign):
    live(campaign)
    run = simulate(campaign.design, recorded(campaign), progress=False)
    told = [json.loads(body) for body in decisions(campaign)]
    assert [each["why"] for each in told] == run.why()
    assert campaign.status().why == run.stop.why
    bands = campaign.export("bands").set_index("segment")
    assert bands.loc["north", "upper"] == run.bands["north"].upper
    completed = campaign.findings()[1].completion
    np.testing.assert_array_equal(completed.dense(), run.completions["south"].dense())


def test_asking_again_gives_the_same_tickets_back(campaign):
    first = campaign.ask(3, who="a")
    assert campaign.ask(3, who="a") == first
    more = campaign.ask(5, who="a")
    assert more[:3] == first
    assert len(more) == 5
    assert not {each.id for each in campaign.ask(5, who="b")} & {each.id for each in more}


def test_capacity_is_the_most_at_once(campaign):
    assert len(campaign.ask(10, who="a", capacity=4)) == 4


def test_a_question_says_why_it_comes_again(campaign):
    tickets = campaign.ask(60, who="a")
    notes = {each.note for each in tickets}
    assert notes == {"", AGAIN}
    again = next(each for each in tickets if each.note)
    assert any(
        (each.row, each.column, each.segment) == (again.row, again.column, again.segment)
        for each in tickets
        if each.id != again.id
    )


def test_telling_twice_changes_nothing_and_otherwise_is_a_conflict(campaign):
    (ticket,) = campaign.ask(1, who="a")
    assert campaign.tell(ticket, 3) == "answered"
    assert campaign.tell(ticket, 3) == "same"
    with pytest.raises(Conflict, match="`correct`"):
        campaign.tell(ticket, 4)
    assert campaign.export("answers")["value"].tolist() == [3.0]
    assert "conflict" in set(campaign.export("log")["kind"])


def test_a_late_answer_counts_once_and_the_second_is_kept_aside(campaign, clock):
    (old,) = campaign.ask(1, who="a", lease=60)
    clock[0] += 61
    (new,) = campaign.ask(1, who="b")
    assert (old.segment, old.draw) == (new.segment, new.draw)
    assert old.id != new.id
    assert campaign.tell(old, 2) == "late"
    assert campaign.tell(new, 5) == "extra"
    assert campaign.tell(new, 5) == "same"
    status = campaign.status()
    assert (status.answered, sum(each.late for each in status.segments)) == (1, 1)
    assert campaign.export("answers")["value"].tolist() == [2.0]


def test_renewed_tickets_stay_and_released_ones_go_back(campaign, clock):
    kept, given = campaign.ask(2, who="a", lease=60)
    campaign.renew(kept, lease=600)
    campaign.release(given)
    clock[0] += 61
    assert [each.id for each in campaign.ask(1, who="a")] == [kept.id]
    (again,) = campaign.ask(1, who="b")
    assert again.draw == given.draw
    with pytest.raises(Conflict, match="not out any more"):
        campaign.release(given)


def test_a_refusal_is_recorded_and_not_asked_again(campaign):
    (ticket,) = campaign.ask(1, who="a")
    campaign.decline(ticket, "rather not")
    asked = {(each.segment, each.draw) for each in campaign.ask(200, who="b")}
    assert (ticket.segment, ticket.draw) not in asked
    assert sum(each.refused for each in campaign.status().segments) == 1
    answered = campaign.ask(1, who="b")[0]
    campaign.tell(answered, 2)
    with pytest.raises(Conflict, match="not declined"):
        campaign.decline(answered)


def test_a_correction_is_logged_and_says_what_was_there(campaign):
    (ticket,) = campaign.ask(1, who="a")
    with pytest.raises(Conflict, match="`tell` gives it one"):
        campaign.correct(ticket, 4, reason="typing")
    campaign.tell(ticket, 3)
    assert campaign.correct(ticket, 4, reason="typing", who="editor") == 3.0
    assert campaign.export("answers")["value"].tolist() == [4.0]
    log = campaign.export("log").query("kind == 'corrected'")
    assert json.loads(log["body"].iloc[0])["reason"] == "typing"


def test_giving_up_lets_a_round_end(campaign):
    tickets = campaign.ask(20, who="a")
    campaign.tell_many([(each, value_of(each)) for each in tickets])
    assert campaign.give_up() > 0
    assert campaign.ask(1, who="a")
    assert campaign.status().round == 2
    assert campaign.verify().ok


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (9, InvalidInput, "go from 1 to 5"),
        (float("nan"), InvalidInput, "finite"),
        ("4", InvalidType, "must be a number"),
        (True, InvalidType, "must be a number"),
        (None, InvalidType, "must be a number"),
    ],
)
def test_what_is_no_answer_is_refused_and_changes_nothing(campaign, value, error, words):
    good, bad = campaign.ask(2, who="a")
    with pytest.raises(error, match=words):
        campaign.tell_many([(good, 2), (bad, value)])
    assert campaign.status().answered == 0


@pytest.mark.parametrize("name", ["", "0-0-1-0000000000000000", "x", "0-0-1", "0-1-1-é", None])
def test_a_ticket_that_nobody_lent_is_refused(campaign, name):
    campaign.ask(1, who="a")
    with pytest.raises(NotFound, match="no ticket"):
        campaign.tell(name, 3)


def test_a_ticket_of_another_campaign_is_refused(campaign, tmp_path):
    (ticket,) = campaign.ask(1, who="a")
    with Campaign.create(tmp_path / "other.db", small_design()) as other:
        other.ask(1, who="a")
        with pytest.raises(NotFound, match="no ticket"):
            other.tell(ticket, 3)


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"n": 0, "who": "a"}, "n is 0"),
        ({"who": ""}, "name who asks"),
        ({"who": "a", "lease": -1}, "lease"),
        ({"who": "a", "capacity": 0}, "capacity"),
        ({"who": "a", "segment": "west"}, "no segment 'west'"),
        ({"who": "a", "rows": []}, "rows is empty"),
        ({"who": "a", "rows": ["nobody"]}, "no row 'nobody'"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(campaign, request_, words):
    with pytest.raises((InvalidInput, InvalidType, NotFound), match=words):
        campaign.ask(**request_)


def test_only_who_is_present_is_asked_alike_and_with_the_chance_recorded(campaign):
    tickets = campaign.ask(12, who="lab", rows=["p3", "p4"], segment="north")
    assert len(tickets) == 12
    assert {each.row for each in tickets} <= {"p3", "p4"}
    assert {each.segment for each in tickets} == {"north"}
    campaign.tell_many([(each, value_of(each)) for each in tickets])
    chances = campaign.export("answers")["probability"]
    assert (chances == 1 / (2 * len(WINES))).all()
    live(campaign)
    assert campaign.verify().ok
    given = campaign.export("bands").set_index("segment")["given"]
    assert "stated probabilities" in given["north"]
    assert "uniform" in given["south"]


def test_replicates_follow_a_draw_to_where_it_was_asked(campaign):
    for _ in range(40):
        tickets = campaign.ask(6, who="lab", rows=["p1", "p2", "p5"])
        campaign.tell_many([(each, value_of(each)) for each in tickets])
    live(campaign)
    frame = campaign.export("answers").set_index(["segment", "draw"])
    repeated = frame[frame["repeats"] >= 0]
    assert len(repeated) > 0
    for (segment, _), row in repeated.iterrows():
        origin = frame.loc[(segment, row["repeats"])]
        assert (origin["row"], origin["column"]) == (row["row"], row["column"])


def test_trays_put_every_thing_once_at_every_place():
    for size in range(2, 9):
        trays = np.array([williams_row(size, turn) for turn in range(size)])
        assert all(sorted(place) == list(range(size)) for place in trays.T.tolist())
        turns = size if size % 2 == 0 else 2 * size
        pairs = [
            (one, two) for turn in range(turns) for one, two in pairwise(williams_row(size, turn))
        ]
        counts = {pair: pairs.count(pair) for pair in set(pairs)}
        assert len(counts) == size * (size - 1)
        assert len(set(counts.values())) == 1


def test_a_paused_campaign_lends_nothing_and_takes_answers(campaign):
    (ticket,) = campaign.ask(1, who="a")
    campaign.pause("holidays")
    assert campaign.ask(1, who="b") == []
    assert campaign.tell(ticket, 3) == "answered"
    assert "holidays" in campaign.status().words
    campaign.resume()
    assert campaign.ask(1, who="b")


def test_a_finished_campaign_stays_so_and_refits_nothing(campaign, monkeypatch):
    (ticket,) = campaign.ask(1, who="a")
    campaign.finish("enough")
    monkeypatch.setattr("malocate.campaign.planner.advance", lambda *_: pytest.fail("a fit"))
    assert campaign.ask(1, who="b") == []
    assert campaign.tell(ticket, 3) == "answered"
    with pytest.raises(Conflict, match="finished"):
        campaign.resume()


def test_asking_at_the_end_refits_nothing(campaign, monkeypatch):
    assert live(campaign) == 260
    monkeypatch.setattr("malocate.campaign.planner.advance", lambda *_: pytest.fail("a fit"))
    assert campaign.ask(5, who="w") == []
    assert "the budget is spent" in campaign.status().words


def test_in_many_sittings_it_decides_as_in_one(campaign, tmp_path):
    live(campaign)
    path = tmp_path / "sittings.db"
    Campaign.create(path, small_design()).close()
    for turn in range(200):
        with Campaign.open(path) as sitting:
            if not live(sitting, n=17, who=f"w{turn}", most=1):
                break
    with Campaign.open(path) as sitting:
        assert decisions(sitting) == decisions(campaign)


def test_a_worker_that_is_there_does_the_planning(campaign, clock):
    campaign.store.beat(campaign.id, until=clock[0] + 60)
    assert campaign.ask(1, who="a") == []
    assert campaign.plan() == "planned"
    assert campaign.ask(1, who="a")


def test_a_database_with_several_campaigns_wants_a_name(tmp_path):
    url = tmp_path / "many.db"
    Campaign.create(url, small_design(), name="one").close()
    Campaign.create(url, small_design(), name="two").close()
    with pytest.raises(NotFound, match="several campaigns: one, two"):
        Campaign.open(url)
    with Campaign.open(url, "two") as two:
        assert two.name == "two"
    with pytest.raises(Conflict, match="already holds"):
        Campaign.create(url, small_design(), name="two")
    with pytest.raises(NotFound, match="no database"):
        Campaign.open(tmp_path / "nowhere.db")


def test_every_label_that_a_design_can_hold_comes_back(tmp_path):
    from datetime import date

    labels = ([date(2026, 1, 1), ("a", 1), 3], ["x", 2.5])
    segment = replace_labels(town("odd"), labels)
    with Campaign.create(tmp_path / "odd.db", Design([segment], budget=20)) as campaign:
        tickets = campaign.ask(20, who="a")
        assert {each.row for each in tickets} <= set(labels[0])


def replace_labels(segment, labels):
    from malocate import Segment

    return Segment(segment.name, labels=labels, scale=segment.scale)


def test_the_report_says_it_all(campaign):
    live(campaign)
    words = str(campaign.report())
    for part in ("north", "south", "certainty 0.95", "the budget is spent", "log digest"):
        assert part in words
    plain = campaign.report().to_plain()
    assert json.loads(json.dumps(plain, allow_nan=False))["status"]["answered"] == 260
    assert {each["column"] for each in plain["columns"]["north"]} == set(WINES)


def test_exports_are_labelled_and_whole(campaign):
    live(campaign)
    completed = campaign.export("completions")
    assert len(completed) == 2 * len(PEOPLE) * len(WINES)
    assert set(completed["row"]) == set(PEOPLE)
    assert campaign.export("decisions")["round"].tolist() == list(
        range(1, campaign.status().round + 1)
    )
    with pytest.raises(InvalidInput, match="no export 'all'"):
        campaign.export("all")


def test_only_a_design_begins_a_campaign(tmp_path):
    with pytest.raises(InvalidType, match="must be a Design"):
        Campaign.create(tmp_path / "a.db", {"budget": 3})
    assert not (tmp_path / "a.db").exists()


def test_targets_end_it(tmp_path):
    design = replace(small_design(budget=5_000), rmse=2.5)
    with Campaign.create(tmp_path / "goal.db", design) as campaign:
        live(campaign, n=200)
        assert "every segment has reached its target" in campaign.status().words
        assert campaign.verify().ok


def test_one_question_is_told_in_the_singular(campaign):
    status = campaign.status()
    for waiting, lent, words in (
        (1, 1, "1 question of round 3 waits to be asked; 1 is out."),
        (2, 0, "2 questions of round 3 wait to be asked; 0 are out."),
        (0, 1, "Round 3 waits for 1 question that is out."),
        (0, 1_200, "Round 3 waits for 1,200 questions that are out."),
    ):
        one = replace(status.segments[0], open=waiting, lent=lent)
        assert replace(status, state="open", round=3, segments=(one,)).words == words
