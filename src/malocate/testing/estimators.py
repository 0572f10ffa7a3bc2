"""What every estimator must do: a class of checks to derive from."""

from __future__ import annotations

import copy
import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from malocate.errors import InvalidInput
from malocate.estimators.base import Completion, Estimator
from malocate.problem import Observations
from malocate.sources import Synthetic
from malocate.testing.settings import SettingsChecks

Floats = npt.NDArray[np.float64]

SHAPE = (14, 9)
N_ANSWERS = 260
LABELS = [f"row {i}" for i in range(SHAPE[0])], [f"column {j}" for j in range(SHAPE[1])]


class EstimatorChecks(SettingsChecks):
    """What any estimator must do; derive from it, name the class `Test…` and set `estimator`.

    The flags say what else the estimator promises, and switch on the checks of it:

    `convex`: the fit solves a convex problem to the relative accuracy `estimator.tol`, so that a
    start changes `objective` by no more than that.

    `by_means`: the fit sees an entry's answers through their number and their mean alone, so
    that answers of 3 and 5 are worth two answers of 4. Off for fits that read the noise off
    repeated answers.

    `learns`: an easy matrix of low rank is learned better than by calling every cell zero.

    >>> from malocate import ProjectedLeastSquares
    >>> class TestProjected(EstimatorChecks):
    ...     estimator = ProjectedLeastSquares(rank=2)
    >>> TestProjected().test_one_answer_is_enough()
    """

    estimator: Estimator
    convex = False
    by_means = True
    learns = True

    def make(self) -> Estimator:
        """Give the estimator to check; override it where a class attribute will not do."""
        return self.estimator

    def objective(self, done: Completion) -> float:
        """Give the value that a convex fit minimised; override it if the memory lacks it."""
        return float(done.memory["objective"])

    # what comes back

    def test_the_completion_is_finite_and_has_the_shape_of_the_matrix(self) -> None:
        done = self.make().fit(low_rank_answers())
        assert isinstance(done, Completion)
        _check_completion(done, SHAPE)

    def test_labels_are_carried(self) -> None:
        done = self.make().fit(low_rank_answers(labels=LABELS))
        assert done.labels == (tuple(LABELS[0]), tuple(LABELS[1]))

    def test_a_clipped_completion_stays_inside_its_scale(self) -> None:
        source = Synthetic.ratings(SHAPE, rank=2, noise=1.0, rng=0)
        done = self.make().fit(source.observe(N_ANSWERS))
        _check_completion(done, SHAPE)
        assert done.clip in (None, (1.0, 5.0))

    def test_the_completion_survives_a_file_and_a_pickle(self) -> None:
        done = self.make().fit(low_rank_answers())
        with tempfile.TemporaryDirectory() as folder:
            done.save(Path(folder) / "done.npz")
            loaded = Completion.load(Path(folder) / "done.npz")
        for again in (loaded, pickle.loads(pickle.dumps(done))):
            np.testing.assert_array_equal(again.dense(), done.dense())
            np.testing.assert_equal(dict(again.memory), dict(done.memory))
            assert again.status is done.status

    def test_the_memory_has_the_same_words_for_every_fit(self) -> None:
        answers = low_rank_answers()
        done = self.make().fit(answers)
        for few in (0, 1, N_ANSWERS // 2):
            start = self.make().fit(answers.take(slice(0, few)))
            assert set(start.memory) == set(done.memory)
            assert set(self.make().fit(answers, start=start).memory) == set(done.memory)

    def test_an_easy_matrix_is_learned(self) -> None:
        if not self.learns:
            return
        source = Synthetic.low_rank((30, 20), rank=1, noise=0.1, rng=5)
        done = self.make().fit(source.observe(1800, rng=6))
        error = np.mean((done.dense() - source.truth) ** 2)
        assert error < 0.5 * np.mean(source.truth**2)

    # what may not matter

    def test_the_same_answers_give_the_same_completion(self) -> None:
        estimator, answers = self.make(), low_rank_answers()
        first = estimator.fit(answers).dense()
        estimator.fit(low_rank_answers(rng=9))
        np.testing.assert_array_equal(estimator.fit(answers).dense(), first)
        np.testing.assert_array_equal(copy.deepcopy(estimator).fit(answers).dense(), first)

    def test_the_order_of_the_answers_changes_nothing(self) -> None:
        answers = low_rank_answers()
        order = np.random.default_rng(1).permutation(len(answers))
        shuffled = Observations(
            answers.rows[order], answers.cols[order], answers.values[order], shape=SHAPE
        )
        _check_close(self.make().fit(shuffled), self.make().fit(answers))

    def test_repeated_answers_are_worth_their_mean_twice(self) -> None:
        if not self.by_means:
            return
        answers, apart = low_rank_answers(), np.where(np.arange(N_ANSWERS) % 3, 0.25, 1.0)
        rows, cols = np.repeat(answers.rows, 2), np.repeat(answers.cols, 2)
        values = np.repeat(answers.values, 2)
        spread = values + np.tile([1.0, -1.0], N_ANSWERS) * np.repeat(apart, 2)
        done, expected = (
            self.make().fit(Observations(rows, cols, each, shape=SHAPE))
            for each in (spread, values)
        )
        _check_close(done, expected, tol=1e-6)

    def test_an_entry_that_is_answered_often_pulls_harder(self) -> None:
        answers, far = low_rank_answers(), 10.0
        once, often = (
            self.make().fit(
                Observations(
                    np.append(answers.rows, times * [3]),
                    np.append(answers.cols, times * [4]),
                    np.append(answers.values, times * [far]),
                    shape=SHAPE,
                )
            )
            for times in (1, 60)
        )
        misses = [abs(far - done.predict(3, 4).item()) for done in (once, often)]
        assert misses[1] <= misses[0] + 1e-6 * far

    def test_float32_answers_give_the_same_completion_to_three_digits(self) -> None:
        answers = low_rank_answers()
        values = answers.values.astype(np.float32)
        single = self.make().fit(Observations(answers.rows, answers.cols, values, shape=SHAPE))
        _check_close(single, self.make().fit(answers), tol=1e-3)

    def test_draw_numbers_and_equal_probabilities_change_nothing(self) -> None:
        answers = low_rank_answers()
        numbered = Observations(
            answers.rows,
            answers.cols,
            answers.values,
            shape=SHAPE,
            draws=np.arange(N_ANSWERS) * 3 + 7,
            probability=np.full(N_ANSWERS, 1 / np.prod(SHAPE)),
        )
        _check_close(self.make().fit(numbered), self.make().fit(answers))

    def test_nothing_given_is_changed(self) -> None:
        given = low_rank_answers()
        arrays = [np.array(each) for each in (given.rows, given.cols, given.values)]
        answers = Observations(*arrays, shape=SHAPE)
        start = self.make().fit(answers)
        before = start.dense()
        self.make().fit(answers, start=start)
        assert answers == given
        for array, original in zip(arrays, (given.rows, given.cols, given.values), strict=True):
            np.testing.assert_array_equal(array, original)
        np.testing.assert_array_equal(start.dense(), before)

    # starts

    def test_a_start_is_welcome(self) -> None:
        answers = low_rank_answers()
        for start in _starts(self.make(), answers):
            _check_completion(self.make().fit(answers, start=start), SHAPE)

    def test_a_start_changes_a_convex_fit_by_no_more_than_tol(self) -> None:
        if not self.convex:
            return
        estimator, answers = self.make(), low_rank_answers()
        tol: float = estimator.tol  # type: ignore[attr-defined]
        cold = self.objective(estimator.fit(answers))
        for start in _starts(estimator, answers):
            warm = self.objective(estimator.fit(answers, start=start))
            assert abs(warm - cold) <= tol * max(abs(warm), abs(cold))

    def test_a_start_of_another_shape_is_refused_with_both_shapes(self) -> None:
        other = Completion(np.ones((SHAPE[1], 1)), np.ones((SHAPE[0], 1)))
        try:
            self.make().fit(low_rank_answers(), start=other)
        except InvalidInput as refusal:
            assert str(SHAPE) in str(refusal)
            assert str(other.shape) in str(refusal)
        else:
            raise AssertionError(f"a start of shape {other.shape} was taken for {SHAPE}")

    # little to go by

    def test_lines_without_answers_are_completed(self) -> None:
        answers = low_rank_answers()
        seen = (answers.rows != 2) & (answers.cols != 5) & (answers.cols != 6)
        _check_completion(self.make().fit(answers.take(seen)), SHAPE)

    def test_cells_that_cannot_be_asked_count_in_no_loss(self) -> None:
        mask = np.zeros(SHAPE, dtype=bool)
        mask[3:6, 2:4] = mask[8] = True
        answers = low_rank_answers()
        askable = ~mask[answers.rows, answers.cols]
        kept = [each[askable] for each in (answers.rows, answers.cols, answers.values)]
        masked = self.make().fit(Observations(*kept, shape=SHAPE, mask=mask))
        unseen = self.make().fit(Observations(*kept, shape=SHAPE))  # the same, merely not asked
        _check_completion(masked, SHAPE)
        _check_close(masked, unseen, where=~mask)

    def test_one_answer_is_enough(self) -> None:
        for scale in (None, (1.0, 5.0)):
            answer = Observations([1], [2], [4.0], shape=(3, 4), scale=scale)
            done = self.make().fit(answer)
            _check_completion(done, (3, 4))
            assert np.abs(done.dense()).max() <= 8.0

    def test_no_answer_gives_the_middle_of_the_scale_or_zero(self) -> None:
        for scale, middle in ((None, 0.0), ((1.0, 5.0), 3.0)):
            done = self.make().fit(Observations([], [], [], shape=(3, 4), scale=scale))
            np.testing.assert_array_equal(done.dense(), np.full((3, 4), middle))

    def test_answers_after_none_can_start_from_that(self) -> None:
        start = self.make().fit(low_rank_answers().take(slice(0, 0)))
        _check_completion(self.make().fit(low_rank_answers(), start=start), SHAPE)

    def test_answers_that_are_all_the_same_do_not_blow_up(self) -> None:
        answers = low_rank_answers()
        for level in (0.0, 3.0, -1e6, 1e-6):
            same = np.full(N_ANSWERS, level)
            done = self.make().fit(Observations(answers.rows, answers.cols, same, shape=SHAPE))
            _check_completion(done, SHAPE)
            assert np.abs(done.dense()).max() <= 2 * abs(level)

    def test_any_shape_is_completed(self) -> None:
        rng = np.random.default_rng(3)
        for shape in ((1, 1), (1, 12), (12, 1), (2, 30), (30, 2), (5, 5)):
            rows, cols = (rng.integers(side, size=20) for side in shape)
            answers = Observations(rows, cols, rng.normal(3.0, 1.0, 20), shape=shape)
            done = self.make().fit(answers)
            _check_completion(done, shape)
            _check_completion(self.make().fit(answers, start=done), shape)


def low_rank_answers(*, rng: int = 4, labels: Any = None) -> Observations:
    """Give 260 noisy answers, repeats among them, on a matrix of 14 by 9 and rank 2.

    >>> low_rank_answers().shape
    (14, 9)
    """
    answers = Synthetic.low_rank(SHAPE, rank=2, noise=0.2, rng=3).observe(N_ANSWERS, rng=rng)
    if labels is None:
        return answers
    return Observations(answers.rows, answers.cols, answers.values, shape=SHAPE, labels=labels)


def _starts(estimator: Estimator, answers: Observations) -> list[Completion]:
    """Give its own fit, a fit to half of the answers, a wild matrix and an empty one."""
    rng, (d1, d2) = np.random.default_rng(8), SHAPE
    return [
        estimator.fit(answers),
        estimator.fit(answers.take(slice(0, N_ANSWERS // 2))),
        Completion(rng.normal(0, 3, (d1, 4)), rng.normal(0, 3, (d2, 4))),
        Completion(np.zeros((d1, 0)), np.zeros((d2, 0))),
    ]


def _check_completion(done: Completion, shape: tuple[int, int]) -> None:
    assert done.shape == shape
    assert np.isfinite(done.dense()).all()
    assert 0 <= done.rank <= min(shape)


def _check_close(
    one: Completion, two: Completion, *, tol: float = 1e-9, where: Any = slice(None)
) -> None:
    scale = np.abs(two.dense()).max()
    np.testing.assert_allclose(one.dense()[where], two.dense()[where], rtol=0, atol=tol * scale)
