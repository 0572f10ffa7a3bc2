"""The audit of the draws: calibrated where they are uniform, alert where they are not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from malocate import InvalidInput, InvalidType, Observations
from malocate.confidence.audit import Audit, Check, audit
from malocate.confidence.counts import association, farthest_off, pearson, pearson_tails, pooled

SHAPE = 50, 40


def observed(rows, cols, shape=SHAPE, **more):
    return Observations(rows, cols, np.zeros(len(rows)), shape=shape, **more)


def uniform(n, shape=SHAPE, seed=0, mask=None, **more):
    rng = np.random.default_rng(seed)
    cells = np.arange(math.prod(shape)) if mask is None else np.flatnonzero(~mask)
    rows, cols = np.divmod(rng.choice(cells, n), shape[1])
    return observed(rows, cols, shape, mask=mask, **more)


def names(audited):
    return {check.name for check in audited.failed}


def p_of(audited, name):
    return next(check.p_value for check in audited.checks if check.name == name)


def most(trials, share):
    """Give a number of hits that a share of `share` exceeds once in 10,000 times."""
    return stats.binom.isf(1e-4, trials, share)


TRIANGLE = ~np.tri(60, dtype=bool)
HOLES = np.random.default_rng(4).random(SHAPE) < 0.3


@pytest.mark.parametrize(
    ("n", "shape", "mask"),
    [
        (10, SHAPE, None),
        (60, SHAPE, None),
        (2000, SHAPE, None),
        (100, (200, 200), None),
        (300, (1000, 300), None),
        (100, (60, 60), TRIANGLE),
        (1000, (60, 60), TRIANGLE),
        (1000, SHAPE, HOLES),
    ],
    ids=[
        "10",
        "60",
        "2000",
        "100 on 200×200",
        "300 on 1000×300",
        "100 on a triangle",
        "1000 on a triangle",
        "1000 with holes",
    ],
)
def test_uniform_draws_are_rarely_accused(n, shape, mask):
    """Expected counts run from .1 to 50 here."""
    repetitions = 400
    found = []
    for seed in range(repetitions):
        silent = uniform(n // 3, shape, 10_000 + seed, mask)
        answered = uniform(n, shape, seed, mask)
        found.append([each.p_value for each in audit(answered, unanswered=silent).checks])
    for p_values in np.array(found).T:
        assert np.count_nonzero(p_values < 0.01) <= most(repetitions, 0.01)
        assert np.count_nonzero(p_values < 0.1) <= most(repetitions, 0.1)
    if n >= 1000:  # with many draws, they are not rarer than promised by much either
        assert np.count_nonzero(np.array(found) < 0.1) > 0.05 * np.size(found)


@pytest.mark.parametrize(
    ("n", "shares"),
    [
        (30, np.full(200, 1 / 200)),
        (100, np.full(200, 1 / 200)),
        (500, np.full(50, 1 / 50)),
        (100, np.arange(1, 61) / 1830),
    ],
    ids=["sparser", "sparse", "dense", "shares unlike"],
)
def test_the_tail_of_uneven_counts_is_right_far_out(n, shares):
    repetitions = 8000
    drawn = np.random.default_rng(1).multinomial(n, shares, size=repetitions)
    p_values = np.array([pearson(counts, shares)[0] for counts in drawn])
    for level in (0.01, 0.001, 0.00025):
        assert np.count_nonzero(p_values < level) <= most(repetitions, level * 1.5)
    assert np.count_nonzero(p_values < 0.01) >= 0.003 * repetitions


def test_two_moments_would_accuse_too_often():
    """Guards the test above: a gamma law without the third moment fails where counts are sparse."""
    n, k, repetitions = 30, 200, 8000
    drawn = np.random.default_rng(1).multinomial(n, np.full(k, 1 / k), size=repetitions)
    statistic = ((drawn - n / k) ** 2).sum(axis=1) * k / n
    variance = 2 * (k - 1) * (n - 1) / n
    p_values = stats.gamma.sf(statistic, (k - 1) ** 2 / variance, scale=variance / (k - 1))
    assert np.count_nonzero(p_values < 0.00025) > most(repetitions, 0.00025 * 1.5)


def test_the_tails_have_the_moments_of_the_statistic():
    """All samples of 5 draws from 3 unlike categories, with their probabilities."""
    shares, n = np.array([0.5, 0.3, 0.2]), 5
    counts = [(a, b, n - a - b) for a in range(n + 1) for b in range(n + 1 - a)]
    weights = stats.multinomial.pmf(counts, n, shares)
    statistic = ((np.array(counts) - n * shares) ** 2 / (n * shares)).sum(axis=1)
    mean = weights @ statistic
    spread = math.sqrt(weights @ (statistic - mean) ** 2)
    skew = weights @ (statistic - mean) ** 3 / spread**3
    law = stats.pearson3(skew, mean, spread)
    inverse = (1 / shares).sum(), (1 / shares**2).sum()
    for value in (1.0, 3.0, 6.0):
        upper, lower = pearson_tails(value, n, 3, *inverse)
        assert upper == pytest.approx(law.sf(value - 3 / n), rel=1e-9)
        assert lower == pytest.approx(law.cdf(value + 3 / n), rel=1e-9)


def test_the_association_of_a_table_is_judged_by_its_exact_moments():
    rng = np.random.default_rng(3)
    along, parts = rng.integers(30, size=200), np.repeat([0, 1, 2, 3], 50)
    p_values = [association(rng.permutation(along), parts) for _ in range(2000)]
    assert np.mean(p_values) == pytest.approx(0.5, abs=0.03)
    assert np.count_nonzero(np.array(p_values) < 0.01) <= most(2000, 0.012)


def test_the_farthest_count_is_found_by_exact_tails():
    shares = np.full(300, 1 / 300)
    counts = np.full(300, 20)
    counts[17] = 0
    p_value, place = farthest_off(counts, 6000, shares)
    assert place == 17
    assert p_value == pytest.approx(600 * stats.binom.cdf(0, 6000, 1 / 300), rel=1e-9)
    counts[5] = 70
    p_value, place = farthest_off(counts, 6000, shares)
    assert place == 5
    assert p_value == pytest.approx(600 * stats.binom.sf(69, 6000, 1 / 300), rel=1e-9)


def test_small_neighbours_are_pooled_and_large_ones_stay_alone():
    assert pooled(np.ones(6), 2.0).tolist() == [0, 0, 1, 1, 2, 2]
    assert pooled(np.full(4, 5.0), 5.0).tolist() == [0, 1, 2, 3]


def test_rows_drawn_unevenly_are_caught():
    rng = np.random.default_rng(0)
    chance = np.repeat([1.0, 3.0], 25)
    rows = rng.choice(50, 2000, p=chance / chance.sum())
    skewed = audit(observed(rows, rng.integers(40, size=2000)))
    assert "rows" in names(skewed)
    assert "columns" not in names(skewed)
    assert "too unevenly for chance (p below 1e-9)" in skewed.words


@pytest.mark.parametrize(("n", "shape"), [(2000, SHAPE), (4000, (20, 200))])
def test_a_column_that_is_never_asked_is_caught(n, shape):
    rng = np.random.default_rng(1)
    cols = rng.integers(shape[1] - 1, size=n)
    cols[cols >= 7] += 1
    shunned = audit(observed(rng.integers(shape[0], size=n), cols, shape))
    assert names(shunned) == {"columns"}
    expected = n // shape[1]
    assert f"column 7, drawn 0 times where {expected} were to be expected" in shunned.words


def test_labels_name_the_row():
    labels = [f"person {i}" for i in range(50)], list(range(40))
    rows = np.r_[uniform(1000).rows, np.full(300, 4)]
    cols = np.r_[uniform(1000).cols, np.arange(300) % 40]
    assert "row 'person 4', drawn 3" in audit(observed(rows, cols, labels=labels)).words


def test_quotas_are_too_even_for_chance():
    cols = np.random.default_rng(2).integers(40, size=2000)
    filled = audit(observed(np.random.default_rng(3).permutation(np.arange(2000) % 50), cols))
    assert names(filled) == {"rows"}
    assert "too evenly for chance" in filled.words


def test_cells_asked_once_only_are_caught():
    cells = np.random.default_rng(5).permutation(2000)[:1000]
    once = audit(observed(*np.divmod(cells, 40)))
    assert names(once) == {"cells"}
    assert "too seldom for chance, as if each were drawn once" in once.words
    assert "0 pairs of draws met where 250 were to be expected" in once.words


def test_a_pattern_that_rows_and_columns_do_not_show_is_caught():
    rows, cols = uniform(2000).rows, uniform(2000).cols
    chequered = audit(observed(rows, cols - (rows + cols) % 2 * np.where(cols > 0, 1, -1)))
    assert "cells" in names(chequered)
    assert "too often for chance, as if some were favoured" in chequered.words


def test_a_drift_over_time_is_caught():
    rng = np.random.default_rng(6)
    rows = rng.integers(50, size=2000)
    late = np.sort(rng.permutation(2000)[:1000])
    order = np.concatenate([np.setdiff1d(np.arange(2000), late), late])
    early_first = rows[np.argsort(rows + rng.normal(scale=40, size=2000))]
    assert names(audit(observed(rows[order], rng.integers(40, size=2000)))) == set()
    drifting = audit(observed(early_first, rng.integers(40, size=2000)))
    assert names(drifting) == {"order"}
    assert "early and late draws landed on different rows" in drifting.words
    assert "taken to stand in the order in which they were asked" in drifting.words


def test_the_order_is_that_of_the_draw_numbers():
    """Sorted answers pass when the draw numbers tell another order, and the reverse."""
    answers = uniform(2000)
    by_column = np.argsort(answers.cols, kind="stable")
    rows, cols = answers.rows[by_column], answers.cols[by_column]
    assert names(audit(observed(rows, cols))) == {"order"}
    assert names(audit(observed(rows, cols, draws=by_column))) == set()
    assert p_of(audit(observed(rows, cols, draws=by_column)), "order") == pytest.approx(
        p_of(audit(answers), "order")
    )
    shuffled = np.random.default_rng(0).permutation(2000)
    drawn = observed(rows[shuffled], cols[shuffled], draws=shuffled)
    assert names(audit(drawn)) == {"order"}
    assert "taken to stand" not in audit(drawn).words


def test_refusals_that_depend_on_the_row_are_caught():
    asked = uniform(3000, seed=8)
    refused = np.random.default_rng(9).random(3000) < np.where(asked.rows < 10, 0.5, 0.2)
    silent = asked.take(refused)
    answered = asked.take(~refused)
    told = audit(answered, unanswered=(silent.rows, silent.cols))
    assert "response" in names(told)
    assert "whether an answer comes depends on the row or the column" in told.words
    assert told.missing == 0
    assert audit(answered, unanswered=silent) == told


def test_one_row_that_never_answers_is_caught_and_named():
    asked = uniform(5000, (500, 40), seed=8)
    refused = (np.random.default_rng(9).random(5000) < 0.1) | (asked.rows == 123)
    told = audit(asked.take(~refused), unanswered=asked.take(refused))
    assert "response" in names(told)
    times = np.count_nonzero(asked.rows == 123)
    assert f"farthest off is row 123, {times} of {times}" in told.words


def test_refusals_at_random_pass():
    asked = uniform(3000, seed=8)
    refused = np.random.default_rng(9).random(3000) < 0.3
    told = audit(asked.take(~refused), unanswered=asked.take(refused))
    assert told.passed
    assert "silence shows no link with row or column" in told.words


def test_gaps_in_the_draw_numbers_are_mentioned():
    gappy = audit(uniform(300).take(np.arange(300) % 3 > 0))
    assert gappy.missing == 99  # the first draw's absence cannot be told from a later batch
    assert "99 draw numbers have no answer here; give `unanswered`" in gappy.words
    assert audit(uniform(300)).missing == 0
    assert "draw number" not in audit(uniform(300)).words


def test_designed_replicates_are_left_out():
    fresh = uniform(1000)
    again = np.repeat(np.arange(20), 30)  # would look like favourite cells
    rows, cols = np.r_[fresh.rows, fresh.rows[again]], np.r_[fresh.cols, fresh.cols[again]]
    repeats = np.r_[np.full(1000, -1), again]
    designed = audit(observed(rows, cols, repeats=repeats))
    assert designed.passed
    assert (designed.draws, designed.replicates) == (1000, 600)
    assert "1,000 fresh draws (600 designed replicates left out)" in designed.words
    assert names(audit(observed(rows, cols))) >= {"rows", "columns", "cells"}


def test_masked_cells_are_respected():
    """One of a thousand audits may accuse at this level: two of forty would be too many."""
    masked = [uniform(1000, (60, 60), seed, TRIANGLE) for seed in range(40)]
    assert sum(not audit(draws).passed for draws in masked) <= 1
    for draws in masked[:3]:
        unmasked = observed(draws.rows, draws.cols, (60, 60))
        assert names(audit(unmasked)) >= {"rows", "columns", "cells"}


def test_rows_that_cannot_be_asked_at_all_do_not_count():
    mask = np.zeros(SHAPE, dtype=bool)
    mask[10:30] = True
    assert audit(uniform(1000, mask=mask)).passed


@pytest.mark.parametrize("n", [0, 1, 9])
def test_few_answers_are_too_few_to_tell(n):
    few = audit(observed([3] * n, [5] * n))
    assert few.passed
    assert all(math.isnan(check.p_value) for check in few.checks)
    assert "too few to tell" in few.words
    assert "nothing could be judged" in few.words


def test_few_unanswered_are_no_reason_to_fail():
    told = audit(uniform(500), unanswered=([], []))
    assert math.isnan(p_of(told, "response"))
    assert "500 draws, of them 0 unanswered, are too few to tell" in told.words
    assert audit(uniform(500), unanswered=([3], [4])).passed


@pytest.mark.parametrize("shape", [(1, 1), (1, 30), (30, 1)], ids=str)
def test_a_single_line_is_nothing_to_judge(shape):
    thin = audit(uniform(200, shape))
    assert thin.passed
    assert "nothing to choose between" in thin.words


def weighted(n, chance, stated, seed=0):
    """Draw rows by one chance and state another, both per row and up to a factor."""
    rng = np.random.default_rng(seed)
    rows, cols = rng.choice(50, n, p=chance / chance.sum()), rng.integers(40, size=n)
    return observed(rows, cols, probability=(stated / stated.sum() / 40)[rows])


SLOPE = np.geomspace(1, 4, 50)


def test_stated_chances_replace_uniform_ones():
    told = audit(weighted(2000, SLOPE, SLOPE))
    assert told.passed
    assert "weighed by the stated chances, the draws spread over them as they should" in told.words
    assert math.isnan(p_of(told, "cells"))
    assert math.isnan(p_of(told, "order"))
    assert "Order: not judged, since stated chances may change with time." in told.words


def test_stated_chances_that_are_wrong_are_caught():
    assert names(audit(weighted(2000, SLOPE, np.ones(50)))) >= {"rows"}
    assert names(audit(weighted(2000, np.ones(50), SLOPE))) == {"rows"}


@pytest.mark.parametrize("steep", [1, 4, 16])
@pytest.mark.parametrize("n", [30, 300])
def test_true_chances_are_rarely_accused(steep, n):
    slope = np.geomspace(1, steep, 50)
    found = [p_of(audit(weighted(n, slope, slope, seed)), "rows") for seed in range(300)]
    assert np.count_nonzero(np.array(found) < 0.01) <= most(300, 0.01)


def test_the_level_is_shared_by_the_checks_that_were_made():
    checks = [Check("rows", 0.0004, "."), Check("columns", 0.4, "."), Check("order", math.nan, ".")]
    assert names(Audit(tuple(checks), 0.001, 100)) == {"rows"}
    more = [*checks, Check("cells", 0.5, "."), Check("response", 0.5, ".")]
    assert Audit(tuple(more), 0.001, 100).passed


def test_words_tell_what_was_looked_at_what_was_found_and_what_follows():
    fine = audit(uniform(2000))
    assert str(fine) == fine.words
    assert "Looked at 2,000 fresh draws, by rows, columns, cells and order." in fine.words
    assert "Rows: each row was drawn about as often as chance would have it (p = " in fine.words
    assert fine.words.endswith("nothing speaks against the assumption, and the label stands.")
    rows = np.minimum(uniform(2000).rows, 30)
    skewed = audit(observed(rows, uniform(2000).cols))
    assert "the certified label is withdrawn because, by rows and cells, the draws are not" in str(
        skewed
    )
    assert "less than once in 1,000 times" in skewed.words
    for sentence in (fine, skewed):
        assert "nan" not in sentence.words
        assert "  " not in sentence.words


def test_the_same_draws_are_judged_the_same():
    assert audit(uniform(500)) == audit(uniform(500))


def test_bad_arguments_are_refused():
    with pytest.raises(InvalidType, match="audit was given a list; it takes Observations"):
        audit([1, 2])
    for level in (0.0, 1.0, -1, math.nan):
        with pytest.raises(InvalidInput, match=r"level is .*; it must lie between 0 and 1"):
            audit(uniform(20), level=level)
    with pytest.raises(InvalidType, match="level is 'low'"):
        audit(uniform(20), level="low")
    with pytest.raises(InvalidType, match=r"unanswered is an int; .*\(rows, cols\), or None"):
        audit(uniform(20), unanswered=3)
    with pytest.raises(InvalidInput, match=r"rows\[0\] is 50; shape \(50, 40\) has rows 0 to 49"):
        audit(uniform(20), unanswered=([50], [0]))
    with pytest.raises(InvalidInput, match="The lengths differ"):
        audit(uniform(20), unanswered=([1, 2], [0]))
    masked = uniform(20, (60, 60), mask=TRIANGLE)
    with pytest.raises(InvalidInput, match=r"cell \(0, 9\), which the mask marks"):
        audit(masked, unanswered=([0], [9]))
