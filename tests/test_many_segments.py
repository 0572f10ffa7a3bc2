"""What keeps thousands of segments cheap: nothing is read, or computed, that nobody needs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from surveys import decisions, live, town, value_of

from malocate import Campaign, Design, MALocate, SoftImpute, Synthetic, simulate
from malocate.campaign import memory, planner
from malocate.confidence.spending import LARGEST, Anytime
from malocate.estimators.base import Completion
from malocate.rounds import plan

TOWNS = [f"town {number}" for number in range(6)]


def design(several=2) -> Design:
    strategy = MALocate(parallel_segments=several)
    towns = [town(name) for name in TOWNS]
    return Design(towns, budget=1_000, estimator=SoftImpute(2.0), strategy=strategy)


@pytest.fixture
def path(tmp_path):
    """A campaign whose second round is answered, and whose third is not planned."""
    path = tmp_path / "towns.db"
    with Campaign.create(path, design()) as campaign:
        for _ in range(2):
            campaign.plan()
            tickets = campaign.ask(1_000, who="w")
            campaign.tell_many([(ticket, value_of(ticket)) for ticket in tickets])
    return path


@pytest.fixture
def loads(monkeypatch):
    """The completions that were read."""
    read, usual = [], Completion.load.__func__

    def load(cls, file):
        read.append(usual(cls, file))
        return read[-1]

    monkeypatch.setattr(Completion, "load", classmethod(load))
    return read


def folds_and_refit(campaign) -> int:
    return campaign.design.scheme.folds + 1


def test_a_planner_that_comes_anew_reads_the_fits_of_the_round_alone(path, loads):
    with Campaign.open(path) as campaign:
        assert campaign.plan() == "planned"
        assert len(loads) == 2 * folds_and_refit(campaign)
        assert len(decisions(campaign)) == 3


def test_what_it_has_not_read_is_read_when_it_is_looked_at(path, tmp_path):
    with Campaign.open(path) as campaign:
        live(campaign)
        asked = {name for name in TOWNS if campaign.status().segments[TOWNS.index(name)].planned}
        assert asked == set(TOWNS)
        assert campaign.verify().ok
    with Campaign.create(tmp_path / "one.db", design()) as one, Campaign.open(path) as campaign:
        live(one)
        assert decisions(one) == decisions(campaign)


def test_an_outline_decides_as_the_whole_does(path):
    with Campaign.open(path) as campaign:
        bodies = campaign.store.memories(campaign.id)
        outlines = memory.unpack_all(bodies, campaign.design, memory.outline)
        wholes = memory.unpack_all(bodies, campaign.design)
    assert plan(campaign.design, outlines) == plan(campaign.design, wholes)
    read = [memory.whole(each, campaign.design, place) for place, each in enumerate(outlines)]
    for one, two in zip(read, wholes, strict=True):
        np.testing.assert_array_equal(one.completion.dense(), two.completion.dense())
    assert memory.whole(wholes[0], campaign.design, 0) is wholes[0]
    assert memory.whole(None, campaign.design, 0) is None


def test_findings_are_read_as_they_are_wanted(path, loads):
    with Campaign.open(path) as campaign:
        found = campaign.findings()
        assert len(found) == len(TOWNS)
        assert not loads
        assert found[2] is found[2] is found[-4]
        assert len(loads) == folds_and_refit(campaign)
        assert [each.asked for each in found] == [each.asked for each in found[:]]
        with pytest.raises(IndexError):
            found[6]


def test_before_a_look_there_is_no_finding(tmp_path):
    with Campaign.create(tmp_path / "new.db", design()) as campaign:
        assert list(campaign.findings()) == [None] * len(TOWNS)


def test_a_planner_reads_the_design_once(path, monkeypatch):
    texts = []

    def read(text):
        texts.append(text)
        return Design.from_toml(text)

    with Campaign.open(path) as campaign:
        monkeypatch.setattr(planner, "Design", type("Read", (), {"from_toml": staticmethod(read)}))
        live(campaign, most=6)
        assert len(decisions(campaign)) > 3
        assert len(texts) == 1
        campaign.amend(budget=1_100, why="more money")
        live(campaign)
        assert len(texts) == 2
        assert campaign.status().spent == 1_100


@pytest.mark.parametrize(("first", "ratio"), [(100, 1.25), (7, 1.3), (800, 2.0), (20, 1.06)])
@pytest.mark.parametrize("last", [None, 5_000])
def test_the_sizes_of_looks_are_those_of_the_formula(first, ratio, last):
    grid = Anytime(first=first, ratio=ratio, last=last)
    sizes = [math.ceil(first * ratio**steps - 1e-6) for steps in range(60)]
    for draws in (0, first - 1, first, first + 1, 1_000, 4_999, 5_000, 123_456):
        above = [size for size in sizes if size > draws]
        expected = above[0] if above else grid.next_size(draws)
        if last is not None:
            expected = None if draws >= last else min(expected, last)
        assert grid.next_size(draws) == expected


def test_the_sizes_end_at_the_largest_number():
    grid = Anytime(first=100, ratio=2.0)
    assert grid.size(500) == LARGEST
    assert grid.next_size(8 * 10**18) == LARGEST


def test_a_frame_follows_every_round():
    sources = [Synthetic.ratings((9, 8), rank=1, rng=seed) for seed in range(5)]
    segments = [source.segment(f"s{k}") for k, source in enumerate(sources)]
    strategy = MALocate(parallel_segments=2)
    made = Design(segments, 900, estimator=SoftImpute(1.0), strategy=strategy)
    run = simulate(made, sources, progress=False)
    frame, asked = run.frame(), dict.fromkeys([each.name for each in segments], 0)
    for line, record in zip(frame.to_dict("records"), run.records, strict=True):
        for change in record.changes:
            asked[change.segment] = change.asked
            assert line[f"error_{change.segment}"] == change.error
            assert line[f"upper_{change.segment}"] == change.upper
        assert {name: line[f"n_{name}"] for name in asked} == asked
    assert frame.columns[-1] == "why"
    assert frame.filter(like="n_").dtypes.unique().tolist() == [np.dtype("int64")]
