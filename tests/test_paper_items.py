"""Items of the paper that no other file tests: corners, modes, and how the experiments are set."""

from __future__ import annotations

import math

import numpy as np
import pandas
import pytest
from stand_ins import Fixed

from malocate import (
    Batches,
    Design,
    InvalidInput,
    Loss,
    MALocate,
    Observations,
    Segment,
    SoftImpute,
    Synthetic,
    Uniform,
    error_band,
    simulate,
)
from malocate.confidence.bounds import Paper
from malocate.confidence.schemes import OnceVsMulti
from malocate.experiments.claims import claims
from malocate.experiments.paper import STRATEGIES, Experiment, design_of, experiment
from malocate.experiments.reproduce import Task
from malocate.experiments.simulation import Panel
from malocate.rounds import Batch, Look, begin, plan, take_look
from malocate.theory import first_batch

FAST = SoftImpute(penalty=1.0)
INF = math.inf


def rated(shape=(9, 9), rng=0, **settings):
    return Synthetic.ratings(shape, rank=1, scale=(-2, 2), rng=rng, **settings)


class TestLoss:
    ERRORS, WEIGHTS = (9.0, 4.0, 1.0), (0.5, 2.0, 30.0)

    @pytest.mark.parametrize("p", [1.0, 2.0, 5.0])
    def test_weights_to_the_power_one_over_p_are_the_papers_own(self, p):
        """Remark 1 writes (Σ w x^p)^(1/p), which is ours with w^(1/p)."""
        each = zip(self.ERRORS, self.WEIGHTS, strict=True)
        written = sum(w * x**p for x, w in each) ** (1 / p)
        inside = tuple(w ** (1 / p) for w in self.WEIGHTS)
        assert Loss(p, inside).of(self.ERRORS) == pytest.approx(written)

    def test_the_papers_weights_vanish_at_infinity_and_ours_do_not(self):
        vanished = tuple(w ** (1 / 1e9) for w in self.WEIGHTS)
        assert Loss(INF, vanished).of(self.ERRORS) == pytest.approx(max(self.ERRORS))
        assert Loss(INF, self.WEIGHTS).of(self.ERRORS) == 30.0

    def test_per_entry_weights_at_infinity_are_the_largest_mean_squared_error(self):
        sources = {"small": rated((6, 5)), "large": rated((20, 12), rng=1)}
        segments = [source.segment(name) for name, source in sources.items()]
        design = Design(segments, 300, loss=Loss(INF, "per_entry"), estimator=FAST)
        last = simulate(design, sources).frame().iloc[-1]
        assert last["loss"] == pytest.approx(max(last["error_small"], last["error_large"]))


class TestEveryAnswer:
    """Remark 2: a new estimate after each answer, for small problems."""

    def test_each_look_is_one_answer_later_and_judges_all_so_far(self):
        sources = {"a": rated((5, 4)), "b": rated((4, 4), rng=1)}
        segments = [source.segment(name) for name, source in sources.items()]
        design = Design(segments, 52, schedule=Batches(size=1, first=20), estimator=FAST)
        run = simulate(design, sources)
        frame = run.frame()
        assert frame["spent"].tolist() == list(range(40, 53))
        assert [run.bands[name].answers for name in sources] == [
            frame["n_a"].iloc[-1],
            frame["n_b"].iloc[-1],
        ]


class TestCorners:
    def test_without_a_pair_the_bound_is_infinite_and_the_new_estimate_kept(self):
        """N = 0: infinity is not above infinity, so that ≤ takes the later estimate."""
        source = rated((40, 40))
        design = Design.paper_algorithm([source.segment("a")], 10_000, C=0.1)
        panel, finding = Panel(design.segments[0], source), None
        for first, stop in ((0, 8), (8, 16)):
            panel.ask(design, Batch(0, "a", first, stop))
            before, finding = finding, take_look(design, Look(0, stop, panel.answers, finding))
            assert finding.band.upper == INF
            assert finding.completion is finding.latest.completion
        assert before.completion is not finding.completion

    @pytest.mark.parametrize("p", [1.0, INF])
    def test_one_cell(self, p):
        """d = 1: log d would be 0, and with it the penalty and the bound's width."""
        source = rated((1, 1))
        run = simulate(Design.paper_algorithm([source.segment("a")], 64, p), {"a": source})
        frame = run.frame()
        assert frame["n_a"].tolist() == [4, 8, 16, 32, 64]
        assert frame["upper_a"].iloc[0] > run.bands["a"].upper > 0

    @pytest.mark.parametrize("p", [1.0, 3.0, INF])
    def test_who_was_never_asked_is_asked_at_once(self, p):
        """T = 0 with p < ∞ would be a division by zero."""
        segments = [Segment("a", (3, 3), scale=(0, 1)), Segment("b", (30, 9), scale=(0, 1))]
        design = Design.paper_algorithm(segments, 10_000, p)
        step = plan(design, begin(design))
        assert step.allocation.index == (INF, INF)
        assert [len(batch) for batch in step.batches] == [first_batch((3, 3)), first_batch((30, 9))]

    def test_without_a_scale_the_papers_a_is_the_largest_answer(self):
        rows, cols = np.divmod(np.arange(200) % 20, 5)
        values = np.linspace(-3.0, 2.0, 200)
        seen = Observations(rows, cols, values, shape=(4, 5))
        settings = {"scheme": "halves", "estimate": "pairs", "deliver": "ensemble"}
        guess = Fixed(np.zeros((4, 5)))
        band, told = (
            error_band(guess, seen, bound=Paper(largest=a), check_uniform=False, **settings)
            for a in (None, 3.0)
        )
        assert band.upper == told.upper
        assert band.upper == pytest.approx(band.estimate + 72 * math.sqrt(math.log(5) / 20))


