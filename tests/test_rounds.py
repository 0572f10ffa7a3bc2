"""The pure step: draws, looks, rounds, stopping; the same however it is cut."""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from malocate import (
    Allocation,
    Batches,
    CrossFit,
    Design,
    Doubling,
    HoldOut,
    InvalidInput,
    InvalidType,
    Loss,
    MALocate,
    Observations,
    Replay,
    Segment,
    SoftImpute,
    Synthetic,
    Uniform,
    simulate,
)
from malocate.confidence.pooling import pooled_noise
from malocate.experiments.simulation import Panel
from malocate.rounds import Round, Stop, begin, close, plan, questions, spent
from malocate.rounds.asking import Replicates, origins

FAST = SoftImpute(penalty=1.0)


def market(noise=0.3):
    sources = {
        "easy": Synthetic.low_rank((12, 9), rank=1, noise=noise, rng=0),
        "hard": Synthetic.low_rank((15, 15), rank=4, noise=noise, rng=1),
        "wide": Synthetic.ratings((6, 30), rank=1, rng=2),
    }
    return sources, [source.segment(name) for name, source in sources.items()]


def design_of(**settings):
    sources, segments = market()
    return sources, Design(segments, **({"budget": 2_000, "estimator": FAST} | settings))


class TestAsking:
    def test_draws_do_not_depend_on_how_they_are_cut(self):
        design = Design([Segment("a", (20, 10))], 10_000, seed=3)
        whole = questions(design, design.segments[0], 0, 900)
        parts = [questions(design, design.segments[0], *cut) for cut in ((0, 1), (1, 400))]
        parts.append(questions(design, design.segments[0], 400, 900))
        for name in ("rows", "cols", "draws", "repeats"):
            joined = np.concatenate([getattr(part, name) for part in parts])
            assert (joined == getattr(whole, name)).all()

    def test_fresh_draws_are_uniform_over_the_askable_cells(self):
        mask = np.zeros((6, 5), dtype=bool)
        mask[2, 3] = mask[0, 0] = True
        design = Design([Segment("a", (6, 5), mask=mask)], 10**6, replicates=0)
        asked = questions(design, design.segments[0], 0, 28_000)
        counts = np.bincount(asked.rows * 5 + asked.cols, minlength=30)
        assert not counts[mask.ravel()].any()
        assert stats.chisquare(counts[~mask.ravel()]).pvalue > 1e-4

    def test_another_seed_or_segment_asks_other_cells(self):
        one, two = (Design([Segment("a", (99, 99))], 9, seed=seed) for seed in (1, 2))
        other = Design([Segment("b", (99, 99))], 9, seed=1)
        rows = [questions(each, each.segments[0], 0, 50).rows for each in (one, two, other)]
        assert (rows[0] != rows[1]).any()
        assert (rows[0] != rows[2]).any()

    def test_a_replicate_asks_the_cell_of_an_earlier_fresh_draw(self):
        design = Design([Segment("a", (50, 50))], 10**4, replicates=0.25)
        asked = questions(design, design.segments[0], 0, 2_000)
        again = asked.repeats >= 0
        assert again.mean() == pytest.approx(0.25, abs=0.001)
        assert (asked.repeats[again] < asked.draws[again]).all()
        assert (asked.repeats[asked.repeats[again]] == -1).all()
        assert (asked.rows[asked.repeats[again]] == asked.rows[again]).all()
        assert (asked.cols[asked.repeats[again]] == asked.cols[again]).all()

    @pytest.mark.parametrize("shape", [(200, 200), (50, 30), (5, 5)])
    def test_auto_gives_about_two_hundred_pairs(self, shape):
        segment = Segment("a", shape)
        design = Design([segment], 10**5)
        until = math.ceil(Replicates.of(design, segment).until)
        asked = questions(design, segment, 0, until)
        answers = segment.observations(asked.rows, asked.cols, np.zeros(until))
        counts = answers.entries.visits
        pairs = (counts * (counts - 1) / 2).sum()
        assert 120 < pairs < 330
        assert not Replicates.of(design, segment).among(np.arange(until, until + 999)).any()

    def test_declared_noise_needs_no_replicates(self):
        design = Design([Segment("a", (50, 50))], 10**4, noise_variance=0.1)
        assert (questions(design, design.segments[0], 0, 999).repeats == -1).all()

    def test_the_first_draw_is_fresh(self):
        assert origins(np.arange(3), Replicates(0.99, math.inf), "key").tolist() == [0, 0, 0]


