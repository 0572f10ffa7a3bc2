"""Plans: twins that are like a pilot, strategies on learning curves, ranges, targets, words."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from malocate import (
    Batches,
    Compute,
    Design,
    InvalidInput,
    InvalidType,
    Segment,
    SoftImpute,
    Synthetic,
)
from malocate.experiments.pilot import plausible_twins
from malocate.experiments.plan_words import target_of
from malocate.experiments.planner import plan_survey
from malocate.experiments.playing import Curve, between, play
from malocate.experiments.survey_plan import Range, left_out
from malocate.strategies import MALocate, Uniform

QUICK = SoftImpute(centre="mean")


def market(**settings):
    segments = [Segment("north", (20, 16), scale=(1, 5)), Segment("south", (16, 14), scale=(1, 5))]
    given = {"budget": 900, "estimator": QUICK, "seed": 3} | settings
    return Design(segments, **given)


def answers_of(design, answers, **ranks):
    made = {
        each.name: Synthetic.ratings(each.shape, ranks[each.name], rng=place)
        for place, each in enumerate(design.segments)
        if each.name in ranks
    }
    return {name: source.observe(answers, rng=9) for name, source in made.items()}


@pytest.fixture(scope="module")
def plan():
    return plan_survey(market(), ranks={"north": 4, "south": 1}, target=0.7, runs=4)


def test_the_same_seed_gives_the_same_plan(plan):
    again = plan_survey(
        market(), ranks={"north": 4, "south": 1}, target=0.7, runs=4, compute=Compute(jobs=2)
    )
    assert again.plain() == plan.plain()
    other = plan_survey(market(seed=4), ranks={"north": 4, "south": 1}, target=0.7, runs=4)
    assert other.forecast("MALocate") != plan.forecast("MALocate")


def test_errors_fall_with_the_budget_and_the_hard_segment_gets_more(plan):
    few, many = (plan.worst("MALocate", budget).middle for budget in (350, 900))
    assert many < few
    asked = plan.answers("MALocate")
    assert asked["north"].middle > asked["south"].middle
    even = plan.answers("uniform")
    assert sum(each.middle for each in even.values()) == pytest.approx(900)


def test_what_is_needed_meets_the_target_and_not_earlier(plan):
    for strategy in plan.strategies:
        for run in plan.runs:
            price = run.paths[strategy].reached
            assert max(run.rmse(strategy, price)) <= 0.7 * 1.001
            assert max(run.rmse(strategy, 0.97 * price)) > 0.7
    assert plan.needed("MALocate") == plan.needed_answers("MALocate")


def test_costs_count_as_the_budget_does():
    segments = [replace_cost(each, 2.0) for each in market().segments]
    plan = plan_survey(Design(segments, 1_800, estimator=QUICK), ranks=2, target=0.7, runs=2)
    cost, asked = plan.needed("uniform"), plan.needed_answers("uniform")
    assert cost.middle == pytest.approx(2 * asked.middle)
    assert "units of the budget" in plan.words()[0]


def replace_cost(segment, cost):
    return Segment(segment.name, segment.shape, scale=segment.scale, cost=cost)


def test_a_target_that_is_met_at_once():
    plan = plan_survey(market(), ranks=1, noise=0.3, target=2.5, runs=3)
    assert "is met by the first questions" in plan.words()[0]
    assert plan.needed("MALocate").high <= 264


def test_a_target_that_is_never_met():
    plan = plan_survey(market(budget=400), ranks=6, noise=2.0, target=0.05, runs=3, most=2)
    needed = plan.needed("MALocate")
    assert math.isinf(needed.low)
    assert plan.words()[0] == (
        "An RMSE of 0.05 or less in every segment is not met with 800 answers, the most that was "
        "tried, in more than half of the twins."
    )
    assert plan.plain()["strategies"]["MALocate"]["needed_cost"]["middle"] is None


def test_a_pilot_with_one_segment_missing():
    design = market()
    plan = plan_survey(design, answers_of(design, 120, north=2), runs=3)
    assert "Not in the pilot, and taken to be like the others: south." in plan.words()
    assert set(plan.forecast("MALocate")) == {"north", "south"}


def test_twins_answer_as_the_pilot_did():
    design = market()
    pilot = answers_of(design, 200, north=2, south=1)
    for name, own in pilot.items():
        made = [sources[name] for _, sources in plausible_twins(design, pilot, 12, seed=1)]
        answers = [source.observe(2_000, rng=5) for source in made]
        spreads = [float(each.values.std()) for each in answers]
        noises = [each.entries.noise_variance for each in answers]
        assert min(spreads) < own.values.std() < max(spreads)
        assert min(noises) < own.entries.noise_variance < max(noises)
        assert all(1 <= value <= 5 for each in answers for value in each.values)


def test_a_large_pilot_tells_few_patterns_from_many():
    shape = (40, 30)
    found = {}
    for rank in (1, 10):
        source = Synthetic.low_rank(shape, rank, noise=0.3, rng=2)
        design = Design([source.segment("a")], 2_000)
        twins = plausible_twins(design, {"a": source.observe(1_500, rng=1)}, 9, seed=0)
        found[rank] = np.median([likes["a"].effective_rank(shape) for likes, _ in twins])
    assert found[1] <= 2
    assert found[10] >= 5


def test_ranges_hold_another_number_of_their_kind():
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(4_000):
        *own, other = rng.standard_exponential(21)
        found = Range.of(own)
        inside += found.low <= other <= found.high
    assert inside / 4_000 == pytest.approx(1 - 2 * left_out(20) / 21, abs=0.02)


def test_a_curve_goes_through_what_was_fitted():
    design = market()
    curve = Curve.of(design, 0, Synthetic.ratings((20, 16), 2, rng=0))
    first = design.grids[0].size(1)
    assert curve.error(0) == math.inf
    at_first = curve.error(first)
    assert curve.known == {first: pytest.approx(at_first, rel=1e-12)}  # it went by logarithms
    assert curve.error(1.5 * first) < at_first
    assert sorted(curve.known) == [first, 2 * first]
    assert between(curve.known, 10 * first) == pytest.approx(curve.known[2 * first])


def test_strategies_ask_as_their_grids_say():
    design = market(schedule=Batches(size=50, first=100))
    curves = [Curve(design, place, None, 0.1, {1: 1.0, 10_000: 0.01}) for place in (0, 1)]
    for curve in curves:
        curve._fitted = lambda size: 1 / size
    path = play(design, Uniform(), curves, budget=500, most=500)
    assert path.answers.tolist() == [[0, 0], [100, 100], [150, 100], [150, 150],
                                     [200, 150], [200, 200], [250, 200], [250, 250]]  # fmt: skip
    assert path.at(325).tolist() == [175, 150]
    assert play(design, MALocate(), curves, budget=480, most=480).spent[-1] == 480


@pytest.mark.parametrize(
    "text", ["rmse<=", "0.15", "rmse<=many", "rmse<=-1", "mae<=0.1", "rmse>=1"]
)
def test_a_target_that_cannot_be_read(text):
    with pytest.raises(InvalidInput, match=r"cannot be read; write it as rmse<=0.15"):
        target_of(text)


@pytest.mark.parametrize(
    ("pilot", "error", "message"),
    [
        ([], InvalidType, "pilot is an? .*; give Observations by the segments' names"),
        ({"east": None}, InvalidInput, "answers of a segment 'east'; there are north, south"),
        ({"north": [1]}, InvalidType, "The pilot of 'north' is a .*; it must be Observations"),
        ({}, InvalidInput, "has 0 answers at most of a segment; at least one segment needs 20"),
    ],
)
def test_a_pilot_that_is_wrong(pilot, error, message):
    with pytest.raises(error, match=message):
        plan_survey(market(), pilot, runs=2)


def test_a_pilot_of_another_shape_is_refused():
    with pytest.raises(InvalidInput, match=r"has shape \(9, 9\), the segment \(20, 16\)"):
        plan_survey(market(), {"north": Synthetic.ratings((9, 9), 1).observe(50)}, runs=2)


def test_a_pilot_and_ranks_do_not_go_together():
    design = market()
    with pytest.raises(InvalidInput, match="A pilot tells ranks and noise; give it, or them"):
        plan_survey(design, answers_of(design, 99, north=1), ranks=2, runs=2)


def test_fresh_draws_alone_are_not_planned():
    design = Design.paper_algorithm(market().segments, 9_000)
    with pytest.raises(InvalidInput, match="The schedule judges fresh draws alone"):
        plan_survey(replace(design), runs=2)


def test_the_picture_has_a_panel_for_the_worst_and_for_each(plan):
    figure = plan.plot("A market")
    assert [panel.get_title() for panel in figure.axes] == ["worst segment", "north", "south"]
    assert figure.get_suptitle() == "A market"
