"""Bounds by moments and range: tables, limits, ranges and coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from malocate.confidence.tails import (
    bernstein_upper,
    hall_upper,
    hoeffding_upper,
    moment_factor,
    product_range,
)
from malocate.errors import InvalidInput


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, math.nan])
@pytest.mark.parametrize(
    "bound",
    [
        lambda delta: moment_factor(100, 10.0, delta),
        lambda delta: hall_upper([1.0, 2.0, 4.0], delta),
        lambda delta: hoeffding_upper([0.5], 0.0, 1.0, delta),
        lambda delta: bernstein_upper([0.5, 0.6], 0.0, 1.0, delta),
    ],
)
def test_delta_lies_between_zero_and_one(bound, delta):
    with pytest.raises(InvalidInput, match=r"delta is .*; it must lie between 0 and 1\."):
        bound(delta)


# Moments


@pytest.mark.parametrize(
    ("count", "factor"), [(200, 2.14), (400, 1.60), (800, 1.36), (1600, 1.23), (5000, 1.12)]
)
def test_moment_factor_has_its_known_values(count, factor):
    assert round(moment_factor(count, 10.0, 0.05), 2) == factor


@pytest.mark.parametrize("count", [70, 200, 10**5])
@pytest.mark.parametrize("kappa", [1.0, 3.0, 10.0])
def test_moment_factor_is_the_least_over_all_shares(count, kappa):
    shares = np.linspace(0, 1, 200_001)[1:]
    gain = -np.log1p(-(shares - shares**2 / 2) / kappa) - math.log(20) / count
    least = ((shares / kappa)[gain > 0] / gain[gain > 0]).min()
    assert moment_factor(count, kappa, 0.05) == pytest.approx(least, rel=1e-8)


def test_moment_factor_is_infinite_where_no_share_gains():
    # At best a value gains −log(1 − 1/(2κ)) = .0513, and 20 must be reached.
    enough = math.ceil(math.log(20) / -math.log1p(-1 / 20))
    assert moment_factor(0, 10.0, 0.05) == moment_factor(enough - 1, 10.0, 0.05) == math.inf
    assert 1 < moment_factor(enough, 10.0, 0.05) < math.inf


@given(st.integers(1, 10**6), st.floats(1, 100), st.floats(1e-6, 0.9))
def test_moment_factor_grows_with_certainty_and_with_kappa(count, kappa, delta):
    factor = moment_factor(count, kappa, delta)
    assert 1 < factor <= moment_factor(count, kappa, delta / 2)
    assert factor <= moment_factor(count, 2 * kappa, delta)
    assert factor >= moment_factor(2 * count, kappa, delta)


def test_moment_factor_covers_gaussian_squares():
    squares = np.random.default_rng(0).standard_normal((4000, 100)) ** 2  # κ is three
    assert np.mean(moment_factor(100, 3.0, 0.05) * squares.mean(axis=1) < 1) <= 0.05


# Hall


@pytest.mark.parametrize("delta", [0.3, 0.05, 0.001])
def test_hall_is_student_when_there_is_no_skewness(delta):
    values = np.array([-3.0, -1.0, 0.0, 1.0, 3.0])
    reach = stats.t.ppf(1 - delta, 4) * values.std(ddof=1) / math.sqrt(5)
    assert hall_upper(values, delta) == pytest.approx(reach, rel=1e-12)


def test_hall_is_continuous_where_skewness_vanishes():
    symmetric = np.array([-3.0, -1.0, 0.0, 1.0, 3.0])
    tilted = symmetric + 1e-9 * symmetric**2
    assert hall_upper(tilted, 0.05) == pytest.approx(hall_upper(symmetric, 0.05), rel=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_hall_is_the_formula(seed):
    values = np.random.default_rng(seed).exponential(size=50)
    count, skewness = 50, stats.skew(values)
    t = -stats.t.ppf(0.95, count - 1)
    inner = 1 + skewness / math.sqrt(count) * (t - skewness / (6 * math.sqrt(count)))
    corrected = 3 * math.sqrt(count) / skewness * (np.cbrt(inner) - 1)
    expected = values.mean() - values.std(ddof=1) / math.sqrt(count) * corrected
    assert hall_upper(values, 0.05) == pytest.approx(expected, rel=1e-12)


def test_hall_undoes_its_transform():
    """The cubic that makes a skewed mean nearly normal maps the bound back to Student's t."""
    values = np.random.default_rng(7).exponential(size=80)
    count, skewness = 80, stats.skew(values)
    distance = (values.mean() - hall_upper(values, 0.01)) / values.std(ddof=1)
    cubic = distance + skewness * distance**2 / 3 + skewness**2 * distance**3 / 27
    assert math.sqrt(count) * (cubic + skewness / (6 * count)) == pytest.approx(
        stats.t.ppf(0.01, count - 1), rel=1e-9
    )


