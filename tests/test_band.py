"""The band: what is bounded, what is promised, what is refused."""

from __future__ import annotations

import itertools
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from stand_ins import Fixed, Memoriser, asked

from malocate import (
    Anytime,
    InvalidInput,
    InvalidType,
    LowRankLeastSquares,
    Observations,
    SoftImpute,
    Synthetic,
    certify,
    error_band,
)
from malocate.confidence.bounds import Moment
from malocate.confidence.schemes import CrossFit, HoldOut

SCALE = (-3.0, 3.0)
TRUTH = np.clip(np.random.default_rng(1).standard_normal((12, 10)), -2, 2)
OFF = np.clip(TRUTH + 0.4 * np.random.default_rng(2).standard_normal((12, 10)), *SCALE)
ERROR = float(np.mean((OFF - TRUTH) ** 2))


def rated(n=400, rng=0, **more) -> Observations:
    return asked(TRUTH, n, rng, scale=SCALE, **more)


@pytest.fixture(scope="module")
def source() -> Synthetic:
    return Synthetic.ratings(shape=(40, 30), rank=2, rng=0)


@pytest.fixture(scope="module")
def seen(source) -> Observations:
    return source.observe(1500, rng=1)


@pytest.mark.parametrize("bound", ["betting", "moment", "skew", "hoeffding", "bernstein", "normal"])
def test_bounds_hold_as_often_as_they_say(bound):
    runs, delta = 200, 0.1
    held = sum(
        error_band(Fixed(OFF), rated(rng=[3, run]), bound=bound, delta=delta, salt=run).upper
        >= ERROR
        for run in range(runs)
    )
    allowed = 3 * math.sqrt(delta * (1 - delta) / runs)
    assert held / runs >= 1 - delta - allowed


def test_tighter_bounds_are_tighter():
    uppers = {
        bound: error_band(Fixed(OFF), rated(2000), bound=bound).upper
        for bound in ("betting", "bernstein", "hoeffding", "skew")
    }
    assert ERROR < uppers["skew"] < uppers["betting"] < uppers["bernstein"] < uppers["hoeffding"]


@pytest.mark.parametrize("estimate", ["residual", "pairs"])
@pytest.mark.parametrize("bound", ["betting", "hoeffding", "bernstein"])
def test_the_label_is_certified_where_there_is_a_proof(estimate, bound):
    label = error_band(Fixed(OFF), rated(), bound=bound, estimate=estimate).label
    unproven = bound == "bernstein" and estimate == "pairs"
    assert label == ("approximate" if unproven else "certified")


def test_without_a_scale_the_default_is_approximate():
    band = error_band(Fixed(OFF), asked(TRUTH, 400, 5))
    assert (band.bound.name, band.label) == ("skew", "approximate")
    assert ERROR < band.upper < 3 * ERROR


def test_moment_is_certified_given_kappa_and_says_so():
    band = error_band(Fixed(OFF), asked(TRUTH, 3000, 6), bound=Moment(kappa=6))
    assert band.label == "certified"
    assert "E v² ≤ 6 (E v)²" in band.given


def test_what_is_delivered_is_what_is_bounded(source, seen):
    refit = error_band(LowRankLeastSquares(), seen)
    average = error_band(LowRankLeastSquares(), seen, deliver="ensemble")
    assert (refit.delivered, average.delivered) == ("refit", "ensemble")
    away = math.sqrt(np.mean((refit.completion.dense() - average.completion.dense()) ** 2))
    assert average.upper == average.ensemble_upper == refit.ensemble_upper
    assert refit.upper == pytest.approx((math.sqrt(average.upper) + away) ** 2, rel=1e-9)
    for band in (refit, average):
        assert np.mean((band.completion.dense() - source.truth) ** 2) <= band.upper


def test_completions_are_clipped_to_the_scale(seen):
    done = error_band(SoftImpute(2.0), seen).completion.dense()
    assert done.min() >= 1
    assert done.max() <= 5


def test_a_band_is_the_same_through_any_map(seen):
    with ThreadPoolExecutor(2) as pool:
        one = error_band(SoftImpute(2.0), seen, map=pool.map)
    two = error_band(SoftImpute(2.0), seen)
    assert (one.estimate, one.se, one.upper) == (two.estimate, two.se, two.upper)