class TestEpsilonDelta:
    def test_delta_takes_the_place_of_the_dimension_in_the_bound(self):
        source, chance = rated((6, 6)), 0.02
        seen, guess = source.observe(200, rng=1), Fixed(np.zeros((6, 6)))
        settings = {"scheme": "halves", "estimate": "pairs", "deliver": "ensemble"}
        by_side, by_delta = (
            error_band(guess, seen, delta=chance, bound=Paper(by=by), **settings)
            for by in ("dimension", "delta")
        )
        width = [band.upper - band.estimate for band in (by_side, by_delta)]
        assert width[1] / width[0] == pytest.approx(math.sqrt(math.log(50) / math.log(6)))

    def test_the_preset_spends_delta_over_segments_and_looks(self):
        design = Design.paper_algorithm([Segment("a", (9, 9), scale=(0, 1))], 900, epsilon=1.0)
        assert design.bound == Paper(by="delta")
        assert Design.paper_algorithm(design.segments, 900).bound == Paper(by="dimension")
        assert design.grids[0].delta_at(1) == pytest.approx(0.05 / 2)

    def test_ours_stops_with_a_certificate(self):
        source = rated((8, 8), noise=0.2)
        goal = 64 * 1.5
        design = Design([source.segment("a")], 10**5, estimator=FAST, epsilon=goal)
        run = simulate(design, {"a": source})
        assert run.stop.reached
        assert run.bands["a"].label == "certified"
        assert run.frame()["loss"].iloc[-1] <= run.frame()["bound"].iloc[-1] <= goal


class TestExperimentDesign:
    """The paper's experiments as a design: what it says, and what it leaves unsaid."""

    def test_the_first_answers_and_a_hundred_sub_samples(self):
        first = design_of(experiment(1), "paper", "malocate-inf", 0)
        grid = first.grids[0]
        assert (grid.size(1), grid.size(2) - grid.size(1)) == (8 * 200, 1840)
        assert (first.budget - 10 * 1600) / 1840 == 100

    def test_every_unsaid_choice_is_written_down(self):
        design = design_of(experiment(2), "paper", "malocate-1", 0)
        assert design.estimator == SoftImpute(penalty="fancyimpute")
        assert design.strategy == MALocate(p=1.0, by="estimate", confidence=2.0)
        assert (design.validation, design.estimate) == (OnceVsMulti(), "pairs")
        assert (design.keep, design.deliver, design.replicates) == ("latest", "ensemble", 0.0)
        assert {segment.cap for segment in design.segments} == {200**2}
        assert design_of(experiment(2), "paper", "uniform", 0).strategy == Uniform(by="segment")

    def test_entries_seen_once_train_and_what_they_train_is_delivered(self):
        source = Synthetic.low_rank((20, 20), rank=2, rng=0)
        design = Design.paper_experiment([source.segment("a")], 300)
        panel = Panel(design.segments[0], source)
        panel.ask(design, Batch(0, "a", 0, 160))
        finding = take_look(design, Look(0, 160, panel.answers))
        often = panel.answers.entries.visits[panel.answers.entry_numbers] > 1
        alone = SoftImpute("fancyimpute").fit(panel.answers.take(~often))
        np.testing.assert_allclose(finding.completion.dense(), alone.dense(), atol=1e-12)
        assert not np.allclose(
            alone.predict(panel.answers.rows, panel.answers.cols), panel.answers.values
        )  # seen cells do not keep their raw answers

    def test_seen_cells_can_keep_their_raw_answers(self):
        source = Synthetic.low_rank((20, 20), rank=2, noise=0.0, rng=0)
        design = Design.paper_experiment(
            [source.segment("a")], 300, schedule=Batches(140, first=160)
        )
        completed, answered = (
            simulate(design, {"a": source}, seen=seen) for seen in ("completed", "answered")
        )
        panel = Panel(design.segments[0], source)
        panel.ask(design, Batch(0, "a", 0, 300))
        once = panel.trained(design)
        assert set(once.entries.visits) == {1}
        misses = (completed.completions["a"].dense() - source.truth) ** 2
        misses[once.rows, once.cols] = 0.0  # there is no noise: what was answered is right
        ends = [run.frame()["error_a"].iloc[-1] for run in (completed, answered)]
        np.testing.assert_allclose(ends[1], misses.mean(), rtol=1e-9)
        assert ends[1] < ends[0]

    def test_raw_answers_need_to_know_what_was_trained_on(self):
        source = Synthetic.low_rank((20, 20), rank=2, rng=0)
        design = Design.paper_experiment([source.segment("a")], 300, keep="best")
        with pytest.raises(InvalidInput, match="forgets what its delivered fit was trained on"):
            simulate(design, {"a": source}, seen="answered")
        with pytest.raises(InvalidInput, match="seen is 'raw'; choose from completed, answered"):
            simulate(design, {"a": source}, seen="raw")

    def test_a_capped_matrix_leaves_the_maximum_and_the_others_go_on(self):
        ranks = {"easy": 1, "hard": 8}
        sources = {name: Synthetic.low_rank((20, 20), rank=r, rng=r) for name, r in ranks.items()}
        segments = [source.segment(name) for name, source in sources.items()]
        design = Design.paper_experiment(segments, 700, schedule=Batches(40))
        frame = simulate(design, sources).frame()
        assert frame["n_hard"].max() == 400
        assert frame["spent"].iloc[-1] == 700
        capped = frame["n_hard"] == 400
        assert set(frame["segment"][capped][1:]) == {"easy"}

    def test_the_noise_can_have_the_variance_instead(self):
        source = Synthetic.low_rank((20, 20), rank=2, noise=math.sqrt(0.1), rng=0)
        design = Design.paper_experiment([source.segment("a")], 400, schedule=Batches(120))
        panel = Panel(design.segments[0], source)
        panel.ask(design, Batch(0, "a", 0, 20_000))
        assert panel.answers.entries.noise_variance == pytest.approx(0.1, rel=0.04)
        assert simulate(design, {"a": source}).frame()["spent"].tolist() == [160, 280, 400]


