"""The checks that any estimator must pass, applied to ours, and to bad ones that must fail."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, replace

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
from malocate.estimators.centring import Centre
from malocate.testing import EstimatorChecks


class TestSoftImpute(EstimatorChecks):
    estimator = SoftImpute(penalty=1.0)
    convex = True


class TestSoftImputeUniversal(EstimatorChecks):
    estimator = SoftImpute(centre="additive")
    by_means = False


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

    with pytest.raises((AssertionError, IndexError, InvalidInput)):
        getattr(Checks(), check)()


def test_the_checks_need_no_pytest():
    code = "import sys, malocate.testing; print('pytest' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ran.stdout.strip() == "False"
