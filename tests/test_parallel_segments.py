"""Rounds of several segments: who is asked, in simulations, live, and from the command line."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standings import OURS, SEGMENTS, SEVERAL, asked, standing
from surveys import decisions, live, recorded, town, value_of
from typer.testing import CliRunner

from malocate import Campaign, Design, MALocate, SoftImpute, Synthetic, simulate
from malocate.campaign.waves import wave_of
from malocate.cli import app
from malocate.strategies import why

TOWNS = ("north", "south", "east", "west")
FIRST = "never asked before"


def design(several=2, **settings) -> Design:
    return Design(
        [town(name) for name in TOWNS],
        budget=900,
        estimator=SoftImpute(2.0),
        strategy=MALocate(parallel_segments=several),
        **settings,
    )


def towns_of(round_body: str) -> list[str]:
    return [name for name, _, _ in json.loads(round_body)["batches"]]


def test_the_most_urgent_segments_are_asked_at_once():
    four = [
        standing(name, estimate=n) for name, n in zip("abcd", (0.2, 0.9, 0.5, 0.7), strict=True)
    ]
    assert asked(MALocate(parallel_segments=2), *four) == (0, 10, 0, 10)
    assert asked(MALocate(parallel_segments=3), *four) == (0, 10, 10, 10)
    assert asked(MALocate(parallel_segments=9), *four) == (10, 10, 10, 10)


def test_the_last_of_several_gets_what_the_budget_leaves():
    four = [
        standing(name, estimate=n) for name, n in zip("abcd", (0.2, 0.9, 0.5, 0.7), strict=True)
    ]
    assert asked(MALocate(parallel_segments=3), *four, budget=17) == (0, 10, 0, 7)
    dear = [replace(each, cost=50.0 if each.name == "d" else 1.0) for each in four]
    assert asked(MALocate(parallel_segments=2), *dear, budget=55) == (0, 10, 10, 0)


def test_of_several_at_once_floors_go_first_and_alone():
    hard = standing(estimate=9.0, answers=20)
    short = [standing(name, estimate=0.0, answers=n, short=5) for name, n in (("b", 40), ("c", 30))]
    assert asked(MALocate(parallel_segments=3), hard, *short) == (0, 10, 10)
    assert asked(MALocate(parallel_segments=1), hard, *short) == (0, 0, 10)
    assert asked(MALocate(parallel_segments=3), hard, *short, budget=13) == (0, 3, 10)


def test_ties_of_several_go_to_the_fewest_answers_and_then_to_position():
    rows = [
        standing(name, answers=n, estimate=0.2)
        for name, n in zip("abcd", (60, 50, 50, 50), strict=True)
    ]
    assert asked(MALocate(parallel_segments=2), *rows) == (0, 10, 10, 0)


@given(st.lists(SEGMENTS, max_size=8), st.floats(0, 3_000), OURS, SEVERAL)
def test_several_at_once_are_the_next_ones_one_after_the_other(
    standings, budget, strategy, several
):
    standings = [replace(each, answers=each.answers + 1) for each in standings]
    at_once = replace(strategy, parallel_segments=several).plan(standings, budget)
    counts, free, short = [0] * len(standings), list(standings), None
    for _ in range(several):
        for place, n in enumerate(strategy.plan(free, budget).answers):
            short = free[place].short > 0 if n and short is None else short
            if n and (free[place].short > 0) == short:  # nobody else while a floor is missed
                counts[place] = n
                budget -= n * free[place].cost
                free[place] = replace(free[place], batch=0)
    assert at_once.answers == tuple(counts)
    assert at_once.index == strategy.plan(standings, budget).index


def test_why_of_several_at_once():
    rows = [standing(f"s{k}", estimate=k / 100, answers=50 + k) for k in range(60)]
    strategy = MALocate(parallel_segments=50)
    told = why(strategy.plan(rows, 10_000), rows, strategy)
    assert told == (
        "50 of 60 segments, most urgent first: "
        "s59: largest error still expected, 0.59 per cell on 100 cells, after 109 answers; "
        "s58: largest error still expected, 0.58 per cell on 100 cells, after 108 answers; "
        "s57: largest error still expected, 0.57 per cell on 100 cells, after 107 answers "
        "and 47 more"
    )
    short = [replace(each, short=9) for each in rows[:2]]
    assert why(strategy.plan(short, 10_000), short, strategy) == (
        "2 of 2 segments, most urgent first: s0: 9 short of its floor, after 50 answers; "
        "s1: 9 short of its floor, after 51 answers"
    )


# in campaigns and simulations


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("several") / "tasting.db"
    with Campaign.create(path, design()) as campaign:
        live(campaign)
    return path


def test_rounds_of_a_campaign_ask_two_segments(path):
    with Campaign.open(path) as campaign:
        first, *others = decisions(campaign)
        assert towns_of(first) == list(TOWNS)
        assert {len(towns_of(each)) for each in others[:-1]} == {2}
        assert len({tuple(towns_of(each)) for each in others}) > 1  # not the same two for ever
        for each in others[:-1]:
            assert json.loads(each)["why"].startswith("2 of 4 segments, most urgent first: ")
        assert campaign.status().spent == 900


def test_a_campaign_of_two_at_once_verifies(path):
    with Campaign.open(path) as campaign:
        found = campaign.verify()
    assert found.ok
    assert found.answers == 900


def test_a_campaign_of_two_at_once_decides_what_a_simulation_of_it_decides(path):
    with Campaign.open(path) as campaign:
        sources, told = recorded(campaign), decisions(campaign)
        bands = campaign.export("bands").set_index("segment")
    run = simulate(design(), sources, progress=False)
    assert run.why() == [json.loads(body)["why"] for body in told]
    assert [bands.loc[name, "upper"] for name in TOWNS] == [run.bands[name].upper for name in TOWNS]


@pytest.mark.slow
def test_in_many_sittings_two_at_once_are_decided_as_in_one(path, tmp_path):
    other = tmp_path / "sittings.db"
    Campaign.create(other, design()).close()
    for turn in range(400):
        with Campaign.open(other) as sitting:
            if not live(sitting, n=61, who=f"w{turn}", most=1):
                break
    with Campaign.open(other) as sitting, Campaign.open(path) as campaign:
        assert decisions(sitting) == decisions(campaign)


def test_quotas_and_tickets_of_a_round_are_of_both_segments(tmp_path):
    with Campaign.create(tmp_path / "wave.db", design()) as campaign:
        first = campaign.ask(1_000, who="w")
        campaign.tell_many([(ticket, value_of(ticket)) for ticket in first])
        campaign.plan()
        both = towns_of(decisions(campaign)[-1])
        quotas = wave_of(campaign.design, campaign.status(), 10).quotas
        assert {name for name, count in quotas.items() if count} == set(both)
        assert sum(quotas.values()) == 10
        tickets = campaign.ask(1_000, who="w")
        assert {ticket.segment for ticket in tickets} == set(both)
        half = [ticket for ticket in tickets if ticket.segment == both[0]]
        campaign.tell_many([(ticket, value_of(ticket)) for ticket in half])
        campaign.plan()
        assert len(decisions(campaign)) == 2  # the other segment is not answered yet


def test_one_at_a_time_is_the_default(tmp_path):
    sources = [Synthetic.ratings((12, 10), rank=1, rng=seed) for seed in range(3)]
    segments = [source.segment(f"s{k}") for k, source in enumerate(sources)]
    one = Design(segments, 1_200, estimator=SoftImpute(1.0))
    same = replace(one, strategy=MALocate(parallel_segments=1))
    runs = [simulate(each, sources, progress=False) for each in (one, same)]
    assert runs[0].why() == runs[1].why()
    assert all("," not in name for name in runs[0].frame()["segment"][1:])


@pytest.mark.slow
def test_more_at_once_need_fewer_rounds_and_spend_the_same():
    sources = [Synthetic.ratings((12, 10), rank=1 + seed % 3, rng=seed) for seed in range(6)]
    segments = [source.segment(f"s{k}") for k, source in enumerate(sources)]
    rounds = []
    for several in (1, 2, 6):
        strategy = MALocate(parallel_segments=several)
        made = Design(segments, 2_000, estimator=SoftImpute(1.0), strategy=strategy)
        run = simulate(made, sources, progress=False)
        assert run.records[-1].spent == 2_000
        assert max(len(record.changes) for record in run.records[1:]) == several
        rounds.append(len(run.records))
    assert rounds[0] > rounds[1] > rounds[2]


def test_a_design_file_reaches_it_from_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    segments = "".join(f'[[segments]]\nname = "{name}"\nshape = [14, 12]\n' for name in TOWNS)
    strategy = '[strategy]\nname = "MALocate"\nparallel_segments = 3\n'
    (tmp_path / "tasting.toml").write_text(
        f'budget = 1500\nestimator = "SoftImpute"\n{strategy}{segments}', encoding="utf-8"
    )
    given = ["simulate", "tasting.toml", "--jobs", "1", "--out", "out"]
    assert CliRunner().invoke(app, given).exit_code == 0
    from malocate import Run

    for name in ("MALocate", "uniform"):
        whys = Run.load(tmp_path / "out" / name).why()
        assert FIRST in whys[0]
        assert whys[1].startswith("3 of 4 segments"), name