class TestExperiments:
    def test_the_problems(self):
        one, two = experiment(1), experiment(2)
        assert (one.ranks, one.budget, one.hardest) == ((40, *9 * (10,)), 200_000, "M1")
        ranks = (18, 18, 18, 18, 18, 19, 20, 22, 24, 28, 33, 40, 49, 61, 76)
        assert (two.ranks, two.budget, two.hardest) == (ranks, 300_000, "M15")
        assert sum(rank <= 22 for rank in two.ranks) == 8
        assert round(18 + 0.0015 * 15**4) == 94  # the formula as printed

    def test_the_problem_is_drawn_once_and_the_answers_anew_in_every_run(self):
        small = Experiment(1, (2, 1), side=20)
        one, two = (small.sources(seed=3)["M1"] for _ in range(2))
        assert (one.truth == two.truth).all()
        assert (one.truth != small.sources(seed=4)["M1"].truth).any()
        assert (one.noise, one.scale) == (0.1, None)
        seeds = {Task(1, "paper", run, 3).draws_seed for run in range(15)}
        assert len(seeds) == 15

    def test_the_strategies_of_the_figures(self):
        assert list(STRATEGIES) == ["malocate-1", "malocate-inf", "uniform", "oracle"]
        powers = [getattr(make(), "p", None) for make in STRATEGIES.values()]
        assert powers == [1.0, INF, None, INF]


class TestClaims:
    """The four verdicts on made-up curves whose truth is known."""

    def rows(self, **factors):
        lines = []
        for run in range(4):
            for strategy, (sum_, worst) in factors.items():
                for step in range(12):
                    fall = (1 + 0.01 * run) / (1 + min(step, 8))  # flat once capped
                    losses = {"loss_1": 9 * sum_ * fall, "loss_inf": worst * fall}
                    who = {"run": run, "strategy": strategy.replace("_", "-"), "recipe": "paper"}
                    lines.append({**who, "spent": 10 * step, "capped": step >= 8, **losses})
        return pandas.DataFrame(lines)

    def verdicts(self, **factors):
        return {(c.number, c.measure): c for c in claims(self.rows(**factors))}

    def test_they_hold_where_they_should(self):
        found = self.verdicts(
            malocate_1=(1, 2), malocate_inf=(1.2, 1), uniform=(1.1, 3), oracle=(1.2, 0.95)
        )
        assert {c.verdict for key, c in found.items() if key[0] == 1} == {"holds"}
        near = found[2, "loss_inf of malocate-inf over oracle"]
        assert near.verdict.startswith("holds")
        assert near.value == pytest.approx(1 / 0.95)
        assert all(c.verdict == "holds" for key, c in found.items() if "after the cap" in key[1])

    def test_they_fail_where_they_should(self):
        found = self.verdicts(
            malocate_1=(1.2, 2), malocate_inf=(1, 2), uniform=(1, 1), oracle=(1, 1)
        )
        assert found[1, "loss_1 of uniform over malocate-1"].verdict == "fails"
        assert found[2, "loss_inf of malocate-inf over oracle"].verdict.startswith("not within")
        end = found[3, "loss_1 of uniform over malocate-1 at 100% of the way"]
        assert "never behind" in end.verdict