class TestStep:
    @pytest.mark.parametrize("validation", [CrossFit(3), HoldOut(0.3)])
    def test_a_replay_from_the_answers_decides_the_same(self, validation):
        """Looks taken anew, from nothing but the answers, give the rounds that were planned."""
        estimator = SoftImpute(penalty=1.0)
        sources, design = design_of(validation=validation, estimator=estimator, budget=1_200)
        run = simulate(design, sources)
        panels = [Panel(segment, sources[segment.name]) for segment in design.segments]
        for panel, place in zip(panels, range(3), strict=True):
            last = int(run.frame()[f"n_{panel.segment.name}"].iloc[-1])
            batch = next(iter(plan(design, begin(design)).batches))
            panel.ask(design, replace(batch, place=place, first=0, stop=last))
        answers = {panel.segment.name: panel.answers for panel in panels}
        findings, rounds = begin(design), []
        while isinstance(step := plan(design, findings), Round):
            findings = close(design, step, findings, answers)
            rounds.append(step)
        assert [step.why for step in rounds] == run.why()
        for finding, name in zip(findings, sources, strict=True):
            assert finding.band.upper == run.bands[name].upper
            assert finding.band.estimate == run.bands[name].estimate

    def test_only_the_segments_of_a_round_are_fitted(self):
        calls = []
        sources, design = design_of(budget=900)

        def counted(segment, before, asked):
            calls.append(segment)
            return map

        run = simulate(design, sources, map_of=counted)
        asked = [change.segment for record in run.records for change in record.changes]
        assert calls == asked

    def test_strategies_with_one_seed_see_the_same_answers(self):
        sources, design = design_of(schedule=Batches(50, first=100))
        for strategy in (Uniform(), MALocate(p=1)):
            panel = Panel(design.segments[1], sources["hard"])
            run = simulate(replace(design, strategy=strategy), sources)
            assert run.design.seed == design.seed
            first = next(b for b in plan(design, begin(design)).batches if b.segment == "hard")
            panel.ask(design, first)
            shared = [r for r in run.records if any(c.segment == "hard" for c in r.changes)]
            error = next(c.error for c in shared[0].changes if c.segment == "hard")
            assert error == pytest.approx(_error_after(sources["hard"], panel.answers), rel=1e-9)

    def test_a_late_answer_counts_at_the_next_look(self):
        _, design = design_of(schedule=Batches(40, first=60), validation=HoldOut(0.3))
        panel = Panel(design.segments[0], market()[0]["easy"])
        step = plan(design, begin(design))
        panel.ask(design, step.batches[0])
        late = panel.answers.take(panel.answers.draws != 5)
        one = close(design, _only(step, 0), begin(design), {"easy": late})[0]
        assert one.band.answers == 59
        panel.ask(design, replace(step.batches[0], first=60, stop=100))
        second = replace(_only(step, 0), batches=(replace(step.batches[0], first=60, stop=100),))
        two = close(design, second, [one, None, None], {"easy": panel.answers})[0]
        assert two.band.answers == 100

    def test_a_round_closes_when_all_its_draws_are_settled(self):
        _, design = design_of()
        step = plan(design, begin(design))
        counts = {batch.segment: batch.stop for batch in step.batches}
        assert step.closed(counts)
        assert not step.closed(counts | {"hard": counts["hard"] - 1})

    def test_a_batch_cut_to_the_budget_is_not_certified(self):
        source = Synthetic.ratings((20, 15), rank=1, rng=0)
        design = Design([source.segment("a")], 390, estimator=FAST, schedule=Batches(200, 200))
        run = simulate(design, {"a": source})
        assert run.frame()["spent"].tolist() == [200, 390]
        assert run.bands["a"].label == "approximate"
        assert "cut to what the budget left" in run.bands["a"].reason
        whole = simulate(replace(design, budget=400), {"a": source})
        assert whole.bands["a"].label == "certified"

    def test_the_looks_spend_no_more_than_delta(self):
        _, design = design_of(delta=0.1)
        total = sum(grid.delta_at(n) for grid in design.grids for n in range(1, 2_000))
        assert 0.0999 < total <= 0.1

    def test_pooling_lends_the_noise_level(self):
        sources, design = design_of(replicates=0.1, budget=300, schedule=Batches(60, first=60))
        step = plan(design, begin(design))
        panels = [Panel(segment, sources[segment.name]) for segment in design.segments]
        for batch in step.batches:
            panels[batch.place].ask(design, batch)
        answers = {panel.segment.name: panel.answers for panel in panels}
        findings = close(design, step, begin(design), answers)
        pooled = plan(design, findings).standings
        alone = plan(replace(design, pooled=False), findings).standings
        assert [each.estimate for each in pooled] != [each.estimate for each in alone]
        assert alone[0].estimate == findings[0].band.estimate


