"""Centring: what is taken off before the low-rank part is learned."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from malocate import InvalidInput, Observations
from malocate.estimators.centring import Centre, fit_centre


def draw(truth, n, *, noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    rows, cols = (rng.integers(side, size=n) for side in truth.shape)
    values = truth[rows, cols] + noise * rng.standard_normal(n)
    return Observations(rows, cols, values, shape=truth.shape)


def additive_truth(shape, *, row_spread=1.0, col_spread=0.5, seed=1):
    rng = np.random.default_rng(seed)
    rows, cols = (rng.standard_normal(side) for side in shape)
    return 3.0 + row_spread * rows[:, None] + col_spread * cols


def everywhere(centre, shape):
    return centre.at(np.arange(shape[0])[:, None], np.arange(shape[1]))


def test_none_is_zero_even_far_from_zero():
    centre = fit_centre(draw(additive_truth((6, 5)), 100).entries, "none")
    assert (everywhere(centre, (6, 5)) == 0).all()


def test_mean_is_the_mean_answer_not_the_mean_entry():
    seen = Observations([0, 0, 0, 1], [0, 0, 0, 0], [1.0, 1.0, 1.0, 5.0], shape=(2, 1))
    assert fit_centre(seen.entries, "mean").offset == 2.0


@pytest.mark.parametrize("shape", [(30, 20), (20, 30), (1, 12), (12, 1)])
def test_additive_gives_back_additive_answers(shape):
    truth = additive_truth(shape)
    centre = fit_centre(draw(truth, 30 * max(shape)).entries, "additive")
    np.testing.assert_allclose(everywhere(centre, shape), truth, atol=1e-5)


def test_additive_beats_plain_means_of_lines_under_noise():
    truth = additive_truth((60, 40), row_spread=0.3, col_spread=0.0)
    errors = {"additive": [], "unshrunk": []}
    for seed in range(10):
        entries = draw(truth, 300, noise=1.0, seed=seed).entries
        errors["additive"].append(
            miss(everywhere(fit_centre(entries, "additive"), truth.shape), truth)
        )
        errors["unshrunk"].append(miss(least_squares_effects(entries), truth))
    assert np.mean(errors["additive"]) < 0.5 * np.mean(errors["unshrunk"])


def test_additive_effects_of_pure_noise_nearly_vanish():
    truth = np.full((60, 40), 3.0)
    centre = fit_centre(draw(truth, 600, noise=1.0).entries, "additive")
    assert miss(everywhere(centre, truth.shape), truth) < 0.03


def test_additive_weighs_entries_by_their_visits():
    truth, rng = additive_truth((10, 8)), np.random.default_rng(3)
    rows, cols = (np.repeat(index.ravel(), 3) for index in np.indices((10, 8)))
    values = truth[rows, cols] + rng.standard_normal(rows.size)
    cheap = np.arange(0, rows.size, 3)
    thrice = Observations(rows, cols, values, shape=(10, 8)).entries
    again = np.repeat(cheap, 2)
    uneven = Observations(
        np.append(rows, rows[again]),
        np.append(cols, cols[again]),
        np.append(values, thrice.means.repeat(2)),
        shape=(10, 8),
    ).entries
    np.testing.assert_allclose(uneven.means, thrice.means)
    doubled = everywhere(fit_centre(uneven, "additive"), (10, 8))
    assert miss(doubled, everywhere(fit_centre(thrice, "additive"), (10, 8))) < 1e-3


@pytest.mark.parametrize("kind", ["mean", "additive"])
def test_the_order_of_the_answers_changes_nothing(kind):
    seen = draw(additive_truth((12, 9)), 200, noise=1.0)
    order = np.random.default_rng(5).permutation(len(seen))
    shuffled = Observations(seen.rows[order], seen.cols[order], seen.values[order], shape=(12, 9))
    one, two = (fit_centre(each.entries, kind) for each in (seen, shuffled))
    np.testing.assert_array_equal(everywhere(one, (12, 9)), everywhere(two, (12, 9)))


def test_lines_without_answers_have_no_effect():
    seen = Observations([0, 0, 1, 1], [0, 1, 0, 1], [1.0, 2.0, 3.0, 4.5], shape=(3, 4))
    centre = fit_centre(seen.entries, "additive")
    assert centre.rows[2] == 0
    assert centre.cols[2] == centre.cols[3] == 0
    assert np.isfinite(everywhere(centre, (3, 4))).all()


@pytest.mark.parametrize("kind", ["none", "mean", "additive"])
@pytest.mark.parametrize(("rows", "values"), [([], []), ([1], [7.0]), ([0, 1], [0.1, 0.1])])
def test_next_to_no_answers_give_finite_centres(kind, rows, values):
    seen = Observations(rows, [0] * len(rows), values, shape=(2, 3))
    centre = fit_centre(seen.entries, kind)
    expected = values[0] if values and kind != "none" else 0.0
    np.testing.assert_allclose(everywhere(centre, (2, 3)), expected, rtol=1e-12)


def test_an_unknown_kind_is_named_even_without_answers():
    with pytest.raises(InvalidInput, match="centre is 'rows'; it must be 'none', 'mean' or"):
        fit_centre(Observations([], [], [], shape=(2, 2)).entries, "rows")


def test_a_centre_is_a_value():
    effects = np.array([1.0, 2.0])
    centre = pickle.loads(pickle.dumps(Centre(3.0, effects, np.zeros(0))))
    effects[0] = 9.0
    assert centre.at([0, 1], [5, 5]).tolist() == [4.0, 5.0]
    with pytest.raises(ValueError, match="read-only"):
        centre.rows[0] = 9.0


def miss(one, two):
    return float(np.mean((one - two) ** 2))


def least_squares_effects(entries):
    design = np.zeros((len(entries), sum(entries.shape)))
    design[np.arange(len(entries)), entries.rows] = 1
    design[np.arange(len(entries)), entries.shape[0] + entries.cols] = 1
    root = np.sqrt(entries.visits)
    effects = np.linalg.lstsq(design * root[:, None], entries.means * root)[0]
    return effects[: entries.shape[0], None] + effects[entries.shape[0] :]