def test_warm_starts_stay_inside_their_fold(source):
    """The fold-j fit of a later look starts from the fold-j fit of the earlier one."""
    early, late = source.observe(600, rng=3), source.observe(900, rng=3)
    assert np.array_equal(early.values, late.values[:600])
    starts = []

    class Watched:
        def fit(self, observations, *, start=None):
            starts.append(start)
            return SoftImpute(2.0).fit(observations, start=start)

    before = error_band(Watched(), early)
    starts.clear()
    error_band(Watched(), late, start=before)
    assert starts == [*before.ensemble.members, before.completion]
    with pytest.raises(InvalidInput, match="other folds"):
        error_band(Watched(), late, start=before, salt="another")
    with pytest.raises(InvalidInput, match="other folds"):
        error_band(Watched(), late, start=before, scheme=CrossFit(folds=4))


def test_a_memoriser_is_seen_through_by_folds_only():
    """It repeats what it was told; entries seen once cannot tell what it says of them."""
    truth = np.zeros((30, 30))
    seen = asked(truth, 1200, 0, noise=1.0, scale=(-6, 6))
    settings = {"deliver": "ensemble", "bound": "normal"}
    folds = error_band(Memoriser(), seen, **settings)
    once = error_band(Memoriser(), seen, scheme="once_vs_multi", estimate="pairs", **settings)
    assert folds.estimate == pytest.approx(np.mean(folds.completion.dense() ** 2), abs=4 * folds.se)
    assert np.mean(once.completion.dense() ** 2) > 0.25
    assert once.estimate < 0.1


def test_all_answers_are_judged_at_a_look_by_the_grid(source):
    seen, grid = source.observe(1000, rng=2), Anytime(delta=0.1, segments=3, sizes=(300, 700, 1500))
    band = error_band(SoftImpute(2.0), seen, look=grid)
    assert (band.answers, band.delta) == (700, pytest.approx(0.1 / (3 * 2 * 3)))
    alone = error_band(SoftImpute(2.0), seen.take(slice(0, 700)), delta=band.delta)
    assert band.upper == alone.upper
    waiting = error_band(SoftImpute(2.0), seen.take(slice(0, 200)), look=grid)
    assert math.isinf(waiting.upper)
    assert waiting.label == "approximate"
    assert "first look comes at 300 settled draws; 200 are" in waiting.reason


def test_a_look_waits_for_its_draws(source):
    grid, seen = Anytime(sizes=(500, 750)), source.observe(750, rng=2)
    pending = seen.take([*range(500), 749])
    assert error_band(SoftImpute(2.0), pending, look=grid).answers == 500
    told = error_band(SoftImpute(2.0), pending, look=grid, settled=750)
    assert (told.answers, told.delta) == (501, grid.delta_at(2))
    assert told.certainty == 0.95
    assert "With certainty 0.95" in str(told)


def test_the_noise_takes_its_share_whatever_replicates_there_are():
    """Else what is spent on the rest would depend on the data."""
    rows, cols = np.divmod(np.arange(60), 10)
    once = Observations(rows, cols, TRUTH[rows, cols], shape=TRUTH.shape, scale=SCALE)
    settings = {"deliver": "ensemble", "check_uniform": False}
    half = error_band(Fixed(OFF), once, delta=0.1, **settings)
    whole = error_band(Fixed(OFF), once, delta=0.05, noise_variance=0.0, **settings)
    assert half.upper == whole.upper


def test_no_replicates_and_no_declared_noise():
    rows, cols = np.divmod(np.arange(60), 10)
    values = np.clip(TRUTH[rows, cols], *SCALE)
    plain = Observations(rows, cols, values, shape=TRUTH.shape)
    scaled = Observations(rows, cols, values, shape=TRUTH.shape, scale=SCALE)
    nothing = error_band(Fixed(OFF), plain, check_uniform=False)
    assert math.isinf(nothing.upper)
    assert "nothing tells error from noise" in nothing.reason
    counted = error_band(Fixed(OFF), scaled, check_uniform=False)
    assert ERROR < counted.upper < math.inf
    assert "counted as error" in counted.reason
    assert math.isfinite(error_band(Fixed(OFF), plain, noise_variance=0.0).upper)