class TestStopping:
    def test_epsilon_stops_as_soon_as_the_bound_is_below(self):
        source = Synthetic.ratings((12, 10), rank=1, noise=0.2, rng=0)
        design = Design([source.segment("a")], 10**6, estimator=FAST, epsilon=120 * 0.8)
        run = simulate(design, {"a": source})
        assert run.stop.reached
        bounds = run.frame()["bound"]
        assert bounds.iloc[-1] <= 96 < bounds.iloc[-2]
        assert run.frame()["loss"].iloc[-1] <= 96

    def test_a_segment_that_met_its_target_is_not_asked_any_more(self):
        sources, design = design_of(rmse={"easy": 0.9, "hard": 0.01}, budget=4_000)
        frame = simulate(design, sources).frame()
        met = np.sqrt(frame["upper_easy"]) <= 0.9
        assert met.any()
        after = frame.loc[met.idxmax() :, "n_easy"]
        assert after.nunique() == 1

    def test_all_targets_met_ends_it(self):
        sources, design = design_of(rmse=3.0, budget=10_000)
        run = simulate(design, sources)
        words = "every segment has reached its target, by approximate bounds"
        assert run.stop == Stop(words, reached=True, label="approximate")

    def test_caps_end_it_and_say_so(self):
        source = Synthetic.low_rank((9, 9), rank=1, rng=0)
        design = Design([replace(source.segment("a"), cap=100)], 500, estimator=FAST)
        run = simulate(design, {"a": source})
        assert run.stop.why == "every segment has reached its cap; 400 of the budget are left"
        assert run.frame()["spent"].iloc[-1] == 100

    def test_costs_are_paid(self):
        sources, segments = market()
        segments[1] = replace(segments[1], cost=3.0)
        run = simulate(Design(segments, 2_000, estimator=FAST), sources)
        frame = run.frame()
        paid = frame["n_easy"] + 3 * frame["n_hard"] + frame["n_wide"]
        assert (frame["spent"] == paid).all()
        assert 1_997 < frame["spent"].iloc[-1] <= 2_000


class TestPooledNoise:
    def test_equal_segments_share_one_level(self):
        pooled = pooled_noise([1.0, 1.1, 0.9], [100, 100, 100], [2.0, 2.0, 2.0])
        assert pooled.values == pytest.approx([1.0, 1.0, 1.0])

    def test_different_segments_keep_their_own(self):
        pooled = pooled_noise([1.0, 9.0], [1_000, 1_000], [2.0, 2.0])
        assert pooled.values == pytest.approx([1.0, 9.0], abs=0.02)

    def test_who_knows_nothing_borrows_everything(self):
        pooled = pooled_noise([1.0, 1.2, 0.0], [50, 60, 0], [2.0, 2.0, 0.0])
        assert 1.0 <= pooled.values[2] <= 1.2
        assert np.isfinite(pooled.errors).all()

    def test_nobody_knows_anything(self):
        assert np.isnan(pooled_noise([0.0], [0], [0.0]).values).all()

    def test_pooling_halves_the_error_of_few_pairs(self):
        """Seen in simulation: 12 segments of 8 pairs each, one noise level."""
        rng = np.random.default_rng(0)
        own, lent = [], []
        for _ in range(200):
            pairs = rng.chisquare(1, size=(12, 8))
            means = pairs.mean(axis=1)
            pooled = pooled_noise(means, np.full(12, 8), pairs.var(axis=1, ddof=1))
            own.append(((means - 1) ** 2).mean())
            lent.append(((pooled.values - 1) ** 2).mean())
        assert np.mean(lent) < 0.5 * np.mean(own)


