"""The checks that any estimator must pass, applied to ours, and to bad ones that must fail."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, replace
from typing import get_args

import numpy as np
import pytest

from malocate import (
    Completion,
    InvalidInput,
    LowRankLeastSquares,
    OnlineLeastSquares,
    ProjectedLeastSquares,
    SoftImpute,
    SquareRootLasso,
)
from malocate.estimators.base import check_start, empty_completion
from malocate.estimators.centring import Centre, CentreKind
from malocate.testing import EstimatorChecks
from malocate.testing.estimators import low_rank_answers


class TestSoftImpute(EstimatorChecks):
    estimator = SoftImpute(penalty=1.0)
    convex = True


class TestSoftImputeUniversal(EstimatorChecks):
    estimator = SoftImpute(centre="additive")
    by_means = False


class TestSoftImputeClipped(EstimatorChecks):
    estimator = SoftImpute(penalty=1.0, clip=True)
    convex = True


class TestSquareRootLasso(EstimatorChecks):
    estimator = SquareRootLasso()
    convex = True
    by_means = False


class TestSquareRootLassoClipped(EstimatorChecks):
    estimator = SquareRootLasso(C=0.5, box="clip", centre="mean")
    by_means = False


class TestProjectedLeastSquares(EstimatorChecks):
    estimator = ProjectedLeastSquares()
    by_means = False


class TestProjectedLeastSquaresOfGivenRank(EstimatorChecks):
    estimator = ProjectedLeastSquares(rank=2, centre="mean")


class TestLowRankLeastSquares(EstimatorChecks):
    estimator = LowRankLeastSquares()


class TestLowRankLeastSquaresOfGivenSettings(EstimatorChecks):
    estimator = LowRankLeastSquares(rank=2, ridge=0.1, centre="mean")


class TestOnlineLeastSquares(EstimatorChecks):
    estimator = OnlineLeastSquares()


class TestOnlineLeastSquaresAfterAnother(EstimatorChecks):
    estimator = OnlineLeastSquares(batch=ProjectedLeastSquares(rank=2, centre="additive"))


# checks that cannot fail are no checks: each bad estimator below breaks the one it is named by


@dataclass(frozen=True)
class Mean:
    """A sound estimator, the mean of the answers; the bad ones differ from it in one thing."""

    prior: float = 1e-9

    def fit(self, observations, *, start=None):
        check_start(observations, start)
        if len(observations) == 0:
            return empty_completion(observations)
        return self.constant(observations, self.level(observations))

    def level(self, observations):
        entries = observations.entries
        return entries.visits @ entries.means / (len(observations) + self.prior)

    def constant(self, observations, level):
        left, right = (np.zeros((side, 0)) for side in observations.shape)
        return Completion(left, right, Centre(level), labels=observations.labels)


class TestMean(EstimatorChecks):
    estimator = Mean()
    learns = False


@dataclass(frozen=True)
class Turned(Mean):
    def constant(self, observations, level):
        done = super().constant(observations, level)
        return Completion(done.right, done.left, done.centre)


@dataclass(frozen=True)
class ClipsToTheAnswers(Mean):
    def constant(self, observations, level):
        ends = observations.values.min(), observations.values.max() + 1
        return replace(super().constant(observations, level), clip=ends)


class Halved(Completion):
    def dense(self, *, force=False):
        return super().dense(force=force) / 2


@dataclass(frozen=True)
class GivesItsOwnKind(Mean):
    def constant(self, observations, level):
        done = super().constant(observations, level)
        return Halved(done.left, done.right, done.centre)


@dataclass(frozen=True)
class TellsLessOfLess(Mean):
    def constant(self, observations, level):
        told = {"level": level} if len(observations) > 1 else {}
        return replace(super().constant(observations, level), memory=told)


@dataclass(frozen=True)
class DropsLabels(Mean):
    def constant(self, observations, level):
        return replace(super().constant(observations, level), labels=None)


@dataclass(frozen=True)
class FirstAnswer(Mean):
    def level(self, observations):
        return observations.values[0]


@dataclass(frozen=True)
class MiddleAnswer(Mean):
    def level(self, observations):
        return np.median(observations.values)


@dataclass(frozen=True)
class SumsRepeats(Mean):
    def level(self, observations):
        entries = observations.entries
        return (entries.visits * entries.means).mean()


@dataclass(frozen=True)
class IgnoresRepeats(Mean):
    def fit(self, observations, *, start=None):
        entries = observations.entries
        done = super().fit(observations, start=start)
        if len(entries) == 0:
            return done
        often = entries.visits > 30
        return self.constant(observations, entries.means[~often].mean())


@dataclass(frozen=True)
class CountsDigits(Mean):
    def level(self, observations):
        single = (observations.values == observations.values.astype(np.float32)).all()
        return super().level(observations) * (1.0 + 0.01 * single)


@dataclass(frozen=True)
class FollowsTheDraws(Mean):
    def level(self, observations):
        return float(observations.values @ observations.draws) / observations.draws.sum()


@dataclass(frozen=True)
class DividesByProbability(Mean):
    def level(self, observations):
        given = observations.probability is not None
        return super().level(observations) / (observations.probability[0] if given else 1)


@dataclass(frozen=True)
class RoundsTheAnswers(Mean):
    def level(self, observations):
        observations.values.flags.writeable = True
        np.round(observations.values, out=observations.values)
        return super().level(observations)


@dataclass(frozen=True)
class MaskedIsZero(Mean):
    def level(self, observations):
        masked = 0 if observations.mask is None else observations.mask.sum()
        return super().level(observations) * len(observations) / (len(observations) + masked)


@dataclass(frozen=True)
class WantsMemories(Mean):
    def fit(self, observations, *, start=None):
        last = 0.0 if start is None else start.memory["level"]
        done = super().fit(observations, start=start)
        return done if len(observations) == 0 else replace(done, memory={"level": last})


@dataclass(frozen=True)
class TrustsOneAnswer(Mean):
    def level(self, observations):
        return super().level(observations) * (3.0 if len(observations) == 1 else 1.0)


@dataclass(frozen=True)
class TwoComponents(Mean):
    def constant(self, observations, level):
        left, right = (np.ones((side, 2)) for side in observations.shape)
        return Completion(left, right, Centre(level - 2), labels=observations.labels)


@dataclass(frozen=True)
class TakesAnyStart(Mean):
    def fit(self, observations, *, start=None):
        return super().fit(observations)


@dataclass(frozen=True)
class ClimbsFromStart(Mean):
    tol: float = 1e-3

    def fit(self, observations, *, start=None):
        done = super().fit(observations, start=start)
        drawn = 0.0 if start is None else start.dense().mean()
        return replace(done, memory={"objective": 1.0 + abs(drawn)})


@dataclass(frozen=True)
class FailsWithoutAnswers(Mean):
    def fit(self, observations, *, start=None):
        return self.constant(observations, observations.values[0])


@dataclass(frozen=True)
class ForgetsUnseenLines(Mean):
    def fit(self, observations, *, start=None):
        done = super().fit(observations, start=start)
        seen = np.bincount(observations.rows, minlength=observations.shape[0])
        with np.errstate(all="ignore"):
            effects = np.where(seen, 0.0, np.float64(0.0) / 0.0)
        return replace(done, centre=Centre(done.centre.offset, effects))


class Changeable:
    def __init__(self):
        self.prior = 1.0

    def __repr__(self):
        return "an estimator"

    fit = Mean.fit
    level = Mean.level
    constant = Mean.constant


class Moody:
    def __init__(self):
        self.fits = 0

    def fit(self, observations, *, start=None):
        self.fits += 1
        return Mean().constant(observations, float(self.fits))


BROKEN = [
    (Turned(), "test_the_completion_is_finite_and_has_the_shape_of_the_matrix"),
    (ClipsToTheAnswers(), "test_a_clipped_completion_stays_inside_its_scale"),
    (GivesItsOwnKind(), "test_the_completion_survives_a_file_and_a_pickle"),
    (TellsLessOfLess(), "test_the_memory_has_the_same_words_for_every_fit"),
    (CountsDigits(), "test_float32_answers_give_the_same_completion_to_three_digits"),
    (FollowsTheDraws(), "test_draw_numbers_and_equal_probabilities_change_nothing"),
    (DividesByProbability(), "test_draw_numbers_and_equal_probabilities_change_nothing"),
    (RoundsTheAnswers(), "test_nothing_given_is_changed"),
    (MaskedIsZero(), "test_cells_that_cannot_be_asked_count_in_no_loss"),
    (WantsMemories(), "test_a_start_is_welcome"),
    (WantsMemories(), "test_answers_after_none_can_start_from_that"),
    (TrustsOneAnswer(), "test_one_answer_is_enough"),
    (TwoComponents(), "test_any_shape_is_completed"),
    (Changeable(), "test_it_reads_as_its_settings"),
    (DropsLabels(), "test_labels_are_carried"),
    (FirstAnswer(), "test_the_order_of_the_answers_changes_nothing"),
    (MiddleAnswer(), "test_repeated_answers_are_worth_their_mean_twice"),
    (SumsRepeats(), "test_answers_that_are_all_the_same_do_not_blow_up"),
    (IgnoresRepeats(), "test_an_entry_that_is_answered_often_pulls_harder"),
    (TakesAnyStart(), "test_a_start_of_another_shape_is_refused_with_both_shapes"),
    (ClimbsFromStart(), "test_a_start_changes_a_convex_fit_by_no_more_than_tol"),
    (FailsWithoutAnswers(), "test_no_answer_gives_the_middle_of_the_scale_or_zero"),
    (ForgetsUnseenLines(), "test_lines_without_answers_are_completed"),
    (Changeable(), "test_settings_are_fixed_when_it_is_made"),
    (Changeable(), "test_equal_settings_are_equal_and_hash_alike"),
    (Moody(), "test_the_same_answers_give_the_same_completion"),
    (Mean(), "test_an_easy_matrix_is_learned"),
]


@pytest.mark.parametrize(("broken", "check"), BROKEN)
def test_a_broken_estimator_is_caught(broken, check):
    class Checks(EstimatorChecks):
        estimator = broken
        convex = True

    with pytest.raises((AssertionError, IndexError, KeyError, InvalidInput)):
        getattr(Checks(), check)()


def test_every_check_can_fail():
    checks = {name for name in dir(EstimatorChecks) if name.startswith("test_")}
    assert checks == {check for _, check in BROKEN}


OURS = [each for each in globals().values() if hasattr(each, "estimator")]


@pytest.mark.parametrize("checks", [each for each in OURS if each is not TestMean])
def test_ours_remember_in_the_same_words(checks):
    estimator, answers = checks.estimator, low_rank_answers()
    half = estimator.fit(answers.take(slice(0, 130)))
    for start in (None, half):
        done = estimator.fit(answers, start=start)
        assert (done.memory["answers"], type(done.memory["centre"])) == (260, str)
        assert done.memory["centre"] in get_args(CentreKind)
    nothing = estimator.fit(answers.take(slice(0, 0)))
    kinds = [{word: type(value) for word, value in each.memory.items()} for each in (nothing, half)]
    assert kinds[0] == kinds[1]
    assert nothing.memory["answers"] == 0


def test_the_checks_need_no_pytest():
    code = "import sys, malocate.testing; print('pytest' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ran.stdout.strip() == "False"