def test_hall_knows_constants_and_refuses_to_guess_from_two_values():
    assert hall_upper([0.1] * 7, 0.05) == 0.1
    assert hall_upper([], 0.05) == hall_upper([1.0], 0.05) == hall_upper([1.0, 2.0], 0.05)
    assert hall_upper([1.0, 2.0], 0.05) == math.inf


def test_hall_bears_values_that_differ_in_the_last_bit():
    values = [1.0, 1.0, 1.0, math.nextafter(1.0, 2.0)]
    assert hall_upper(values, 0.05) == pytest.approx(1.0)
    assert hall_upper([0.0, 0.0, 0.0, 1e-300], 0.05) >= 1e-300


def test_hall_covers_skewed_values_better_than_student():
    rng = np.random.default_rng(8)
    draws = rng.standard_normal((3000, 100)) ** 4  # squares of squares: mean three, long tail
    hall = np.mean([hall_upper(x, 0.05) >= 3 for x in draws])
    reach = stats.t.ppf(0.95, 99) * draws.std(axis=1, ddof=1) / 10
    student = np.mean(draws.mean(axis=1) + reach >= 3)
    assert student < 0.9
    assert hall > student + 0.03


# Ranges


@pytest.mark.parametrize(("low", "high"), [(-1.0, 1.0), (1.0, 5.0), (0.0, 0.3)])
def test_product_range_is_that_of_all_pairs_of_answers(low, high):
    predictions = np.linspace(low, high, 41)
    answers = np.linspace(low, high, 101)
    misses = answers[:, None] - predictions
    products = misses[:, None] * misses[None]
    least, largest = product_range(low, high, predictions)
    assert np.abs(products.min(axis=(0, 1)) - least).max() < 1e-12
    assert np.abs(products.max(axis=(0, 1)) - largest).max() < 1e-12


def test_products_of_misses_span_five_squared_half_ranges():
    least, largest = product_range(-3.0, 3.0, np.linspace(-3.0, 3.0, 1001))
    assert largest.max() - least.min() == pytest.approx(5 * 3.0**2)


def test_hoeffding_is_the_formula_and_stays_in_range():
    values = np.linspace(-1.0, 0.5, 200)
    expected = values.mean() + 3 * math.sqrt(math.log(20) / 400)
    assert hoeffding_upper(values, -1.0, 2.0, 0.05) == pytest.approx(expected)
    assert hoeffding_upper([1.9], -1.0, 2.0, 0.05) == hoeffding_upper([], -1.0, 2.0, 0.05) == 2.0


def test_bernstein_is_the_formula_and_stays_in_range():
    values = np.linspace(-1.0, 0.5, 200)
    price = math.log(40)
    expected = values.mean() + math.sqrt(2 * values.var(ddof=1) * price / 200)
    expected += 7 * 3 * price / (3 * 199)
    assert bernstein_upper(values, -1.0, 2.0, 0.05) == pytest.approx(expected)
    assert bernstein_upper([], -1.0, 2.0, 0.05) == bernstein_upper([0.0], -1.0, 2.0, 0.05) == 2.0
    assert bernstein_upper([0.0] * 3, -1.0, 2.0, 0.05) == 2.0


@pytest.mark.parametrize("bound", [hoeffding_upper, bernstein_upper])
@pytest.mark.parametrize("chance", [0.01, 0.1, 0.5])
def test_range_bounds_cover_values_at_both_ends(bound, chance):
    ones = np.arange(201)
    samples = [np.repeat([0.0, 1.0], [200 - k, k]) for k in ones]
    holds = [bound(x, 0.0, 1.0, 0.05) >= chance for x in samples]
    assert stats.binom.pmf(ones, 200, chance) @ holds >= 0.95


def test_bernstein_wins_where_values_hardly_vary():
    values = np.random.default_rng(9).uniform(0.1, 0.12, 2000)
    assert bernstein_upper(values, 0.0, 1.0, 0.05) < hoeffding_upper(values, 0.0, 1.0, 0.05)


@pytest.mark.parametrize(
    "bound",
    [
        lambda x: hall_upper(x, 0.05),
        lambda x: hoeffding_upper(x, 0.0, 1.0, 0.05),
        lambda x: bernstein_upper(x, 0.0, 1.0, 0.05),
    ],
)
def test_order_changes_nothing_to_the_bit(bound):
    rng = np.random.default_rng(10)
    values = rng.beta(0.4, 3.0, 1000)
    assert {bound(rng.permutation(values)) for _ in range(20)} == {bound(values)}