def test_planning_grows_no_faster_than_the_segments():
    """In one run, in turns: 20 times the segments cost less than 100 times as much to plan."""

    def cost(design):
        begun = time.process_time()  # other work on the machine does not count
        plan(design, begin(design))
        return time.process_time() - begun

    few, many = (
        Design([Segment(str(k), (200, 200)) for k in range(count)], 10**9) for count in (100, 2_000)
    )
    assert few.grids
    assert many.grids
    turns = [(cost(few), cost(many)) for _ in range(5)]
    assert min(many for _, many in turns) < 100 * min(few for few, _ in turns)


def test_what_is_spent_is_what_was_asked():
    sources, design = design_of(budget=777)
    run = simulate(design, sources)
    assert run.frame()["spent"].iloc[-1] == 777
    assert spent(design, begin(design)) == 0


def _only(step, place):
    return replace(step, batches=(step.batches[place],))


def _error_after(source, answers: Observations):
    return float(((FAST.fit(answers).dense() - source.truth) ** 2).mean())


def test_the_loss_of_the_frame_is_the_design_s():
    sources, design = design_of(loss=Loss(2), budget=700)
    frame = simulate(design, sources).frame()
    cells = {"easy": 108, "hard": 225, "wide": 180}
    last = frame.iloc[-1]
    errors = [cells[name] * last[f"error_{name}"] for name in sources]
    assert last["loss"] == pytest.approx(math.hypot(*errors))
    assert last["loss_1"] == pytest.approx(sum(errors))
    assert last["loss_inf"] == pytest.approx(max(errors))


class TestPooledUnits:
    def test_a_loud_segment_does_not_disturb_a_quiet_one(self):
        pooled = pooled_noise([1.0, 1e-4], [200, 200], [2.0, 2e-8])
        assert pooled.values == pytest.approx([1.0, 1e-4], rel=0.02)
        assert pooled.errors == pytest.approx([0.1, 1e-5], rel=0.1)

    def test_units_change_nothing(self):
        one = pooled_noise([1.0, 1.3, 0.8], [9, 30, 4], [2.0, 3.0, 1.0])
        two = pooled_noise([1e4, 1.3e4, 0.8e4], [9, 30, 4], [2e8, 3e8, 1e8])
        assert two.values == pytest.approx(1e4 * one.values)
        assert two.errors == pytest.approx(1e4 * one.errors)

    def test_single_pairs_tell_nothing_of_their_own_error(self):
        assert np.isnan(pooled_noise([1.0, 3.0], [1, 1], [0.0, 0.0]).values).all()

    def test_who_does_not_scatter_has_no_noise(self):
        assert pooled_noise([1.0, 0.0], [50, 50], [2.0, 0.0]).values[1] == 0.0


class Wayward:
    """A strategy that decides what it is told to."""

    def __init__(self, decision):
        self.decision = decision

    def plan(self, standings, budget):
        return self.decision(standings)


WRONG = {
    "no allocation": (lambda _: (60, 60, 60), "Wayward.plan gave a tuple; it must give an All"),
    "nothing": (lambda _: None, "Wayward.plan gave a NoneType"),
    "too few": (lambda _: Allocation((60,), (0.0,) * 3), "gave 1 numbers as answers for 3"),
    "short index": (lambda _: Allocation((60,) * 3, (0.0,)), "gave 1 numbers as index for 3"),
    "below zero": (lambda _: Allocation((-5, 0, 0), (0.0,) * 3), "'easy' -5 answers; its batch"),
    "parts": (lambda _: Allocation((1.5, 0, 0), (0.0,) * 3), "must be a whole number"),
    "not a number": (lambda _: Allocation((math.nan, 0, 0), (0.0,) * 3), "must be a whole num"),
    "over the batch": (lambda s: Allocation((s[0].batch + 1, 0, 0), (0.0,) * 3), "allows 0 to"),
    "over the budget": (lambda s: Allocation(tuple(x.batch for x in s), (0.0,) * 3), "spends"),
}


