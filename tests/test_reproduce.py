"""The paper's experiments, on problems small enough for a test."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from malocate import InvalidInput, LowRankLeastSquares
from malocate.compute import Compute
from malocate.experiments.beyond import beyond
from malocate.experiments.claims import Curves, claims
from malocate.experiments.paper import RECIPES, Experiment, design_of, experiment
from malocate.experiments.reproduce import COLUMNS, Task, reproduce, rows_of
from malocate.experiments.results import write

SMALL = Experiment(1, ranks=(4, 1, 1), side=24, rounds=8)


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    return reproduce(1, runs=2, folder=tmp_path_factory.mktemp("rows"), problem=SMALL)


def test_the_problems_are_the_paper_s():
    one, two = experiment(1), experiment(2)
    assert one.ranks == (40,) + 9 * (10,)
    assert (one.budget, two.budget) == (200_000, 300_000)
    assert two.ranks == (18, 18, 18, 18, 18, 19, 20, 22, 24, 28, 33, 40, 49, 61, 76)
    truth = one.sources(0)["M2"].truth
    assert np.linalg.matrix_rank(truth) == 10
    assert truth.var() == pytest.approx(1.0, abs=0.2)
    with pytest.raises(InvalidInput, match="There is no experiment 3"):
        experiment(3)


def test_the_problem_is_drawn_once_and_the_answers_anew():
    one, two = Task(1, "paper", 0, seed=5), Task(1, "paper", 1, seed=5)
    assert (SMALL.sources(5)["M1"].truth == SMALL.sources(5)["M1"].truth).all()
    assert (SMALL.sources(5)["M1"].truth != SMALL.sources(6)["M1"].truth).any()
    assert one.draws_seed != two.draws_seed


def test_the_recipes_are_what_they_say():
    paper, wide, best = (design_of(experiment(1), name, "malocate-inf", 0) for name in RECIPES)
    assert type(paper.estimator).__name__ == "SoftImpute"
    assert (paper.estimator.penalty, paper.scheme.name, paper.estimate) == (
        "fancyimpute",
        "once_vs_multi",
        "pairs",
    )
    assert (paper.strategy.confidence, wide.strategy.confidence) == (2.0, 16.0)
    assert replace(wide, strategy=paper.strategy) == paper
    assert {segment.cap for segment in paper.segments} == {40_000}
    assert {segment.cap for segment in best.segments} == {None}
    assert paper.schedule == best.schedule
    assert best.schedule.size == 1_840


def test_the_rows_have_all_strategies_on_the_same_answers(rows):
    assert [*rows.columns] == [*COLUMNS, "capped"]
    paper = {"malocate-1", "malocate-inf", "uniform", "oracle"}
    assert set(rows[rows.recipe == "paper"].strategy) == paper
    assert set(rows[rows.recipe == "best"].strategy) == paper | {"floor-1", "floor-inf"}
    first = rows[(rows.recipe == "best") & (rows.spent == 3 * 8 * 24)]
    assert first.groupby("run")["loss_1"].nunique().eq(1).all()
    assert rows.groupby(["recipe", "run"])["spent"].max().eq(SMALL.budget).all()


def test_a_wider_bound_changes_malocate_alone():
    problem = Experiment(1, ranks=(6,) + 9 * (1,), side=20, rounds=8)
    paper, wide = (rows_of(Task(1, name, 0, 0), problem) for name in ("paper", "conservative"))
    assert set(wide["recipe"]) == {"conservative"}
    losses = [rows.groupby("strategy")["loss_inf"].apply(list) for rows in (paper, wide)]
    same = losses[0] == losses[1]
    assert [*same[same].index] == ["oracle", "uniform"]
    for rows in (paper, wide):
        assert rows[rows["strategy"] == "oracle"]["capped"].any()


@pytest.mark.parametrize("number", [1, 2])
def test_committed_rows_of_both_bounds_are_of_the_same_answers(number):
    """Uniform and the oracle go by no bound: their rows are the same, or other code made them."""
    rows = pd.read_csv(Path(__file__).parents[1] / "figures" / f"experiment-{number}.csv")
    unbounded = rows[rows["strategy"].isin(["uniform", "oracle"])]
    paper, wide = (
        unbounded[unbounded["recipe"] == recipe].drop(columns="recipe").reset_index(drop=True)
        for recipe in ("paper", "conservative")
    )
    assert len(paper) > 1000
    pd.testing.assert_frame_equal(paper, wide)


def test_sharing_fits_changes_nothing(rows):
    from malocate import simulate

    design = design_of(SMALL, "best", "malocate-inf", Task(1, "best", 1, 0).draws_seed)
    alone = simulate(design, SMALL.sources(0)).frame()
    shared = rows.query("recipe == 'best' and run == 1 and strategy == 'malocate-inf'")
    np.testing.assert_allclose(shared["loss_inf"], alone["loss_inf"], rtol=1e-7)


def test_the_order_of_the_strategies_changes_nothing(rows):
    again = rows_of(Task(1, "best", 0, 0), SMALL)
    kept = rows.query("recipe == 'best' and run == 0")
    np.testing.assert_allclose(again["loss_1"], kept["loss_1"], rtol=1e-7)


def test_a_run_that_is_left_over_has_all_workers(rows, tmp_path, monkeypatch):
    def fit(self, *given, real=LowRankLeastSquares.fit, **more):
        workers.add(threading.get_ident())
        return real(self, *given, **more)

    monkeypatch.setattr(LowRankLeastSquares, "fit", fit)
    workers, two = set(), Compute(jobs=2, by="threads")
    again = reproduce(1, recipes=["best"], runs=1, folder=tmp_path, problem=SMALL, compute=two)
    assert len(workers) >= 2
    kept = rows.query("recipe == 'best' and run == 0")
    np.testing.assert_array_equal(again["loss_1"], kept["loss_1"])


@pytest.mark.parametrize(("runs", "alone"), [(1, [0]), (3, [0]), (4, [])])
def test_an_odd_run_is_done_first(runs, alone, tmp_path, monkeypatch):
    order, spread = [], []

    def rows_of(task, problem, compute=None):
        order.append(task.run)
        spread.extend([task.run] if compute is two else [])
        return pd.DataFrame({"run": [task.run]})

    monkeypatch.setattr("malocate.experiments.reproduce.rows_of", rows_of)
    two = Compute(jobs=2, by="threads")
    rows = reproduce(1, recipes=["best"], runs=runs, folder=tmp_path, problem=SMALL, compute=two)
    assert [*rows.run] == sorted(order) == [*range(runs)]
    assert spread == order[: len(alone)] == alone


def test_finished_runs_are_not_run_again(tmp_path):
    began = reproduce(1, recipes=["paper"], runs=1, folder=tmp_path, problem=SMALL)
    part = next((tmp_path / "parts").glob("*.csv"))
    part.write_text(part.read_text().replace("uniform", "kept"), encoding="utf-8")
    done = []
    again = reproduce(
        1, recipes=["paper"], runs=2, folder=tmp_path, problem=SMALL, done=done.append
    )
    assert "kept" in set(again[again.run == 0].strategy)
    assert "uniform" in set(again[again.run == 1].strategy)
    assert len(done) == 2
    assert len(began) < len(again)


@pytest.mark.slow
def test_a_killed_reproduction_goes_on(tmp_path):
    """SIGKILL in the middle: what is there is whole, and the rest is run."""
    code = (
        "from pathlib import Path; from malocate.experiments.paper import Experiment;"
        "from malocate.experiments.reproduce import reproduce;"
        f"reproduce(1, recipes=['paper'], runs=40, folder=Path({str(tmp_path)!r}),"
        " problem=Experiment(1, ranks=(4, 1, 1), side=24))"
    )
    process = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    deadline = time.monotonic() + 240
    parts: list[Path] = []
    while not parts and time.monotonic() < deadline:
        time.sleep(0.2)
        parts = list((tmp_path / "parts").glob("experiment*.csv"))
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert parts
    for part in (tmp_path / "parts").glob("experiment*.csv"):
        assert set(pd.read_csv(part).columns) == {*COLUMNS, "capped"}
    rows = reproduce(1, recipes=["paper"], runs=2, folder=tmp_path, problem=SMALL)
    assert set(rows.run) == {0, 1}


def made_up(losses, recipe="paper", capped=False):
    """Rows of two runs whose losses are given as functions of what was spent."""
    lines = [
        (1, recipe, run, strategy, spent, f(spent) * (1 + run / 100), f(spent), capped)
        for run in (0, 1)
        for strategy, f in losses.items()
        for spent in range(100, 1_001, 100)
    ]
    return pd.DataFrame(lines, columns=[*COLUMNS, "capped"])


LOSSES = {
    "malocate-1": lambda n: 2.2 / n,
    "malocate-inf": lambda n: 2.0 / n,
    "uniform": lambda n: 6.0 / n**1.05,
    "oracle": lambda n: 1.9 / n,
}


class TestClaims:
    def test_ratios_are_averaged_over_the_run_on_a_log_scale(self):
        curves = Curves(made_up(LOSSES))
        ratios = curves.ratio("malocate-inf", "oracle", "loss_inf")
        assert ratios == pytest.approx(2.0 / 1.9)

    def test_between_looks_the_earlier_one_counts(self):
        curves = Curves(made_up(LOSSES))
        assert curves.of("oracle", "loss_inf")[0, 5] == pytest.approx(1.9 / 100)

    def test_verdicts_follow_the_numbers(self):
        found = {claim.measure: claim for claim in claims(made_up(LOSSES))}
        assert found["loss_inf of uniform over malocate-inf"].verdict == "holds"
        assert found["loss_1 of malocate-inf over malocate-1"].verdict == "fails"
        assert found["loss_inf of malocate-inf over oracle"].verdict == "holds: within 10 %"
        far = made_up(LOSSES | {"oracle": lambda n: 1.0 / n})
        found = {claim.measure: claim for claim in claims(far)}
        assert found["loss_inf of malocate-inf over oracle"].verdict == "not within 10 %"

    def test_a_verdict_needs_the_whole_interval(self):
        rows = made_up(LOSSES)
        near = (rows["strategy"] == "malocate-inf") & (rows["run"] == 1)
        rows.loc[near, "loss_inf"] *= 1.3
        found = {claim.measure: claim for claim in claims(rows)}
        claim = found["loss_inf of malocate-inf over oracle"]
        assert claim.low < 1.1 < claim.high
        assert claim.verdict == "undecided"
        alone = {claim.measure: claim for claim in claims(rows[rows["run"] == 0])}
        assert alone["loss_inf of malocate-inf over oracle"].value < 1.1
        assert alone["loss_inf of malocate-inf over oracle"].verdict == "undecided"

    def test_uniform_catches_up_by_its_interval(self):
        measure = "loss_inf of uniform over malocate-inf at 100% of the way"
        words = {
            lambda n: 6.0 / n: "holds: it has not caught up by then",
            lambda n: 2.0 / n + 200 / n**2.5: "holds: it has caught up",
            lambda n: 1.9 / n: "fails: uniform was never behind",
        }
        for uniform, verdict in words.items():
            found = {each.measure: each for each in claims(made_up(LOSSES | {"uniform": uniform}))}
            assert found[measure].verdict == verdict

    def test_a_flat_end_is_seen(self):
        def flat(n):
            return 100 / min(n, 600)

        rows = made_up(LOSSES | {"malocate-inf": flat})
        rows["capped"] = rows["spent"] >= 600
        found = [claim for claim in claims(rows) if claim.number == 4]
        assert found[0].verdict == "holds"
        assert found[0].value == pytest.approx(1.0)
        rows = made_up(LOSSES)
        rows["capped"] = rows["spent"] >= 600
        assert next(c for c in claims(rows) if c.number == 4).verdict == "fails"

    def test_too_few_rounds_after_the_cap_decide_nothing(self):
        rows = made_up(LOSSES)
        rows["capped"] = rows["spent"] >= 800
        found = [claim for claim in claims(rows) if claim.number == 4]
        assert [claim.measure.split()[2] for claim in found] == ["malocate-inf", "oracle"]
        for claim in found:
            assert math.isnan(claim.value)
            assert claim.verdict == "no verdict: fewer than 3 rounds after the cap"

    def test_without_a_cap_there_is_nothing_to_flatten(self):
        assert not [claim for claim in claims(made_up(LOSSES, "best")) if claim.number == 4]


def test_a_loss_that_was_never_reached_has_no_share_of_the_budget():
    floors = {"floor-1": LOSSES["oracle"], "floor-inf": LOSSES["oracle"]}
    best = made_up(LOSSES | floors, "best")
    slow = (best["run"] == 1) & (best["strategy"] == "malocate-inf")
    best.loc[slow, "loss_inf"] *= 50
    measure = "share of the budget to pass the paper recipe's last loss_inf"
    claim = {each.measure: each for each in beyond(pd.concat([best, made_up(LOSSES)]))}[measure]
    assert math.isnan(claim.value)
    assert claim.verdict == "not reached in 1 of 2 runs"


def test_beyond_the_paper(rows):
    found = {claim.measure: claim.value for claim in beyond(rows)}
    assert found["loss_1 of malocate-1 at the end"] > 0
    assert 0 < found["share of the budget to pass the paper recipe's last loss_inf"] <= 1
    last = rows.query("recipe == 'best' and strategy == 'malocate-inf'").groupby("run").last()
    floor = rows.query("recipe == 'best' and strategy == 'floor-inf'").groupby("run").last()
    ratio = np.exp(np.log(last["loss_inf"] / floor["loss_inf"]).mean())
    assert found["loss_inf of malocate-inf over the floor at the end"] == pytest.approx(ratio)
    assert not beyond(rows[rows.recipe == "paper"])


def test_everything_is_written(rows, tmp_path):
    found = write(1, rows, tmp_path)
    assert [*pd.read_csv(tmp_path / "experiment-1.csv").columns] == COLUMNS
    table = pd.read_csv(tmp_path / "experiment-1-claims.csv")
    assert len(table) == len(found)
    assert {1, 2, 3, 5} <= set(table["number"])
    assert (tmp_path / "experiment-1.png").stat().st_size > 10_000
    assert "<svg" in (tmp_path / "experiment-1.svg").read_text(encoding="utf-8")[:500]
    assert all(math.isfinite(claim.value) for claim in found)