def test_one_answer_and_none():
    one = Observations([0], [0], [1.0], shape=(12, 10), scale=SCALE)
    with pytest.raises(InvalidInput, match="5 folds and 1 answer"):
        error_band(Fixed(OFF), one)
    held = error_band(Fixed(OFF), one, scheme=HoldOut(0.999))
    assert not math.isnan(held.estimate)
    assert held.se == math.inf
    assert ERROR < held.upper <= 36
    none = error_band(Fixed(OFF), one.take(slice(0, 0)), scheme="holdout")
    assert math.isinf(none.upper)
    assert "No answer was held out" in none.reason
    for band in (held, none):
        assert "nan" not in f"{band} {band!r}"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"bound": "betting"}, "Declare the scale"),
        ({"bound": "hoeffding"}, "Declare the scale"),
        ({"bound": "moment", "estimate": "pairs"}, "cannot judge estimate='pairs'"),
        ({"bound": "skew", "estimate": "two_phase"}, "cannot judge estimate='two_phase'"),
        ({"bound": "paper"}, "cannot judge estimate='residual'"),
        ({"bound": "moment", "scheme": "once_vs_multi"}, "has not seen for that of the whole"),
        ({"bound": "skew", "scheme": "once_vs_multi"}, "has not seen for that of the whole"),
        ({"bound": "guess"}, "choose from auto, betting"),
        ({"estimate": "guess"}, "choose from residual"),
        ({"scheme": "guess"}, "choose from crossfit"),
        ({"deliver": "guess"}, "'refit' or 'ensemble'"),
        ({"delta": 0.0}, "between 0 and 1"),
        ({"delta": 1.5}, "between 0 and 1"),
        ({"noise_variance": -1.0}, "0 or more"),
        ({"noise_variance": math.nan}, "0 or more"),
        ({"scheme": CrossFit(folds=500)}, "500 folds and 400 answers"),
    ],
)
def test_what_would_be_dishonest_or_senseless_is_refused(settings, words):
    with pytest.raises(InvalidInput, match=words):
        error_band(Fixed(OFF), asked(TRUTH, 400, 0), **settings)


def test_draws_that_were_not_uniform_are_not_certified():
    seen = asked(TRUTH, 400, 0)
    chance = np.where(seen.rows < 6, 1.5, 0.5) / 120
    columns = (seen.rows, seen.cols, np.clip(seen.values, *SCALE))
    weighted = Observations(*columns, shape=(12, 10), scale=SCALE, probability=chance)
    with pytest.raises(InvalidInput, match="probabilities of their own"):
        error_band(Fixed(OFF), weighted, bound="betting")
    assert error_band(Fixed(OFF), weighted).bound.name == "skew"
    skewed = seen.take(seen.rows < 6)
    columns = (skewed.rows, skewed.cols, np.clip(skewed.values, *SCALE))
    band = error_band(Fixed(OFF), Observations(*columns, shape=(12, 10), scale=SCALE))
    assert band.label == "approximate"
    assert not band.audit.passed
    assert band.audit.words in band.reason


def test_probabilities_that_are_all_the_same_are_audited_like_none():
    seen = asked(TRUTH, 400, 0, scale=SCALE)
    half = seen.take(seen.rows < 6)
    columns = (half.rows, half.cols, half.values)
    stated = np.full(len(half), np.float32(1 / 120))
    told = Observations(*columns, shape=(12, 10), scale=SCALE, probability=stated)
    band = error_band(Fixed(OFF), told)
    assert band.bound.name == "betting"
    assert band.label == "approximate"
    assert band.audit.failed == error_band(Fixed(OFF), half).audit.failed != []


def test_a_map_may_give_the_fits_back_in_any_order_but_must_give_all():
    seen = rated()
    usual = error_band(Memoriser(), seen)
    turned = error_band(Memoriser(), seen, map=lambda fit, jobs: map(fit, jobs[::-1]))
    assert (turned.estimate, turned.upper) == (usual.estimate, usual.upper)
    with pytest.raises(InvalidInput, match="map gave 5 of 6 fits"):
        error_band(Memoriser(), seen, map=lambda fit, jobs: map(fit, jobs[:5]))


@pytest.mark.parametrize("scheme", ["halves", "once_vs_multi"])
def test_no_warm_start_where_answers_change_sides(scheme):
    settings = {"scheme": scheme, "bound": "normal"}
    before = error_band(Fixed(OFF), rated(200), **settings)
    with pytest.raises(InvalidInput, match="change sides between looks"):
        error_band(Fixed(OFF), rated(400), start=before, **settings)


def test_refusals_that_depend_on_the_row_withdraw_the_label():
    seen = rated(600)
    silent = (seen.rows < 3) & (np.arange(600) % 3 > 0)
    answered, lost = seen.take(~silent), (seen.rows[silent], seen.cols[silent])
    band = error_band(Fixed(OFF), answered, unanswered=lost)
    assert band.label == "approximate"
    assert "response" in [check.name for check in band.audit.failed]


def test_an_estimator_must_complete_the_matrix_it_was_asked_about():
    class Other:
        def fit(self, observations, *, start=None):
            return Fixed(np.zeros((5, 5))).fit(asked(np.zeros((5, 5)), 1, 0))

    class Nothing:
        def fit(self, observations, *, start=None):
            return None

    with pytest.raises(InvalidInput, match="must complete the matrix"):
        error_band(Other(), rated())
    with pytest.raises(InvalidType, match="must give a Completion"):
        error_band(Nothing(), rated())