class TestPlugIns:
    @pytest.mark.parametrize("name", WRONG)
    def test_a_strategy_s_mistake_is_named_before_anybody_is_asked(self, name):
        decision, words = WRONG[name]
        _, design = design_of(strategy=Wayward(decision), budget=100)
        with pytest.raises((InvalidInput, InvalidType), match=words):
            plan(design, begin(design))

    def test_halves_need_even_batches(self):
        strategy = Wayward(lambda _: Allocation((3, 0, 0), (0.0,) * 3))
        _, design = design_of(strategy=strategy, schedule=Doubling())
        with pytest.raises(InvalidInput, match="must be a multiple of 2"):
            plan(design, begin(design))

    def test_a_plain_class_will_do(self):
        chosen = Wayward(lambda s: Uniform().plan(s, 900 - sum(x.answers for x in s)))
        sources, design = design_of(strategy=chosen, budget=900)
        assert simulate(design, sources).frame()["spent"].iloc[-1] == 900


class TestGoals:
    def test_floors_are_kept_before_a_goal_ends_it(self):
        sources, segments = market()
        segments[0] = replace(segments[0], floor=400)
        for goal in ({"rmse": 50.0}, {"epsilon": 1e9}):
            run = simulate(Design(segments, 3_000, estimator=FAST, **goal), sources)
            assert run.stop.reached
            assert run.frame()["n_easy"].iloc[-1] >= 400

    def test_a_cut_look_ends_nothing(self):
        """What is delivered must be what a stop's bound is of."""
        source = Synthetic.ratings((12, 10), rank=1, noise=0.2, rng=0)
        grid = Batches(size=90, first=150)
        design = Design([source.segment("a")], 200, estimator=FAST, schedule=grid, rmse=50.0)
        whole = simulate(design, {"a": source})
        assert whole.stop.reached
        cut = simulate(replace(design, budget=140), {"a": source})
        assert not cut.stop.reached
        assert math.isfinite(cut.bands["a"].upper)

    def test_the_bound_is_of_what_is_delivered(self):
        source = Synthetic.ratings((12, 10), rank=1, rng=0)
        design = Design([source.segment("a")], 230, estimator=FAST, schedule=Batches(90, 150))
        frame = simulate(design, {"a": source}).frame()
        assert frame["bound"].tolist() == pytest.approx((120 * frame["upper_a"]).tolist())

    def test_a_stop_says_whether_it_is_proven(self):
        source = Synthetic.ratings((12, 10), rank=1, rng=0)
        plain = Synthetic.low_rank((12, 10), rank=1, rng=0)
        for each, label in ((source, "certified"), (plain, "approximate")):
            design = Design([each.segment("a")], 5_000, estimator=FAST, rmse=4.0)
            run = simulate(design, {"a": each})
            assert (run.stop.reached, run.stop.label) == (True, label)
            assert run.stop.why.endswith(f"by {label} bounds")


@pytest.mark.parametrize("budget", [1, 2, 7, 8])
def test_a_budget_smaller_than_a_first_round_is_spent(budget):
    sources, design = design_of(budget=budget)
    run = simulate(design, sources)
    assert run.frame()["spent"].iloc[-1] == budget


def test_a_segment_nobody_can_pay_for_does_not_starve_the_others():
    sources, segments = market()
    segments[0] = replace(segments[0], cost=1e300)
    run = simulate(Design(segments, 900, estimator=FAST), sources)
    assert run.frame()["spent"].iloc[-1] == 900


def test_recorded_answers_that_serve_again_withdraw_the_certificate():
    answers = Synthetic.ratings((12, 10), rank=1, rng=0).observe(400)
    for again, label in ((True, "certified"), (False, "approximate")):
        source = Replay(answers, replace=again)
        design = Design([source.segment("a")], 700, estimator=FAST, schedule=Batches(100, 200))
        band = simulate(design, {"a": source}).bands["a"]
        assert (band.label, "served again" in band.reason) == (label, not again)
