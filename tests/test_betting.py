"""Betting bounds: the wealth is fair at the truth, and the bound is where refusal begins."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import brentq

from malocate.confidence.betting import (
    BOLDEST_LEARNT,
    _learnt_bets,
    bets,
    lower_mean,
    lower_wealth,
    running_lower,
    running_upper,
    upper_mean,
    upper_wealth,
)
from malocate.errors import InvalidInput, InvalidType
from malocate.problem.arrays import Floats

REPETITIONS = 50_000
SHARES = st.lists(st.floats(0, 1).filter(lambda x: x == 0 or x > 1e-9), min_size=1, max_size=40)
SAMPLES = [(1, 0), (2, 1), (7, 2), (40, 3), (300, 4)]


def sample(count: int, seed: int) -> Floats:
    """Many small values and a few large ones, in [0, 1], not sorted."""
    return np.random.default_rng(seed).beta(0.4, 3.0, count)


def zeros_and_ones(ones: int, count: int) -> Floats:
    return np.repeat([0.0, 1.0], [count - ones, ones])


def fair(wealths: Floats) -> bool:
    """Whether the mean wealth is at most one, but for four standard errors."""
    return bool(wealths.mean() <= 1 + 4 * wealths.std() / math.sqrt(len(wealths)))


# The bets


@pytest.mark.parametrize(("count", "delta"), [(1, 0.5), (100, 0.05), (10**6, 1e-4)])
def test_bets_rise_evenly_from_the_timid_to_the_bold(count, delta):
    grid = bets(count, delta)
    assert grid[0] == pytest.approx(min(0.5, 0.5 * math.sqrt(2 * math.log(1 / delta) / count)))
    assert grid[-1] == 0.95
    ratios = grid[1:] / grid[:-1]
    assert np.allclose(ratios, ratios[0])
    assert 1.3 < ratios[0] < 2.0


@pytest.mark.parametrize("count", [10**3, 10**5, 10**7])
def test_neighbouring_bets_differ_by_about_sixty_per_cent(count):
    grid = bets(count, 0.05)
    assert grid[1] / grid[0] == pytest.approx(1.6, rel=0.05)


@pytest.mark.parametrize("delta", [0.0, 1.0, -0.1, 1.5, math.nan, math.inf])
@pytest.mark.parametrize(
    "bound",
    [
        lambda delta: bets(3, delta),
        lambda delta: upper_mean([0.5], 1.0, delta),
        lambda delta: lower_mean([0.5], delta),
        lambda delta: upper_wealth([0.5], 1.0, 0.5, delta),
        lambda delta: lower_wealth([0.5], 0.5, delta),
        lambda delta: running_upper([0.5], 1.0, delta),
        lambda delta: running_lower([0.5], 1.0, delta),
    ],
)
def test_delta_lies_between_zero_and_one(bound, delta):
    with pytest.raises(InvalidInput, match=r"delta is .*; it must lie between 0 and 1\."):
        bound(delta)


def test_delta_is_a_number():
    with pytest.raises(InvalidType, match="delta is '5 %'; it must lie between 0 and 1"):
        upper_mean([0.5], 1.0, "5 %")  # type: ignore[arg-type]


# The wealth is the one of the formula, and the bound its crossing


def plain_upper_wealth(values: Floats, high: float, mean: float, delta: float) -> float:
    factors = 1 - bets(len(values), delta)[:, None] / high * (values - mean)
    return float(np.prod(factors, axis=1).mean())


def plain_lower_wealth(values: Floats, mean: float, delta: float) -> float:
    shares = bets(len(values), delta)[:, None]
    return float(np.prod(1 - shares + shares * values / mean, axis=1).mean())


@pytest.mark.parametrize(("count", "seed"), SAMPLES)
@pytest.mark.parametrize("mean", [0.01, 0.1, 0.4])
def test_wealths_are_mean_products(count, seed, mean):
    values = sample(count, seed)
    upper = plain_upper_wealth(3 * values, 3.0, 3 * mean, 0.05)
    assert upper_wealth(3 * values, 3.0, 3 * mean, 0.05) == pytest.approx(upper, rel=1e-11)
    lower = plain_lower_wealth(values, mean, 0.05)
    assert lower_wealth(values, mean, 0.05) == pytest.approx(lower, rel=1e-11)


@pytest.mark.parametrize(("count", "seed"), SAMPLES)
@pytest.mark.parametrize("delta", [0.5, 0.05, 1e-6])
def test_upper_mean_is_where_plain_wealth_crosses(count, seed, delta):
    values = sample(count, seed)

    def surplus(mean: float) -> float:
        return plain_upper_wealth(values, 1.0, mean, delta) - 1 / delta

    expected = 1.0 if surplus(1.0) < 0 else brentq(surplus, 0.0, 1.0, xtol=1e-14)
    assert upper_mean(values, 1.0, delta) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("count", "seed"), SAMPLES)
@pytest.mark.parametrize("delta", [0.5, 0.05, 1e-6])
def test_lower_mean_is_where_plain_wealth_crosses(count, seed, delta):
    values = 100 * sample(count, seed)

    def surplus(mean: float) -> float:
        return min(plain_lower_wealth(values, mean, delta) * delta, 2.0) - 1

    with np.errstate(over="ignore"):
        expected = brentq(surplus, 1e-9, values.mean(), xtol=1e-18)
    assert lower_mean(values, delta) == pytest.approx(expected, rel=1e-9)


@given(SHARES, st.floats(1e-6, 0.9), st.floats(1e-3, 1e3))
def test_the_claim_at_the_bound_is_refused(shares, delta, high):
    values = high * np.array(shares)
    upper = upper_mean(values, high, delta)
    assert values.mean() <= upper * (1 + 1e-12)
    assert upper == high or upper_wealth(values, high, upper, delta) >= 1 / delta
    lower = lower_mean(values, delta)
    assert lower <= values.mean()
    assert lower == 0 or lower_wealth(values, lower, delta) >= 1 / delta


@given(SHARES, st.floats(1e-6, 0.9))
def test_claims_just_inside_the_bound_stand(shares, delta):
    values = np.array(shares)
    inside = values.mean() + (upper_mean(values, 1.0, delta) - values.mean()) * (1 - 1e-6)
    assert upper_wealth(values, 1.0, inside, delta) < 1 / delta
    lower = lower_mean(values, delta)
    assert lower == 0 or lower_wealth(values, lower * (1 + 1e-6), delta) < 1 / delta


# What leaves a bound alone, and what moves it


@given(SHARES.flatmap(lambda x: st.tuples(st.just(x), st.permutations(x))), st.floats(1e-6, 0.9))
def test_order_changes_nothing_to_the_bit(pair, delta):
    values, shuffled = pair
    assert upper_mean(values, 1.0, delta) == upper_mean(shuffled, 1.0, delta)
    assert lower_mean(values, delta) == lower_mean(shuffled, delta)


def test_order_changes_nothing_to_the_bit_among_many():
    values = sample(10_000, 20)
    shuffled = np.random.default_rng(20).permutation(values)
    assert upper_mean(values, 1.0, 0.05) == upper_mean(shuffled, 1.0, 0.05)
    assert lower_mean(values, 0.05) == lower_mean(shuffled, 0.05)


@pytest.mark.parametrize(("count", "seed"), SAMPLES)
def test_more_certainty_costs_width(count, seed):
    values = sample(count, seed)
    deltas = 0.5 ** np.arange(1, 20)
    assert np.all(np.diff([upper_mean(values, 1.0, delta) for delta in deltas]) >= 0)
    assert np.all(np.diff([lower_mean(values, delta) for delta in deltas]) <= 0)
    assert np.all(np.diff([running_upper(values, 1.0, delta) for delta in deltas]) >= 0)
    assert np.all(np.diff([running_lower(values, 1.0, delta) for delta in deltas]) <= 0)


@pytest.mark.parametrize(("count", "seed"), SAMPLES)
def test_a_wider_range_costs_width(count, seed):
    values = sample(count, seed)
    highs = 2.0 ** np.arange(12)
    assert np.all(np.diff([upper_mean(values, high, 0.05) for high in highs]) > 0)
    assert np.all(np.diff([running_upper(values, high, 0.05) for high in highs]) > 0)


@given(SHARES, st.sampled_from([1e-200, 1e-3, 7.0, 1e200]))
def test_units_do_not_matter(shares, unit):
    values = np.array(shares)
    assert upper_mean(unit * values, unit, 0.05) / unit == pytest.approx(
        upper_mean(values, 1.0, 0.05), rel=1e-9
    )
    assert lower_mean(unit * values, 0.05) / unit == pytest.approx(
        lower_mean(values, 0.05), rel=1e-9
    )


# Edges


def test_without_values_nothing_is_known():
    assert upper_mean([], 4.0, 0.05) == running_upper([], 4.0, 0.05) == 4.0
    assert lower_mean([], 0.05) == running_lower([], 4.0, 0.05) == 0.0
    assert upper_wealth([], 4.0, 1.0, 0.05) == lower_wealth([], 1.0, 0.05) == 1.0


def test_without_a_range_everything_is_known():
    assert upper_mean([0.0, 0.0], 0.0, 0.05) == running_upper([0.0, 0.0], 0.0, 0.05) == 0.0
    assert lower_mean([0.0, 0.0], 0.05) == running_lower([0.0, 0.0], 0.0, 0.05) == 0.0
    assert upper_wealth([0.0, 0.0], 0.0, 0.0, 0.05) == lower_wealth([0.0, 0.0], 0.0, 0.05) == 1.0


def test_a_mean_of_zero_is_refuted_by_any_value_above():
    assert lower_wealth([0.0, 1e-9], 0.0, 0.05) == math.inf


@pytest.mark.parametrize("count", [1, 5, 1000])
def test_values_at_the_top_leave_the_bound_there(count):
    assert upper_mean([2.0] * count, 2.0, 0.05) == 2.0
    assert running_upper([2.0] * count, 2.0, 0.05) == 2.0


def test_no_chance_is_left_to_overflow():
    lonely = np.zeros(1000)
    lonely[500] = 1e300
    assert 0 < lower_mean(lonely, 0.05) < 1e297
    assert lower_mean(np.concatenate([lonely, np.zeros(10**6)]), 0.05) == 0.0
    assert lower_mean([1e-300, 1e300], 0.05) > 0
    assert running_lower(lonely, 1e300, 0.05) >= 0
    assert lower_wealth([1.0] * 1000, 1e-9, 0.05) == math.inf
    assert upper_wealth([1.0] * 2000, 1.0, 0.0, 0.05) < 1e-9


def test_many_zeros_bound_the_mean_near_zero():
    # No bound of chance 5 % can beat 1 − .05^(1/100) = .0295; Hoeffding's stands at .122.
    assert 0.0295 <= upper_mean(np.zeros(100), 7.0, 0.05) / 7.0 <= 0.055
    assert 0.0295 <= running_upper(np.zeros(100), 7.0, 0.05) / 7.0 <= 0.055


# Fairness at the truth: exact sums over all that can happen to values in {0, 1}


@pytest.mark.parametrize(("count", "chance"), [(15, 0.4), (30, 0.1), (100, 0.03)])
@pytest.mark.parametrize("delta", [0.05, 0.001])
def test_mean_wealth_is_exactly_one_for_independent_values(count, chance, delta):
    ones = np.arange(count + 1)
    chances = stats.binom.pmf(ones, count, chance)
    upper = [upper_wealth(zeros_and_ones(k, count), 1.0, chance, delta) for k in ones]
    lower = [lower_wealth(zeros_and_ones(k, count), chance, delta) for k in ones]
    assert chances @ upper == pytest.approx(1, abs=1e-12)
    assert chances @ lower == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("population_ones", [1, 4, 10, 16, 19])
def test_mean_wealth_is_below_one_without_replacement(population_ones):
    ones = np.arange(16)
    chances = stats.hypergeom.pmf(ones, 20, population_ones, 15)
    truth = population_ones / 20
    upper = [upper_wealth(zeros_and_ones(k, 15), 1.0, truth, 0.05) for k in ones]
    lower = [lower_wealth(zeros_and_ones(k, 15), truth, 0.05) for k in ones]
    assert chances @ upper < 1
    assert chances @ lower < 1


def learnt_wealth(values: Floats, mean: float, delta: float) -> float:
    """The wealth at the end of a stream against `mean`, with the bets of `running_lower`."""
    shares = _learnt_bets(values, -math.log(delta))
    return float(np.prod(1 - shares + shares * values / mean))


def test_learnt_bets_are_fair_for_independent_values():
    orders = np.array(list(itertools.product([0.0, 1.0], repeat=12)))
    chances = np.where(orders == 1, 0.3, 0.7).prod(axis=1)
    wealths = [learnt_wealth(order, 0.3, 0.05) for order in orders]
    assert chances @ wealths == pytest.approx(1, abs=1e-12)


def test_learnt_bets_are_unfair_without_replacement():
    """As long as the one large value is not seen, bets stay bold and it is still to come."""
    orders = [np.where(np.arange(20) == place, 5.0, 1.0)[:15] for place in range(20)]
    truth = 24 / 20
    assert np.mean([learnt_wealth(order, truth, 0.9) for order in orders]) > 1.01
    assert np.mean([lower_wealth(order, truth, 0.9) for order in orders]) < 1


# Fairness at the truth: 50,000 repetitions, of values that vary little enough for the
# mean wealth to settle (with skewed ones, rare fortunes that no sample meets carry it)


@pytest.mark.parametrize("count", [15, 60])
def test_wealth_is_fair_for_independent_values(count):
    rng = np.random.default_rng(30)
    draws = rng.uniform(0.4, 0.9, (REPETITIONS, count))
    truth = 0.65
    assert fair(np.array([upper_wealth(x, 1.0, truth, 0.05) for x in draws]))
    assert fair(np.array([lower_wealth(x, truth, 0.05) for x in draws]))
    # The harness can fail: against claims on the wrong side of the truth the wealth is unfair.
    assert not fair(np.array([upper_wealth(x, 1.0, truth * 1.05, 0.05) for x in draws[:5000]]))
    assert not fair(np.array([lower_wealth(x, truth * 0.95, 0.05) for x in draws[:5000]]))


@pytest.mark.parametrize(("lowest", "noise"), [(0.1, 0.1), (0.7, 0.3)])
def test_wealth_is_fair_without_replacement_and_with_noise(lowest, noise):
    rng = np.random.default_rng(31)
    population = np.linspace(lowest, 0.75, 20)
    chosen = rng.permuted(np.tile(population, (REPETITIONS, 1)), axis=1)[:, :15]
    draws = chosen * rng.uniform(1 - noise, 1 + noise, chosen.shape)
    truth = population.mean()
    assert fair(np.array([upper_wealth(x, 1.0, truth, 0.05) for x in draws]))
    assert fair(np.array([lower_wealth(x, truth, 0.05) for x in draws]))


@pytest.fixture(scope="module")
def replicated() -> tuple[Floats, Floats]:
    """Sixty fresh draws each with noise, and forty that re-ask the entries of the first forty."""
    rng = np.random.default_rng(32)
    errors = rng.uniform(0.4, 0.8, (REPETITIONS, 60))
    fresh = errors + rng.uniform(-0.1, 0.1, errors.shape)
    again = errors[:, :40] + rng.uniform(-0.1, 0.1, (REPETITIONS, 40))
    return fresh, again


def test_wealth_is_fair_when_replicates_are_averaged_into_their_draw(replicated):
    fresh, again = replicated
    units = np.hstack([(fresh[:, :40] + again) / 2, fresh[:, 40:]])
    assert fair(np.array([upper_wealth(x, 1.0, 0.6, 0.05) for x in units]))
    assert fair(np.array([lower_wealth(x, 0.6, 0.05) for x in units]))


def test_wealth_is_unfair_when_replicates_count_as_draws(replicated):
    draws = np.hstack(replicated)
    assert not fair(np.array([upper_wealth(x, 1.0, 0.6, 0.05) for x in draws]))
    assert not fair(np.array([lower_wealth(x, 0.6, 0.05) for x in draws]))


# Coverage, exactly, for values in {0, H}


def coverage(bound: Callable[[Floats], float], chance: float, count: int) -> float:
    """The chance that an upper bound for zeros and ones is not below their true mean."""
    ones = np.arange(count + 1)
    holds = [bound(zeros_and_ones(k, count)) >= chance for k in ones]
    return float(stats.binom.pmf(ones, count, chance) @ holds)


def student_upper(values: Floats) -> float:
    reach = stats.t.ppf(0.95, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))
    return float(values.mean() + reach)


@pytest.mark.parametrize("chance", [0.01, 0.03, 0.1])
@pytest.mark.parametrize("count", [30, 100, 400])
def test_upper_bound_covers_rare_large_errors(chance, count):
    assert coverage(lambda x: upper_mean(3 * x, 3.0, 0.05) / 3, chance, count) >= 0.95


@pytest.mark.parametrize("chance", [0.01, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("count", [30, 100])
def test_lower_bound_covers_rare_large_values(chance, count):
    misses = coverage(lambda x: lower_mean(x, 0.05) - 1e-12, chance, count)
    exactly = stats.binom.pmf(np.arange(count + 1), count, chance).sum() - misses
    assert exactly >= 0.95


def test_students_bound_does_not_cover_rare_large_errors():
    assert coverage(student_upper, 0.01, 30) < 0.5


# Streams


def plain_running_lower(values: Floats, high: float, delta: float) -> float:
    """The same rule by loops over the values and bisection over the claims."""
    shares = []
    for i in range(1, len(values) + 1):
        past = values[: i - 1]
        if not past.any():
            shares.append(0.0)
            continue
        variation = (1 + len(past) * past.var() / past.mean() ** 2) / i
        best = math.sqrt(2 * math.log(1 / delta) / (variation * i * math.log(1 + i)))
        shares.append(min(BOLDEST_LEARNT, best))
    bold = np.array(shares)

    def refused(mean: float) -> bool:
        logs = np.cumsum(np.log(1 - bold + bold * values / mean))
        return bool(logs.max() >= -math.log(delta))

    low, top = 1e-12 * high, high
    if not refused(low):
        return 0.0
    for _ in range(200):
        middle = math.sqrt(low * top)
        low, top = (middle, top) if refused(middle) else (low, middle)
    return low


@pytest.mark.parametrize(("count", "seed"), SAMPLES)
@pytest.mark.parametrize("delta", [0.3, 0.01])
def test_running_bounds_follow_the_plain_rule(count, seed, delta):
    values = 2 * sample(count, seed)
    lower = plain_running_lower(values, 2.0, delta)
    assert running_lower(values, 2.0, delta) == pytest.approx(lower, rel=1e-8, abs=1e-11)
    upper = 2.0 - plain_running_lower(2.0 - values, 2.0, delta)
    assert running_upper(values, 2.0, delta) == pytest.approx(upper, rel=1e-8)


def test_running_bounds_only_ever_tighten():
    values = sample(300, 40)
    lengths = range(0, 301, 10)
    assert np.all(np.diff([running_upper(values[:n], 1.0, 0.05) for n in lengths]) <= 1e-10)
    assert np.all(np.diff([running_lower(values[:n], 1.0, 0.05) for n in lengths]) >= -1e-10)


def test_running_lower_bound_does_not_mind_a_range_far_too_wide():
    values = sample(300, 41)
    wide = running_lower(values, 1e6, 0.05)
    assert wide == pytest.approx(running_lower(values, 1.0, 0.05), rel=1e-9)


def test_running_bounds_come_close_to_those_of_one_look():
    values = sample(5000, 42)
    mean = values.mean()
    once = upper_mean(values, 1.0, 0.05) - mean, mean - lower_mean(values, 0.05)
    running = running_upper(values, 1.0, 0.05) - mean, mean - running_lower(values, 1.0, 0.05)
    assert running[0] < 2.5 * once[0]
    assert running[1] < 2.5 * once[1]


@pytest.fixture(scope="module")
def streams() -> Floats:
    """A thousand streams of two thousand skewed values in [0, 1] with mean .1."""
    rng = np.random.default_rng(43)
    return rng.beta(0.3, 2.7, (1000, 2000))


def test_running_bounds_hold_at_all_moments_at_once(streams):
    # As the bounds only tighten, the last ones judge all 2000 moments. At a chance of .05,
    # 1000 streams fail more often than .05 + 4 · √(.05 · .95 / 1000) = .078 once in 30,000.
    upper = np.array([running_upper(x, 1.0, 0.05) for x in streams])
    lower = np.array([running_lower(x, 1.0, 0.05) for x in streams])
    assert np.mean(upper < 0.1) <= 0.078
    assert np.mean(lower > 0.1) <= 0.078


def test_a_bound_for_one_look_does_not_hold_at_all_moments(streams):
    counts = np.arange(1, 2001)
    means = np.cumsum(streams, axis=1) / counts
    deviations = np.sqrt(np.cumsum(streams**2, axis=1) / counts - means**2)
    normal = means + 1.645 * deviations / np.sqrt(counts)
    assert np.mean((normal[:, 100:] < 0.1).any(axis=1)) > 0.078