def test_a_noise_that_the_scale_does_not_allow_is_refused():
    with pytest.raises(InvalidInput, match="cannot vary by more than 9"):
        error_band(Fixed(OFF), rated(), noise_variance=10.0)


def test_every_infinite_bound_has_a_reason_and_no_certificate():
    few = asked(TRUTH, 12, 0, replicates=3)
    for settings in ({"bound": "moment"}, {"bound": "normal", "estimate": "two_phase"}):
        band = error_band(Fixed(OFF), few, scheme=CrossFit(2), **settings)
        assert math.isinf(band.upper)
        assert band.reason
        assert band.label == "approximate"


def test_given_names_what_the_estimate_rests_on():
    pairs = error_band(Fixed(OFF), rated(), estimate="pairs", noise_variance=0.3)
    assert "independent errors of repeated answers" in pairs.given
    assert "declared noise" not in pairs.given


@pytest.mark.parametrize(
    "settings",
    [
        {"scheme": 5},
        {"scheme": CrossFit},
        {"bound": ["skew"]},
        {"estimate": ["residual"]},
        {"look": 5},
        {"settled": 100},
        {"look": Anytime(), "settled": "all"},
        {"noise_variance": "a"},
        {"start": 5},
    ],
)
def test_what_makes_no_sense_is_refused_by_a_sentence(settings):
    with pytest.raises((InvalidInput, InvalidType)):
        error_band(Fixed(OFF), rated(), **settings)


@pytest.mark.parametrize(
    ("estimator", "data"), [(5, rated()), (SoftImpute, rated()), (Fixed(OFF), [1, 2])]
)
def test_wrong_types_are_refused(estimator, data):
    with pytest.raises(InvalidType, match="error_band was given"):
        error_band(estimator, data)


def test_the_papers_bound_by_hand():
    band = error_band(
        Fixed(OFF), rated(), scheme="once_vs_multi", estimate="pairs", bound="paper",
        deliver="ensemble",
    )  # fmt: skip
    count = np.count_nonzero(rated().entries.visits > 1)
    assert band.upper == pytest.approx(band.estimate + 8 * 9 * math.sqrt(math.log(12) / count))
    assert band.label == "approximate"


def test_a_band_says_what_it_means(seen):
    band = error_band(LowRankLeastSquares(), seen)
    assert f"{band.rmse_upper:.4g}" in str(band)
    assert "certified" in str(band)
    assert "uniform draws, answers on the declared scale, independent errors" in band.given


class TestCertify:
    """A frozen completion, judged by later answers."""

    def done(self):
        return Fixed(OFF).fit(rated(1))

    def test_it_holds_and_tightens(self):
        few = certify(self.done(), rated(200, replicates=60))
        many = certify(self.done(), rated(4000, replicates=600))
        assert ERROR < many.upper < few.upper
        assert many.label == "certified"
        assert "replicates" in many.given

    def test_it_holds_at_every_look_at_once(self):
        runs, delta, broken = 200, 0.2, 0
        for run in range(runs):
            later = rated(400, rng=[7, run], replicates=80)
            ends = [20, 50, 100, 200, 300, 400]
            uppers = [
                certify(self.done(), later.take(later.numbering.origins < end), delta=delta).upper
                for end in ends
            ]
            broken += min(uppers) < ERROR
        assert broken / runs <= delta + 3 * math.sqrt(delta * (1 - delta) / runs)

    def test_the_noise_is_declared_or_re_asked_or_part_of_the_bound(self):
        later = rated(2000)
        declared = certify(self.done(), later, noise_variance=0.01, delta=0.05)
        neither = certify(self.done(), later, delta=0.1)
        assert neither.upper == pytest.approx(declared.upper + 0.01, rel=1e-9)
        assert "noise of an answer is part of it" in str(neither)

    def test_it_is_audited(self):
        half = rated(400).take(rated(400).rows < 6)
        found = certify(self.done(), half)
        assert found.label == "approximate"
        assert found.audit.words in str(found)

    def test_labels_must_agree(self):
        labels = (list("abcdefghijkl"), list("0123456789"))
        done = Fixed(OFF).fit(asked(TRUTH, 9, 0, labels=labels))
        assert certify(done, rated(50, labels=labels)).label == "certified"
        with pytest.raises(InvalidInput, match="in another order"):
            certify(done, rated(50, labels=(labels[0][::-1], labels[1])))

    def test_later_answers_never_undo_it(self):
        """Also where a draw is re-asked long after it was asked: no bet is taken back."""
        fresh, again = rated(300), rated(300, replicates=60)
        stream = Observations.concat([fresh, again.take(slice(300, 360))])
        uppers = [
            certify(self.done(), stream.take(slice(0, end))).upper for end in range(10, 361, 5)
        ]
        assert all(late <= early + 1e-12 for early, late in itertools.pairwise(uppers))
        assert uppers[-1] < uppers[-12]  # the replicates have shown some noise

    def test_the_order_of_arrival_changes_nothing(self):
        later = rated(300, replicates=50, draws=np.arange(350))
        order = np.random.default_rng(0).permutation(350)
        assert certify(self.done(), later).upper == certify(self.done(), later.take(order)).upper

    @pytest.mark.parametrize(
        ("later", "settings", "words"),
        [
            (asked(TRUTH, 50, 0), {}, "declare the scale"),
            (asked(TRUTH[:5], 50, 0, scale=SCALE), {}, "same matrix"),
            (rated(50), {"delta": 2}, "between 0 and 1"),
            (rated(50), {"noise_variance": -1}, "0 or more"),
            (rated(50), {"noise_variance": 50}, "cannot vary by more than 9"),
        ],
    )
    def test_bad_input_is_refused(self, later, settings, words):
        with pytest.raises(InvalidInput, match=words):
            certify(self.done(), later, **settings)


