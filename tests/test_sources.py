"""Synthetic sources: the matrices are as described and the answers scatter around the truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from malocate import InvalidInput, Synthetic

MAKERS = [Synthetic.low_rank, Synthetic.ratings, Synthetic.decaying]


@pytest.fixture(params=MAKERS, ids=lambda maker: maker.__name__)
def make(request):
    return request.param


def test_low_rank_has_its_rank_and_unit_variance():
    truth = Synthetic.low_rank(shape=(300, 200), rank=10, rng=1).truth
    assert np.linalg.matrix_rank(truth) == 10
    assert truth.var() == pytest.approx(1, abs=0.15)


def test_decaying_has_its_spectrum_and_unit_mean_square():
    truth = Synthetic.decaying(shape=(40, 60), exponent=1.5, rng=1).truth
    values = np.linalg.svd(truth, compute_uv=False)
    assert values / values[0] == pytest.approx(np.arange(1, 41) ** -1.5)
    assert (truth**2).mean() == pytest.approx(1)


def test_noise_is_a_standard_deviation():
    source = Synthetic.low_rank(shape=(30, 20), rank=2, noise=0.3, rng=1)
    answers = source.observe(20_000, rng=2)
    residuals = answers.values - source.truth[answers.rows, answers.cols]
    assert residuals.std() == pytest.approx(0.3, rel=0.03)
    assert residuals.mean() == pytest.approx(0, abs=4 * 0.3 / np.sqrt(20_000))


@pytest.mark.parametrize("noise", [0.0, 0.5, 2.0])
def test_the_truth_of_ratings_is_the_mean_answer(noise):
    source = Synthetic.ratings(shape=(3, 2), rank=1, noise=noise, rng=1)
    answers = source.observe(60_000, rng=2)
    entries = answers.entries
    error = 5 * 4 / np.sqrt(entries.visits.min())  # five standard errors of the widest answer
    assert entries.means == pytest.approx(source.truth.ravel(), abs=error if noise else 1e-12)


def test_ratings_are_whole_numbers_on_the_scale():
    source = Synthetic.ratings(shape=(30, 20), rank=2, scale=(0, 10), rng=1)
    answers = source.observe(3_000)
    assert answers.scale == source.scale == (0, 10)
    assert set(answers.values) == set(range(11))


def test_cells_are_drawn_uniformly_with_replacement():
    answers = Synthetic.low_rank(shape=(4, 3), rank=1, rng=1).observe(24_000, rng=2)
    visits = answers.entries.visits
    assert len(visits) == 12
    assert ((visits - 2000) ** 2 / 2000).sum() < 31.3  # chi-square, 11 degrees, p = .001
    assert answers.probability is None


def test_row_weights_skew_the_rows_and_are_recorded():
    source = Synthetic.low_rank(shape=(3, 4), rank=1, rng=1)
    answers = source.observe(8_000, rng=2, row_weights=[3, 1, 0])
    shares = np.bincount(answers.rows, minlength=3) / 8_000
    assert shares == pytest.approx([0.75, 0.25, 0], abs=0.02)
    assert answers.probability == pytest.approx(np.where(answers.rows == 0, 0.75, 0.25) / 4)


def test_a_seed_gives_the_same_matrix_and_answers(make):
    one, two, other = (make(shape=(30, 20), rng=seed) for seed in (5, 5, 6))
    assert (one.truth == two.truth).all()
    assert (one.truth != other.truth).any()
    assert same(one.observe(200), two.observe(200))
    assert same(one.observe(200, rng=1), two.observe(200, rng=1))
    assert not same(one.observe(200), one.observe(200, rng=1))


def test_a_generator_moves_on(make):
    source, rng = make(shape=(30, 20)), np.random.default_rng(3)
    assert not same(source.observe(200, rng=rng), source.observe(200, rng=rng))
    assert same(source.observe(200, rng=3), source.observe(200, rng=np.random.default_rng(3)))


@given(n=st.integers(0, 300), more=st.integers(0, 300), skewed=st.booleans())
def test_more_answers_keep_the_first_ones(n, more, skewed):
    source = Synthetic.ratings(shape=(9, 7), rank=2)
    weights = np.arange(9) if skewed else None
    short, long = (source.observe(k, rng=4, row_weights=weights) for k in (n, n + more))
    for name in ("rows", "cols", "values"):
        assert (getattr(short, name) == getattr(long, name)[:n]).all()


def test_truth_at_agrees_with_the_dense_truth(make):
    source = make(shape=(30, 20), rng=2)
    rows, cols = np.indices(source.shape).reshape(2, -1)
    assert source.truth_at(rows, cols) == pytest.approx(source.truth.ravel())


def test_the_truth_is_closed_to_writing(make):
    with pytest.raises(ValueError, match="read-only"):
        make(shape=(3, 3), **({} if make == Synthetic.decaying else {"rank": 1})).truth[0, 0] = 1


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"shape": (0, 3)}, r"`shape` is \(0, 3\); both sides must be at least 1"),
        ({"rank": 0}, r"`rank` is 0; for shape \(200, 200\) it must be 1 to 200"),
        ({"rank": 201}, "`rank` is 201"),
        ({"noise": -1}, "`noise` is -1; it must be a finite number, at least 0"),
        ({"noise": np.nan}, "`noise` is nan"),
        ({"scale": (5, 1)}, r"`scale` is \(5, 1\); it must be two integers, low < high"),
        ({"scale": (1, 4.5)}, r"`scale` is \(1, 4.5\)"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(InvalidInput, match=message):
        Synthetic.ratings(**settings)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": -1}, "`n` is -1"),
        ({"n": 5, "row_weights": [1, 2]}, r"`row_weights` has shape \(2,\); it must be \(3,\)"),
        ({"n": 5, "row_weights": [1, -2, 2]}, "at least 0"),
        ({"n": 5, "row_weights": [0, 0, 0]}, "not all 0"),
        ({"n": 5, "row_weights": [1, np.inf, 2]}, "must be finite"),
    ],
)
def test_bad_requests_are_refused(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        Synthetic.low_rank(shape=(3, 3), rank=1).observe(**arguments)


def same(one, two):
    return all((getattr(one, k) == getattr(two, k)).all() for k in ("rows", "cols", "values"))
