"""Strategies side by side: same budget, same answers, and what it takes to get as good."""

from __future__ import annotations

import math
from dataclasses import replace

import pandas
import pytest

from malocate import (
    Batches,
    Compute,
    Design,
    Loss,
    MALocate,
    Oracle,
    Segment,
    SoftImpute,
    Synthetic,
    Uniform,
    simulate,
)
from malocate.experiments.compare import compare

RANKS = {"easy": 1, "hard": 5}


@pytest.fixture(scope="module")
def sources():
    return {name: Synthetic.ratings((24, 20), rank=rank, rng=rank) for name, rank in RANKS.items()}


@pytest.fixture(scope="module")
def design(sources):
    segments = [source.segment(name) for name, source in sources.items()]
    batches = Batches(size=100, first=200)
    return Design(segments, 1_200, estimator=SoftImpute(), schedule=batches, loss=Loss(p=2))


@pytest.fixture(scope="module")
def found(design, sources):
    return compare(design, sources)


def same(one, two):
    pandas.testing.assert_frame_equal(one.frame(), two.frame(), check_exact=True)


def test_sharing_fits_changes_nothing(found, design, sources):
    same(found.run, simulate(design, sources))
    same(found.rival, simulate(replace(design, strategy=Uniform()), sources))


def test_processes_change_nothing(found, design, sources):
    spread = compare(design, sources, compute=Compute(jobs=2))
    same(spread.run, found.run)
    same(spread.beyond, found.beyond)


def test_the_rival_goes_on_until_it_is_as_good_and_no_further(found):
    own, other = found.losses
    assert other > own
    losses = found.beyond.frame()["loss"].tolist()
    assert losses[-1] <= own
    assert all(loss > own for loss in losses[:-1])
    assert found.reached
    spent = [run.records[-1].spent for run in (found.run, found.rival, found.beyond)]
    assert spent[:2] == [1_200, 1_200]
    assert found.more == spent[2] - 1_200 > 0
    times = spent[2] / 1_200
    assert found.words() == (
        f"To get as low as MALocate, Uniform would have needed {found.more:,.0f} answers more: "
        f"{times:.1f} times as many."
    )


def test_a_rival_that_does_not_get_there_needs_more_than_that(design, sources):
    found = compare(design, sources, most=1.02)
    assert not found.reached
    assert found.more == pytest.approx(24)
    assert "needed more than 24 answers more: more than 1.0 times as many." in found.words()


def test_a_rival_that_is_as_good_has_nothing_to_catch_up(design, sources):
    found = compare(design, sources, MALocate(), names=("MALocate", "itself"))
    same(found.run, found.rival)
    assert (found.beyond, found.more, found.reached) == (None, 0.0, True)
    assert found.words().startswith("itself does as well here: its loss is ")


def test_the_names_are_those_of_the_strategies(design, sources):
    small = replace(design, strategy=Uniform(), budget=0.5)
    assert compare(small, sources, Oracle()).names == ("Uniform", "Oracle")
    assert compare(small, sources).names == ("Uniform", "rival-Uniform")
    assert compare(small, sources, names=("one", "two")).names == ("one", "two")


def test_the_rival_takes_the_designs_loss(design, sources):
    found = compare(design, sources, Oracle())
    assert found.rival.design.strategy == Oracle(p=2)


def test_a_run_that_reached_its_goal_is_compared_at_what_it_spent(design, sources):
    run = compare(replace(design, rmse=2.5), sources).run
    assert run.stop.reached
    found = compare(replace(design, rmse=2.5), sources)
    assert found.rival.records[-1].spent == run.records[-1].spent < 1_200


def test_fresh_answers_are_not_shared(sources):
    segments = [source.segment(name) for name, source in sources.items()]
    design = Design.paper_algorithm(segments, budget=900)
    found = compare(design, sources, most=1.5)
    same(found.run, simulate(design, sources))
    same(found.rival, simulate(replace(design, strategy=Uniform()), sources))


def test_without_the_truth_there_are_no_words_of_worth(design):
    def answers(rows, cols):
        return 1.0 + (rows + cols) % 5

    found = compare(design, dict.fromkeys(RANKS, answers))
    assert all(math.isnan(loss) for loss in found.losses)
    assert found.words().startswith("The truth is not known")
    assert found.beyond is None


def test_costs_are_counted_in_units_of_the_budget(design, sources):
    segments = [replace_cost(segment, 2.0) for segment in design.segments]
    found = compare(replace(design, segments=segments, budget=2_400), sources)
    assert "units of the budget more" in found.words()
    told = []
    compare(
        replace(design, segments=segments, budget=2_400),
        sources,
        show=lambda label, spent: told.append((label, spent)),
    )
    assert told[-1] == ("Uniform, going on", found.beyond.records[-1].spent)


def replace_cost(segment, cost):
    return Segment(segment.name, segment.shape, scale=segment.scale, cost=cost)


def test_a_budget_that_pays_for_nothing(design, sources):
    found = compare(replace(design, budget=0.5), sources)
    assert found.run.records == ()
    assert found.more == 0.0


def test_the_picture_has_both_runs_and_what_it_would_have_taken(found):
    panel = found.plot("Two towns").axes[0]
    labels = {line.get_label() for line in panel.lines}
    assert {"MALocate", "Uniform", "Uniform, going on"} <= labels
    assert any(text.get_text() == f"{found.more:,.0f} more" for text in panel.texts)
