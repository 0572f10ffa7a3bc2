"""The forecast of answers left."""

from __future__ import annotations

from dataclasses import replace

import pytest

from malocate import Design, SoftImpute, Synthetic, simulate
from malocate.experiments.simulation import Panel
from malocate.rounds import answers_left, begin, close, plan

FAST = SoftImpute(penalty=1.0)


def stopped(budget, **goal):
    source = Synthetic.ratings((30, 20), rank=1, rng=0)
    design = Design([source.segment("a")], budget, estimator=FAST, **goal)
    return simulate(design, {"a": source})


def test_the_forecast_is_near_what_it_takes():
    run = stopped(100_000, rmse=0.75)
    assert run.stop.reached
    needed = run.frame()["spent"].iloc[-1]
    early = stopped(needed / 4, rmse=0.75)
    left = early.answers_left
    assert 0.4 * needed < early.frame()["spent"].iloc[-1] + left["a"] < 2.5 * needed


def test_at_the_goal_nothing_is_left():
    assert stopped(100_000, rmse=0.75).answers_left == {"a": 0}


def test_epsilon_is_foretold_too():
    left = stopped(800, epsilon=600 * 0.5).answers_left
    assert left["a"] > 0


@pytest.mark.parametrize("goal", [{}, {"rmse": 0.1}])
def test_nothing_is_foretold_without_a_goal_or_a_look(goal):
    source = Synthetic.ratings((30, 20), rank=1, rng=0)
    design = Design([source.segment("a")], 100, **goal)
    assert answers_left(design, begin(design)) is None


def test_a_goal_further_off_takes_longer():
    near, far = (stopped(800, rmse=rmse).answers_left["a"] for rmse in (0.8, 0.6))
    assert near < far


def test_faster_bounds_take_fewer_answers():
    source = Synthetic.ratings((30, 20), rank=1, rng=0)
    design = Design([source.segment("a")], 1_000, estimator=FAST, rmse=0.5)
    panel, step = Panel(design.segments[0], source), plan(design, begin(design))
    panel.ask(design, step.batches[0])
    (finding,) = close(design, step, begin(design), {"a": panel.answers})
    now = (finding.asked, finding.upper)
    slow = replace(finding, trail=((100, finding.upper * 1.5), now))
    fast = replace(finding, trail=((100, finding.upper * 3), now))
    assert answers_left(design, [fast])["a"] < answers_left(design, [slow])["a"]
