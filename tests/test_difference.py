"""Comparisons of columns, rows and segments: right on average, and as sure as they say."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from stand_ins import Fixed, Memoriser, asked

from malocate import (
    Anytime,
    InvalidInput,
    InvalidType,
    NotFound,
    Observations,
    SoftImpute,
    Synthetic,
    difference,
    differences,
)
from malocate.confidence.betting import upper_mean_of_parts, wealth_of_parts
from malocate.confidence.contrasts import Side, Stage, contrast

SCALE = (1.0, 5.0)
REPETITIONS = 120


def liked(seed=3, shape=(30, 5)):
    """People with levels of their own, and wines: a matrix on the scale."""
    rng = np.random.default_rng(seed)
    people, wines = rng.normal(0, 0.8, (shape[0], 1)), rng.normal(0, 0.4, (1, shape[1]))
    return np.clip(3 + people + wines, 1.3, 4.7)


def rated(truth, n, rng, replicates=0):
    """Ratings in whole stars whose means are exactly the truth."""
    rng = np.random.default_rng(rng)
    rows, cols = (rng.integers(side, size=n) for side in truth.shape)
    repeats = np.append(np.full(n, -1), np.arange(replicates))
    rows, cols = np.append(rows, rows[:replicates]), np.append(cols, cols[:replicates])
    means = truth[rows, cols]
    stars = np.floor(means) + (rng.random(len(means)) < means % 1)
    return Observations(rows, cols, stars, shape=truth.shape, scale=SCALE, repeats=repeats)


def found_often(truth, estimator, *, n=400, replicates=0, count=REPETITIONS, **which):
    settings = {"check_uniform": False} | which
    return [
        difference(estimator, rated(truth, n, seed, replicates), **settings)
        for seed in range(count)
    ]


@pytest.mark.parametrize(
    ("estimator", "replicates"),
    [(Memoriser(), 0), (Memoriser(), 200), (Fixed(liked()), 0), (Fixed(6 - liked()), 60)],
    ids=["memoriser", "memoriser, replicates", "the truth", "the opposite"],
)
def test_certified_intervals_hold_and_estimates_are_right_on_average(estimator, replicates):
    truth = liked()
    for which, true in (
        ({"columns": (0, 1)}, truth[:, 0].mean() - truth[:, 1].mean()),
        ({"rows": (4, 2)}, truth[4].mean() - truth[2].mean()),
    ):
        found = found_often(truth, estimator, replicates=replicates, **which)
        assert np.mean([each.low <= true <= each.high for each in found]) >= 0.95
        errors = np.array([each.estimate - true for each in found])
        assert abs(errors.mean()) < 4 * errors.std() / np.sqrt(len(errors))
        assert {each.label for each in found} == {"certified"}


def test_standard_errors_are_those_of_repetitions():
    found = found_often(liked(), Fixed(liked()), replicates=100, columns=(0, 1))
    spread = np.std([each.estimate for each in found])
    assert np.mean([each.se for each in found]) == pytest.approx(spread, rel=0.2)


def test_a_fit_that_has_seen_its_judges_fails():
    truth = liked(shape=(30, 20))
    kept, leaky = [], []
    for seed in range(40):
        answers = rated(truth, 600, seed)
        ends = [slice(0, 60), slice(60, 120), slice(120, 600)]
        first, middle, last = (answers.take(each) for each in ends)
        for done, covered in ((Memoriser().fit(first), kept), (Memoriser().fit(answers), leaky)):
            stages = [Stage(first, done, middle), Stage(first, done, last)]
            low, high = contrast(stages, [Side()]).certified(0.05)
            covered.append(low <= truth.mean() <= high)
    assert np.mean(kept) >= 0.95
    assert np.mean(leaky) < 0.5


def mean_wealth(units, count=20_000):
    """Give the mean wealth won against the truth by values of two kinds, and its error."""
    rng = np.random.default_rng(1)
    won = np.empty(count)
    for place in range(count):
        first = units(rng, 12) - 1.0
        high = 1.0 + abs(first.mean())  # a limit that the first part decides on
        parts = [(first, 3.0), (high * (units(rng, 8) - 1.0) / 3.0, high)]
        won[place] = wealth_of_parts(parts, 0.0, 0.05)
    return won.mean(), won.std() / np.sqrt(count)


def test_the_wealth_against_the_truth_is_one_on_average():
    mean, error = mean_wealth(lambda rng, n: 4.0 * (rng.random(n) < 0.25))
    assert abs(mean - 1) < 4 * error


def test_replicates_counted_as_draws_would_be_noticed():
    mean, error = mean_wealth(lambda rng, n: np.repeat(4.0 * (rng.random(n) < 0.25), 2))
    assert mean > 1 + 4 * error


def test_the_bound_of_parts_refuses_less_than_its_wealth_says():
    rng = np.random.default_rng(2)
    parts = [(rng.random(50), 1.0), (rng.random(30), 1.5)]
    bound = upper_mean_of_parts(parts, 0.05)
    assert wealth_of_parts(parts, bound, 0.05) >= 20 > wealth_of_parts(parts, bound - 1e-6, 0.05)
    assert upper_mean_of_parts([([], 1.0), ([], 0.5)], 0.05) == 0.5
    assert upper_mean_of_parts([([1.0] * 5, 1.0)], 0.05) == pytest.approx(1.0)


def test_a_good_fit_narrows_and_a_bad_one_hardly_widens():
    truth = liked(shape=(60, 5))
    answers = [rated(truth, 1500, seed) for seed in range(5)]

    def width(estimator):
        found = [difference(estimator, each, columns=(0, 1)) for each in answers]
        return np.mean([each.high - each.low for each in found])

    plain = width(Fixed(np.full(truth.shape, truth.mean())))
    assert width(Fixed(truth)) < 0.8 * plain
    assert width(Memoriser()) < 1.1 * plain
    assert width(SoftImpute("universal")) < 0.9 * plain


def test_the_order_of_the_answers_and_of_the_two_does_not_matter():
    answers = rated(liked(), 400, 1, replicates=50)
    shuffled = answers.take(np.random.default_rng(0).permutation(len(answers)))
    one = difference(Memoriser(), answers, columns=(0, 1))
    two = difference(Memoriser(), shuffled, columns=(0, 1))
    assert (one.estimate, one.low, one.high) == pytest.approx((two.estimate, two.low, two.high))
    turned = difference(Memoriser(), answers, columns=(1, 0))
    assert (-turned.high, -turned.low) == pytest.approx((one.low, one.high))


def test_several_comparisons_share_the_chance_of_error():
    answers = rated(liked(), 600, 1)
    three = differences(Memoriser(), answers, columns=[0, 1, 2], delta=0.06)
    alone = difference(Memoriser(), answers, columns=(0, 1), delta=0.02)
    assert (three[0].low, three[0].high) == pytest.approx((alone.low, alone.high))
    assert [(each.one, each.two) for each in three] == [(0, 1), (0, 2), (1, 2)]
    assert {each.certainty for each in three} == {0.94}


def test_segments_are_compared_each_by_its_own_answers():
    north, south = liked(1), liked(2, (20, 5))
    true, covered = north.mean() - south.mean(), []
    for seed in range(60):
        answers = {"north": rated(north, 500, seed), "south": rated(south, 150, seed + 999)}
        found = difference(Memoriser(), answers, segments=("north", "south"), check_uniform=False)
        covered.append(found.low <= true <= found.high)
        assert found.label == "certified"
    assert np.mean(covered) >= 0.95
    at = difference(Memoriser(), answers, segments=("north", "south"), column=3)
    assert at.where == "column 3"
    assert at.answers < found.answers


def test_masked_cells_do_not_count():
    truth = liked()
    mask = np.zeros(truth.shape, dtype=bool)
    mask[:20, 0] = True
    true, errors = truth[20:, 0].mean() - truth[:, 1].mean(), []
    for seed in range(100):
        answers = rated(truth, 500, seed)
        answers = answers.take(~mask[answers.rows, answers.cols])
        answers = Observations(
            answers.rows, answers.cols, answers.values, shape=truth.shape, scale=SCALE, mask=mask
        )
        found = difference(Fixed(liked(9)), answers, columns=(0, 1))
        errors.append(found.estimate - true)
        assert found.low <= true <= found.high
    assert abs(np.mean(errors)) < 4 * np.std(errors) / 10


def test_stated_chances_weigh_and_take_the_label():
    truth = liked()
    chance = np.where((truth > 3) == (np.arange(5) == 0), 4.0, 1.0)
    chance /= chance.sum()
    true, weighed, plain = truth[:, 0].mean() - truth[:, 1].mean(), [], []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        cells = rng.choice(truth.size, size=600, p=chance.ravel())
        rows, cols = np.divmod(cells, truth.shape[1])
        values = truth[rows, cols] + 0.3 * rng.standard_normal(600)
        told = {"shape": truth.shape, "probability": chance[rows, cols]}
        found = difference(Memoriser(), Observations(rows, cols, values, **told), columns=(0, 1))
        weighed.append(found.estimate - true)
        told["probability"] = None
        plain.append(
            difference(
                Memoriser(), Observations(rows, cols, values, **told), columns=(0, 1)
            ).estimate
            - true
        )
    assert found.label == "approximate"
    assert "stated probabilities" in found.given
    assert abs(np.mean(weighed)) < 4 * np.std(weighed) / 10 + 0.01
    assert abs(np.mean(plain)) > 4 * np.std(plain) / 10


def test_without_a_scale_it_is_approximate_and_about_right():
    truth = liked()
    true, covered = truth[:, 0].mean() - truth[:, 1].mean(), []
    for seed in range(200):
        found = difference(Memoriser(), asked(truth, 400, seed, noise=0.5), columns=(0, 1))
        covered.append(found.low <= true <= found.high)
    assert found.label == "approximate"
    assert 0.9 <= np.mean(covered) <= 0.99


def test_draws_that_are_not_uniform_take_the_label():
    answers = rated(liked(), 800, 1)
    bent = answers.take((answers.rows < 10) | (answers.draws % 4 == 0))
    found = difference(Memoriser(), bent, columns=(0, 1))
    assert found.label == "approximate"
    assert "label is withdrawn" in found.reason
    assert difference(Memoriser(), bent, columns=(0, 1), check_uniform=False).label == "certified"


def test_a_look_judges_its_draws_and_spends_its_share():
    answers, grid = rated(liked(), 700, 1), Anytime(delta=0.05, segments=2, first=500)
    found = difference(Memoriser(), answers, columns=(0, 1), look=grid)
    alone = difference(
        Memoriser(), answers.take(answers.draws < 625), columns=(0, 1), delta=grid.delta_at(2)
    )
    assert (found.low, found.high, found.delta) == (alone.low, alone.high, alone.delta)
    early = difference(Memoriser(), answers.take(slice(0, 90)), columns=(0, 1), look=grid)
    assert (early.low, early.high) == (-4.0, 4.0)
    assert str(early).startswith("There are too few answers to compare 0 with 1.")
    assert "The first look comes at 500 settled draws" in early.reason


def test_a_sentence_says_who_is_rated_higher_or_that_nobody_can_tell():
    truth = np.tile([4.4, 2.2, 2.3], (30, 1))
    answers = rated(truth, 900, 1)
    labelled = Observations(
        answers.rows, answers.cols, answers.values, shape=truth.shape, scale=SCALE,
        labels=(range(30), ["red", "white", "rosé"]),
    )  # fmt: skip
    sure = difference(Memoriser(), labelled, columns=("white", "red"), segment="north")
    assert sure.certain
    assert sure.sentence.startswith("north: red is rated higher than white: +2.")
    assert sure.sentence.endswith("(certified, certainty 0.95).")
    unsure = difference(Memoriser(), labelled, columns=("white", "rosé"))
    assert not unsure.certain
    assert unsure.sentence.startswith(
        "Whether white or rosé is rated higher cannot be told yet: rosé by +0."
    )
    assert unsure.doubted("Nobody says how.").label == "approximate"
    assert str(unsure.doubted("Nobody says how.")).endswith("Nobody says how.")


@pytest.mark.parametrize(
    ("which", "problem", "words"),
    [
        ({}, InvalidInput, "give columns, rows or segments, one of the three"),
        ({"columns": (0, 1), "rows": (0, 1)}, InvalidInput, "one of the three"),
        ({"columns": "ab"}, InvalidInput, "give two of them"),
        ({"columns": (0, 1, 2)}, InvalidInput, "give two of them, or call `differences`"),
        ({"columns": (1, 1)}, InvalidInput, "at least two, each once"),
        ({"columns": (0, 7)}, NotFound, "There is no column 7; there is 0, 1, 2, 3, 4"),
        ({"columns": (0, 1), "column": 2}, InvalidInput, "column and row go with segments"),
        ({"segments": ("a", "b")}, InvalidType, "by a mapping from their names"),
    ],
)
def test_what_cannot_be_compared_is_refused(which, problem, words):
    with pytest.raises(problem, match=words):
        difference(Memoriser(), rated(liked(), 50, 1), **which)


def test_unknown_segments_and_masked_columns_are_refused():
    answers = {"north": rated(liked(), 50, 1), "south": rated(liked(), 50, 2)}
    with pytest.raises(NotFound, match="no segment 'nord'; is 'north' meant"):
        difference(Memoriser(), answers, segments=("nord", "south"))
    with pytest.raises(InvalidInput, match="not at both"):
        difference(Memoriser(), answers, segments=("north", "south"), column=0, row=0)
    mask = np.zeros((30, 5), dtype=bool)
    mask[:, 0] = True
    bare = Observations([], [], [], shape=(30, 5), mask=mask)
    with pytest.raises(InvalidInput, match="column 0 has no cell that can be asked"):
        difference(Memoriser(), bare, columns=(0, 1))


def test_equal_answers_show_no_error_and_give_no_interval():
    rng = np.random.default_rng(0)
    rows, cols = rng.integers(20, size=400), rng.integers(2, size=400)
    seen = partial(Observations, rows, cols, shape=(20, 2))
    for levels in ((3.0, 3.0), (4.0, 2.0), (4.0, rng.normal(2, 1, 400))):
        values = np.where(cols == 0, *levels)
        found = difference(SoftImpute(1.0), seen(values), columns=(0, 1))
        assert (found.low, found.high, found.certain) == (-np.inf, np.inf, False)
        assert "how surely cannot be told, since they were all equal." in found.sentence
        assert "scale" in found.reason
    ranged = seen(np.where(cols == 0, 4.0, 2.0), scale=(1, 5))
    proven = difference(SoftImpute(1.0), ranged, columns=(0, 1))
    assert proven.label == "certified"
    assert 0 < proven.low < 2 < proven.high
    own = {"n": seen(np.full(400, 3.0)), "s": seen(rng.normal(2, 1, 400))}
    between = difference(SoftImpute(1.0), own, segments=("n", "s"))
    assert (between.low, between.certain) == (-np.inf, False)


def test_no_answers_tell_nothing():
    bare = Observations([], [], [], shape=(30, 5), scale=SCALE)
    found = difference(Memoriser(), bare, columns=(0, 1))
    assert (found.low, found.high, found.answers) == (-4.0, 4.0, 0)
    segments = {"one": bare, "two": bare}
    found = difference(Memoriser(), segments, segments=("one", "two"))
    assert (found.low, found.high) == (-4.0, 4.0)


def test_a_living_estimator_is_compared_as_well():
    source = Synthetic.ratings(shape=(40, 6), rank=2, rng=0)
    found = difference(SoftImpute(2.0), source.observe(1500, rng=1), columns=(0, 3))
    assert found.low <= source.truth[:, 0].mean() - source.truth[:, 3].mean() <= found.high