class TestInterval:
    """Intervals for single cells."""

    def test_next_answers_lie_inside(self, source, seen):
        band = error_band(SoftImpute(2.0), seen)
        later = source.observe(4000, rng=9)
        low, high = inside = band.interval(later.rows, later.cols, level=0.9)
        covered = np.mean((later.values >= low) & (later.values <= high))
        assert 0.87 < covered < 0.97
        assert 0.6 < inside.guarantee < 0.8
        assert "proven are" in inside.words

    def test_nothing_is_proven_where_the_next_draw_is_another_kind_of_draw(self, seen):
        settings = {"scheme": "once_vs_multi", "bound": "normal"}
        once = error_band(SoftImpute(2.0), seen, **settings).interval(0, 0)
        skewed = error_band(SoftImpute(2.0), seen.take(seen.rows < 20)).interval(0, 0)
        for each in (once, skewed):
            assert each.guarantee == 0.0
            assert "nothing is proven" in each.words

    def test_one_fold_has_the_full_guarantee(self, seen):
        assert error_band(SoftImpute(2.0), seen, scheme="holdout").interval(0, 0).guarantee == 0.9

    def test_means_lie_inside_about_as_often(self, source, seen):
        band = error_band(SoftImpute(2.0), seen)
        rows, cols = np.divmod(np.arange(1200), 30)
        low, high = band.interval(rows, cols, level=0.9, of="mean")
        truth = source.truth[rows, cols]
        assert 0.8 < np.mean((truth >= low) & (truth <= high)) < 0.98
        answer = band.interval(rows, cols, level=0.9)
        assert np.mean(high - low) < np.mean(answer.high - answer.low)

    def test_cv_plus_by_hand(self, seen):
        band = error_band(SoftImpute(2.0), seen, scheme=CrossFit(folds=3))
        ends = []
        for fold in band.evidence.folds:
            at = fold.completion.predict(4, 5)
            ends += [at + abs(miss) for miss in fold.misses]
        place = math.ceil(0.8 * (len(ends) + 1))
        high = band.interval(4, 5, level=0.8).high
        assert high == pytest.approx(min(5.0, sorted(ends)[place - 1]), abs=1e-9)

    def test_an_estimate_below_zero_does_not_make_the_mean_certain(self):
        exact = Fixed(TRUTH)
        bands = [error_band(exact, rated(200, rng), bound="normal", salt=rng) for rng in range(9)]
        below = next(band for band in bands if band.estimate < 0)
        low, high = below.interval(0, 0, of="mean")
        assert high > low

    def test_too_few_answers_give_the_whole_scale(self):
        seen = rated(12)
        low, high = error_band(Fixed(OFF), seen).interval([0, 1], [0, 1], level=0.99)
        assert (low.tolist(), high.tolist()) == ([-3, -3], [3, 3])

    @pytest.mark.parametrize(
        ("settings", "words"), [({"level": 1.0}, "between 0 and 1"), ({"of": "truth"}, "'answer'")]
    )
    def test_bad_settings_are_refused(self, seen, settings, words):
        band = error_band(SoftImpute(2.0), seen, scheme="holdout")
        with pytest.raises(InvalidInput, match=words):
            band.interval(0, 0, **settings)
