"""Error estimates: the algebra, and that they are right on average."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from stand_ins import Fixed, Memoriser, asked

from malocate import Observations, error_band
from malocate.confidence.schemes import CrossFit

TRUTH = np.random.default_rng(8).standard_normal((12, 10))
OFF = TRUTH + 0.3 * np.random.default_rng(9).standard_normal((12, 10))
ERROR = float(np.mean((OFF - TRUTH) ** 2))


def band(seen, estimator=None, **settings):
    settings = {"bound": "normal", "deliver": "ensemble", "check_uniform": False} | settings
    return error_band(estimator or Fixed(OFF), seen, **settings)


def averaged(runs: int, **settings) -> tuple[float, float]:
    """The mean of the estimates over fresh data, and its standard error."""
    found = [
        band(asked(TRUTH, 800, [1, run]), salt=run, **settings).estimate for run in range(runs)
    ]
    return float(np.mean(found)), float(np.std(found)) / np.sqrt(runs)


@pytest.mark.parametrize("estimate", ["residual", "pairs", "two_phase"])
@pytest.mark.parametrize("scheme", ["crossfit", "holdout", "halves"])
def test_estimates_are_right_on_average(estimate, scheme):
    mean, error = averaged(200, estimate=estimate, scheme=scheme)
    assert abs(mean - ERROR) < 4 * error
    assert error < 0.15 * ERROR  # so that the line above could fail


def test_the_pair_product_is_the_mean_over_all_pairs():
    seen = asked(TRUTH, 300, 3)
    found = band(seen, estimate="pairs", scheme="halves").estimate
    judge = seen.halves()[1]
    by_entry: dict = {}
    for row, col, value in zip(judge.rows, judge.cols, judge.values, strict=True):
        by_entry.setdefault((row, col), []).append(value - OFF[row, col])
    means = [
        np.mean([a * b for a, b in itertools.permutations(misses, 2)])
        for misses in by_entry.values()
        if len(misses) > 1
    ]
    assert found == pytest.approx(np.mean(means), rel=1e-12)


def test_the_residual_estimate_by_hand():
    seen = asked(TRUTH, 200, 4, replicates=30)
    done = band(seen, scheme="halves")
    judge = seen.halves()[1]
    misses = (judge.values - OFF[judge.rows, judge.cols]) ** 2
    units: dict = {}
    for origin, miss in zip(judge.numbering.origins, misses, strict=True):
        units.setdefault(origin, []).append(miss)
    square = np.mean([np.mean(each) for each in units.values()])
    assert done.estimate == pytest.approx(square - seen.entries.noise_variance, rel=1e-12)
    assert done.noise == seen.entries.noise_variance
    assert done.replicated == np.count_nonzero(seen.entries.visits > 1)


def test_a_declared_noise_takes_the_place_of_the_replicates():
    seen = asked(TRUTH, 200, 5)
    measured, declared = band(seen), band(seen, noise_variance=0.01)
    assert declared.estimate == pytest.approx(measured.estimate + measured.noise - 0.01)
    assert declared.noise == 0.01


def test_the_average_of_the_folds_is_judged_not_the_folds():
    """A memoriser's folds differ: without the ambiguity the estimate would be far too large."""
    truth, runs, misses = np.zeros((8, 8)), 150, []
    for run in range(runs):
        done = band(asked(truth, 120, [2, run], noise=0.7), Memoriser(), salt=run)
        misses.append(done.estimate - np.mean(done.completion.dense() ** 2))
    assert abs(np.mean(misses)) < 4 * np.std(misses) / np.sqrt(runs)
    assert done.evidence.ambiguity > 4 * np.std(misses) / np.sqrt(runs)


@pytest.mark.parametrize(
    ("estimate", "side", "least", "most"),
    [
        ("residual", 50, 0.9, 1.1),
        ("pairs", 50, 0.9, 1.1),
        ("two_phase", 50, 0.9, 1.1),
        ("residual", 25, 0.9, 1.1),  # more draws than entries
        ("pairs", 25, 0.9, 2.0),  # too large there, never too small
        ("two_phase", 25, 0.9, 2.0),
    ],
)
def test_standard_errors_are_those_of_repetition(estimate, side, least, most):
    truth = np.random.default_rng(0).standard_normal((side, side))
    off = truth + 0.4 * np.random.default_rng(1).standard_normal((side, side))
    done = [
        band(asked(truth, 1000, [3, run], replicates=100), Fixed(off), estimate=estimate, salt=run)
        for run in range(250)
    ]
    spread = np.std([each.estimate for each in done])
    said = np.sqrt(np.mean([each.se**2 for each in done]))
    assert least < said / spread < most


def test_few_pairs_do_not_look_certain():
    """A fold with a single pair does not differ from its own mean, and says nothing by that."""
    truth = np.random.default_rng(0).standard_normal((50, 50))
    off = truth + 0.4 * np.random.default_rng(1).standard_normal((50, 50))
    few = [asked(truth, 500, [5, run]) for run in range(250)]
    done = [band(seen, Fixed(off), estimate="pairs", salt=run) for run, seen in enumerate(few)]
    done = [each for each in done if np.isfinite(each.se)]
    spread = np.std([each.estimate for each in done])
    assert np.sqrt(np.mean([each.se**2 for each in done])) > 0.7 * spread
    assert min(each.se for each in done) > 0
    assert np.isinf(band(few[0], Fixed(off), estimate="two_phase").se)


def test_a_permutation_of_the_answers_changes_nothing():
    seen = asked(TRUTH, 200, 6, replicates=20, draws=np.arange(220))
    order = np.random.default_rng(0).permutation(220)
    for estimate in ("residual", "pairs", "two_phase"):
        one, two = band(seen, estimate=estimate), band(seen.take(order), estimate=estimate)
        assert one.estimate == pytest.approx(two.estimate, rel=1e-12)
        assert one.se == pytest.approx(two.se, rel=1e-10)


def test_draw_probabilities_weigh_the_draws():
    """The error is large where draws are many: unweighted, the estimate is far off."""
    shape, runs = (10, 10), 300
    often = np.repeat([4.0, 1.0], 50).reshape(shape)
    probability = often / often.sum()
    off = TRUTH[:10, :10] + np.where(often > 2, 0.5, 0.1)
    error, weighted, plain = float(np.mean((off - TRUTH[:10, :10]) ** 2)), [], []
    for run in range(runs):
        rng = np.random.default_rng([4, run])
        cells = rng.choice(100, size=300, p=probability.ravel())
        values = TRUTH[:10, :10].ravel()[cells] + 0.1 * rng.standard_normal(300)
        columns = (cells // 10, cells % 10, values)
        given = Observations(*columns, shape=shape, probability=probability.ravel()[cells])
        weighted.append(band(given, Fixed(off), salt=run).estimate)
        plain.append(band(Observations(*columns, shape=shape), Fixed(off), salt=run).estimate)
    assert abs(np.mean(weighted) - error) < 4 * np.std(weighted) / np.sqrt(runs)
    assert abs(np.mean(plain) - error) > 10 * np.std(plain) / np.sqrt(runs)


def test_designed_replicates_are_judged_in_the_fold_of_their_draw():
    seen = asked(TRUTH, 60, 7, replicates=25)
    for part in CrossFit().parts(seen, "salt", "north"):
        judged = set(part.judge.draws)
        for draw, repeated in zip(seen.draws, seen.repeats, strict=True):
            if repeated >= 0:
                assert (draw in judged) == (repeated in judged)
