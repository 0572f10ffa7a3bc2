"""Designs: what is refused, and that text and design say the same."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from malocate import (
    Batches,
    CrossFit,
    Design,
    Doubling,
    GoodAllocation,
    Growing,
    HoldOut,
    InvalidInput,
    InvalidType,
    Loss,
    LowRankLeastSquares,
    MALocate,
    Oracle,
    Segment,
    SoftImpute,
    SquareRootLasso,
    Uniform,
)
from malocate.confidence.bounds import Moment, Paper
from malocate.confidence.schemes import Halves, OnceVsMulti
from malocate.design.schedules import capped

NORTH = Segment("north", (6, 4), scale=(1, 5), weight=2, cost=0.5, cap=60, floor=3)
MASK = np.array([[True, False], [False, False]])
SOUTH = Segment("söuth/2", labels=(["Al", "Bo"], ["red", "white"]), mask=MASK)


def design(**settings):
    return Design([NORTH, SOUTH], **({"budget": 100} | settings))


DESIGNS = {
    "defaults": design(),
    "weights": Design([Segment("a", (3, 2))], 50, loss=Loss(2, (3.0,))),
    "per entry": design(loss=Loss(1, "per_entry")),
    "paper": Design.paper_algorithm([NORTH], 10_000, 1.0, epsilon=3.0, largest=2.0),
    "experiment": Design.paper_experiment([Segment("a", (9, 9))], 1_000, 2.0),
    "uniform": design(strategy=Uniform(by="entries"), schedule=Batches(1, first=5)),
    "good": design(strategy=GoodAllocation.of([NORTH, SOUTH], [2, 1])),
    "several": design(strategy=MALocate(by="upper", parallel_segments=2)),
    "several alike": design(strategy=Uniform(parallel_segments=3)),
    "several good": design(strategy=GoodAllocation.of([NORTH, SOUTH], [2, 1], 1, 2)),
    "several true": design(strategy=Oracle(parallel_segments=2)),
    "oracle": design(strategy=Oracle(p=3), validation=HoldOut(0.3), deliver="ensemble"),
    "targets": design(rmse={"north": 0.15}, replicates=0.05, pooled=False, noise_variance=0.25),
    "one target": design(rmse=0.2, epsilon=4.0, bound=Moment(kappa=5.0), seed=2**40),
    "soft": design(estimator=SoftImpute(penalty=2.0), validation=CrossFit(4, 0.05)),
    "lasso": design(
        estimator=SquareRootLasso(box="clip"),
        validation=Halves(),
        estimate="pairs",
        bound="normal",
    ),
    "fixed": design(estimator=LowRankLeastSquares(rank=2, ridge=0.1, centre="mean")),
    "once": design(
        validation=OnceVsMulti(), estimate="pairs", bound=Paper(by="delta"), schedule=Growing(2.0)
    ),
    "doubling": design(schedule=Doubling(), keep="best", strategy=MALocate(by="upper")),
}


@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize("form", ["toml", "json"])
def test_text_and_design_say_the_same(name, form):
    write, read = getattr(Design, f"to_{form}"), getattr(Design, f"from_{form}")
    text = write(DESIGNS[name])
    assert read(text) == DESIGNS[name]
    assert write(read(text)) == text


@pytest.mark.parametrize("suffix", ["toml", "json"])
def test_a_file_keeps_a_design(tmp_path, suffix):
    path = tmp_path / f"design.{suffix}"
    DESIGNS["targets"].save(path)
    assert Design.load(path) == DESIGNS["targets"]


def test_what_is_left_out_has_its_default():
    text = 'budget = 50\n[[segments]]\nname = "a"\nshape = [3, 2]\n'
    assert Design.from_toml(text) == Design([Segment("a", (3, 2))], 50)


def test_parts_may_be_named_alone():
    text = 'budget = 50\nstrategy = "Uniform"\n[[segments]]\nname = "a"\nshape = [3, 2]\n'
    assert Design.from_toml(text).strategy == Uniform()


SEGMENT = '\n[[segments]]\nname = "a"\nshape = [3, 2]\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("budget = ", "The design is not TOML"),
        ("budget = 5", "The design has no segments"),
        (SEGMENT, "The design has no budget"),
        ("budget = 5\nbudgets = 3" + SEGMENT, r"unknown setting 'budgets'\. Did you mean 'budget'"),
        ("budget = -5" + SEGMENT, "budget is -5; it must be a positive number"),
        ("budget = 5" + SEGMENT + "cost = 0", r"segments\[0\]: Segment 'a': cost is 0"),
        ("budget = 5" + SEGMENT + "mask = [[9, 9]]", r"segments\[0\]: its mask has \(9, 9\)"),
        ("budget = 5\nsegments = [3]", r"segments\[0\] is 3; it must be a table"),
        ("budget = 5\nsegments = 3", "segments must be a list of tables"),
        ('budget = 5\nstrategy = "Malocate"' + SEGMENT, r"no strategy 'Malocate'.*'MALocate'"),
        ('budget = 5\nstrategy = {name = "MALocate", q = 1}' + SEGMENT, "unknown setting 'q'"),
        ('budget = 5\nstrategy = {name = "MALocate", p = 0.5}' + SEGMENT, "strategy: p is 0.5"),
        ("budget = 5\nstrategy = {p = 1}" + SEGMENT, "strategy has no name"),
        (
            'budget = 5\nstrategy = {name = "Uniform", parallel_segments = 0}' + SEGMENT,
            "strategy: parallel_segments is 0; it must be at least 1",
        ),
        ('budget = 5\nschedule = {name = "daily"}' + SEGMENT, "no schedule 'daily'; choose from"),
        ("budget = 5\nloss = 3" + SEGMENT, "loss is 3; it must be a table"),
        ('budget = 5\nbound = "tight"' + SEGMENT, "bound is 'tight'; choose from auto"),
    ],
)
def test_a_mistake_in_a_file_is_named_by_its_place(tmp_path, text, words):
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises((InvalidInput, InvalidType), match=f"mine.toml: .*{words}"):
        Design.load(path)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InvalidInput, match=r"absent\.toml cannot be read: No such file"):
        Design.load(tmp_path / "absent.toml")
    with pytest.raises(InvalidInput, match=r"must end in \.toml or \.json"):
        Design.load(tmp_path / "design.yaml")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"segments": []}, "segments is empty"),
        ({"segments": [NORTH, replace(SOUTH, name="north")]}, "are both called 'north'"),
        ({"budget": 1}, "The floors of the segments cost 1.5 and the budget is 1"),
        ({"loss": Loss(1, (1, 2, 3))}, "The loss has 3 weights and there are 2 segments"),
        ({"loss": Loss(1, (1, 2))}, "The segments and the loss both have weights"),
        ({"keep": "all"}, "keep is 'all'; it must be 'latest' or 'best'"),
        ({"replicates": 1.5}, "replicates is 1.5; it must lie between 0 and 1"),
        ({"rmse": 0}, "rmse is 0"),
        ({"rmse": {"east": 0.1}}, "rmse names a segment 'east'; there are north"),
        ({"epsilon": -1}, "epsilon is -1"),
        ({"estimate": "guess"}, "estimate is 'guess'; choose from"),
        ({"bound": "betting"}, "Segment 'söuth/2': bound='betting' needs to know"),
        ({"noise_variance": 100.0}, "Segment 'north': noise_variance is 100.0; answers from"),
        ({"estimate": "two_phase"}, "Segment 'north': bound='betting' cannot judge"),
        ({"replicates": 0.1, "schedule": Doubling()}, "judges fresh draws alone"),
        ({"strategy": GoodAllocation({"north": 1.0})}, "no complexity for segment 'söuth/2'"),
        ({"seed": -1}, "seed is -1; it must be at least 0"),
    ],
)
def test_bad_designs_are_refused(settings, words):
    with pytest.raises(InvalidInput, match=words):
        Design(**({"segments": [NORTH, SOUTH], "budget": 100} | settings))


def test_a_switch_is_no_share():
    with pytest.raises(InvalidType, match="replicates is False"):
        design(replicates=False)


def test_folds_must_fit_into_the_whole():
    with pytest.raises(InvalidInput, match=r"share is 0\.9; 3 folds of it must fit"):
        CrossFit(folds=3, share=0.9)


def test_a_design_does_not_change_with_what_it_was_made_of():
    targets = {"north": 0.1}
    made = design(rmse=targets)
    targets["north"] = 5.0
    assert made.targets == (0.1, math.inf)
    assert hash(made) == hash(design(rmse={"north": 0.1}))


@pytest.mark.parametrize("part", ["estimator", "strategy", "schedule", "loss"])
def test_parts_of_another_kind_are_refused(part):
    with pytest.raises(InvalidType, match=f"{part} is 3"):
        design(**{part: 3})


def test_the_strategy_takes_the_loss_s_power_unless_it_has_its_own():
    assert design(loss=Loss(2)).strategy == MALocate(p=2)
    assert design(loss=Loss(2), strategy=MALocate(p=1)).strategy == MALocate(p=1)


def test_weights_per_entry_count_askable_cells():
    assert design(loss=Loss(1, "per_entry")).weights == (2 / 24, 1 / 3)


@pytest.mark.parametrize("schedule", [Growing(), Batches(7), Doubling()])
def test_a_cap_ends_the_looks(schedule):
    grid = capped(schedule.grid(NORTH, 0.05, 2), NORTH.cap)
    sizes = [grid.size(number) for number in range(1, grid.looks + 1)]
    assert sizes[-1] == NORTH.cap
    assert sizes == sorted(set(sizes))


def test_a_large_cap_is_no_list_of_sizes():
    grid = Design([Segment("a", (9, 9), cap=10**8)], 1e9, schedule=Batches(1)).grids[0]
    assert grid.looks == 10**8 - 71  # the first is 8 for each line
    assert grid.next_size(10**8 - 1) == 10**8
    assert grid.next_size(10**8) is None


def test_doubling_doubles_exactly_for_ever():
    grid = Doubling().grid(Segment("a", (200, 200)), 0.05, 1)
    assert [grid.size(n) for n in range(1, 40)] == [2124 * 2**n for n in range(39)]


def test_the_experiments_first_answers_end_at_the_caps():
    narrow = [Segment("a", (100, 2)), Segment("b", (9, 9), cap=60)]
    assert Design.paper_experiment(narrow, 1_260, rounds=10).schedule == Batches(100)


def test_the_experiment_needs_its_first_answers():
    with pytest.raises(InvalidInput, match="cost 72 and the budget is 70"):
        Design.paper_experiment([Segment("a", (9, 9))], 70, math.inf)
