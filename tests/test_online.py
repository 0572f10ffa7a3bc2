"""OnlineLeastSquares: new answers alone move the fit, at a cost that the past does not raise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from malocate import (
    Completion,
    InvalidInput,
    InvalidType,
    LowRankLeastSquares,
    Observations,
    OnlineLeastSquares,
    ProjectedLeastSquares,
    SoftImpute,
    Status,
    Synthetic,
)
from malocate.estimators.centring import fit_centre
from malocate.estimators.streaming import Watch
from malocate.problem import Entries


def error(done, truth):
    return float(np.mean((done.dense() - truth) ** 2))


def streamed(stream, answers, cuts):
    done = None
    for cut in cuts:
        done = stream.fit(answers.take(slice(0, cut)), start=done)
    return done


@dataclass(frozen=True)
class Given:
    """A first fit that is given: what the stream makes of it can then be computed by hand."""

    left: tuple
    right: tuple
    centre: str = "none"

    def fit(self, observations, *, start=None):
        centre = fit_centre(observations.entries, self.centre)
        return Completion(np.array(self.left), np.array(self.right), centre)


@pytest.mark.parametrize(
    ("source", "first", "last"),
    [
        (Synthetic.low_rank((60, 60), rank=3, noise=0.1, rng=1), 2000, 8000),
        (Synthetic.low_rank((60, 60), rank=3, noise=1.0, rng=2), 3000, 9000),
        (Synthetic.low_rank((40, 100), rank=2, noise=0.3, rng=3), 1500, 6000),
        (Synthetic.ratings((60, 50), rank=2, noise=0.7, rng=4), 1500, 6000),
    ],
    ids=["clean", "noisy", "wide", "ratings"],
)
def test_a_stream_ends_near_the_batch_fit(source, first, last):
    answers = source.observe(last, rng=5)
    done = streamed(OnlineLeastSquares(), answers, np.linspace(first, last, 25, dtype=int))
    batch = LowRankLeastSquares(rank=done.rank).fit(answers)
    assert error(done, source.truth) < 1.25 * error(batch, source.truth)
    assert done.status is Status.UPDATED


def test_answers_one_at_a_time_do_as_well_as_in_batches():
    source = Synthetic.low_rank((30, 20), rank=2, noise=0.2, rng=0)
    answers, stream = source.observe(1500, rng=1), OnlineLeastSquares(rank=2)
    single = streamed(stream, answers, [1000, *range(1001, 1501)])
    at_once = streamed(stream, answers, [1000, 1500])
    assert error(single, source.truth) < 1.15 * error(at_once, source.truth)
    assert error(at_once, source.truth) < error(
        stream.fit(answers.take(slice(0, 1000))), source.truth
    )


def test_a_poor_beginning_is_overcome():
    source = Synthetic.low_rank((60, 60), rank=3, noise=0.1, rng=6)
    answers = source.observe(9000, rng=7)
    stream = OnlineLeastSquares(rank=3)
    begun = stream.fit(answers.take(slice(0, 500)))
    done = streamed(stream, answers, np.linspace(500, 9000, 40, dtype=int))
    assert error(begun, source.truth) > 100 * error(done, source.truth)


def test_with_one_side_known_it_is_the_exact_regression():
    """A column's features never move when it is certain, so rows must solve ridge regressions."""
    rng = np.random.default_rng(0)
    features = rng.standard_normal((200, 2))
    rows, cols = rng.integers(3, size=4000), rng.integers(200, size=4000)
    weights = rng.standard_normal((3, 2))
    values = (weights[rows] * features[cols]).sum(axis=1) + 0.5 * rng.standard_normal(4000)
    answers = Observations(rows, cols, values, shape=(3, 200))
    first = Given(tuple(map(tuple, weights)), tuple(map(tuple, features)))
    done = streamed(OnlineLeastSquares(batch=first), answers, [2000, 3000, 4000])
    expected = [np.linalg.lstsq(features[cols[rows == i]], values[rows == i])[0] for i in range(3)]
    truth = weights @ features.T
    assert error(done, truth) < 1.5 * np.mean((np.array(expected) @ features.T - truth) ** 2) + 0.05


def test_only_the_new_answers_are_read():
    source = Synthetic.low_rank((20, 15), rank=2, noise=0.2, rng=0)
    answers, stream = source.observe(900, rng=1), OnlineLeastSquares(rank=2)
    begun = stream.fit(answers.take(slice(0, 600)))
    rng = np.random.default_rng(2)
    nonsense = Observations(
        np.append(rng.integers(20, size=600), answers.rows[600:]),
        np.append(rng.integers(15, size=600), answers.cols[600:]),
        np.append(1e3 * rng.standard_normal(600), answers.values[600:]),
        shape=(20, 15),
    )
    done, again = stream.fit(answers, start=begun), stream.fit(nonsense, start=begun)
    np.testing.assert_array_equal(done.dense(), again.dense())
    assert np.abs(done.dense() - begun.dense()).max() > 1e-6


def test_the_work_of_an_update_does_not_grow_with_the_past(monkeypatch):
    grouped, original = [], Entries.from_answers.__func__

    def counted(cls, rows, *others, **more):
        grouped.append(len(rows))
        return original(cls, rows, *others, **more)

    answers = Synthetic.low_rank((20, 15), rank=2, noise=0.2, rng=0).observe(5000, rng=1)
    stream, done, sizes = OnlineLeastSquares(rank=2), None, []
    done = stream.fit(answers.take(slice(0, 500)))
    monkeypatch.setattr(Entries, "from_answers", classmethod(counted))
    for cut in range(600, 5001, 100):
        done = stream.fit(answers.take(slice(0, cut)), start=done)
        sizes.append(sum(np.size(value) for value in done.memory.values()))
    assert set(grouped) == {100}
    assert len(set(sizes)) == 1


def test_draw_numbers_decide_what_is_new():
    source = Synthetic.low_rank((20, 15), rank=2, noise=0.2, rng=0)
    answers, stream = source.observe(900, rng=1), OnlineLeastSquares(rank=2)
    begun = stream.fit(answers.take(slice(0, 600)))
    assert begun.memory["next_draw"] == 600
    done = stream.fit(answers, start=begun)
    assert done.memory["next_draw"] == done.memory["answers"] == 900
    later = stream.fit(answers.take(slice(600, 900)), start=begun)
    np.testing.assert_array_equal(later.dense(), done.dense())
    order = np.random.default_rng(3).permutation(900)
    shuffled = stream.fit(answers.take(order), start=begun)
    np.testing.assert_array_equal(shuffled.dense(), done.dense())


def test_nothing_new_changes_nothing():
    answers = Synthetic.low_rank((20, 15), rank=2, noise=0.2, rng=0).observe(600, rng=1)
    stream = OnlineLeastSquares(rank=2)
    begun = stream.fit(answers)
    for same in (answers, answers.take(slice(0, 0)), answers.take(slice(0, 100))):
        done = stream.fit(same, start=begun)
        np.testing.assert_array_equal(done.dense(), begun.dense())
        assert done.memory["next_draw"] == 600


def test_untouched_lines_stay_where_they_are():
    answers = Synthetic.low_rank((20, 15), rank=2, noise=0.2, rng=0).observe(600, rng=1)
    stream = OnlineLeastSquares(batch=ProjectedLeastSquares(rank=2))
    begun = stream.fit(answers)
    more = Observations([3], [4], [2.0], shape=(20, 15), draws=[600])
    done = stream.fit(more, start=begun)
    moved = done.dense() != begun.dense()
    moved[3] = moved[:, 4] = False
    assert not moved.any()
    assert abs(2.0 - done.predict(3, 4)) < abs(2.0 - begun.predict(3, 4))


def test_a_stream_goes_on_from_a_file(tmp_path):
    answers = Synthetic.low_rank((20, 15), rank=2, noise=0.2, rng=0).observe(900, rng=1)
    stream = OnlineLeastSquares(rank=2)
    begun = stream.fit(answers.take(slice(0, 600)))
    begun.save(tmp_path / "begun.npz")
    done = stream.fit(answers, start=Completion.load(tmp_path / "begun.npz"))
    np.testing.assert_array_equal(done.dense(), stream.fit(answers, start=begun).dense())


@pytest.mark.parametrize("batch", [SoftImpute(penalty=1.0), ProjectedLeastSquares()])
def test_any_estimator_can_begin(batch):
    source = Synthetic.low_rank((30, 20), rank=2, noise=0.2, rng=0)
    answers, stream = source.observe(3000, rng=1), OnlineLeastSquares(batch=batch)
    begun = stream.fit(answers.take(slice(0, 1000)))
    first = batch.fit(answers.take(slice(0, 1000)))
    np.testing.assert_allclose(begun.dense(), first.dense(), atol=1e-9)
    done = streamed(stream, answers, range(1000, 3001, 200))
    assert error(done, source.truth) < error(begun, source.truth)


def test_another_estimators_completion_is_a_start_for_the_batch_fit():
    answers = Synthetic.low_rank((20, 15), rank=2, noise=0.2, rng=0).observe(600, rng=1)
    start = SoftImpute(penalty=1.0).fit(answers.take(slice(0, 100)))
    stream = OnlineLeastSquares(batch=SoftImpute(penalty=1.0, tol=1e-6))
    np.testing.assert_allclose(
        stream.fit(answers, start=start).dense(), stream.fit(answers).dense(), atol=1e-2
    )


def test_row_and_column_effects_are_learned_on():
    rng = np.random.default_rng(4)
    truth = 3 + np.add.outer(rng.standard_normal(30), rng.standard_normal(20))
    rows, cols = rng.integers(30, size=4000), rng.integers(20, size=4000)
    values = truth[rows, cols] + 0.5 * rng.standard_normal(4000)
    answers = Observations(rows, cols, values, shape=(30, 20))
    first = Given(((),) * 30, ((),) * 20, centre="additive")
    done = streamed(OnlineLeastSquares(batch=first), answers, range(500, 4001, 500))
    batch = fit_centre(answers.entries, "additive")
    expected = np.mean((batch.at(np.arange(30)[:, None], np.arange(20)) - truth) ** 2)
    assert error(done, truth) < 1.3 * expected


def test_a_constant_is_learned_on():
    first = Given(((),) * 2, ((),) * 2, centre="mean")
    answers = Observations([0, 1, 0, 1], [0, 1, 1, 0], [2.0, 4.0, 6.0, 8.0], shape=(2, 2))
    done = streamed(OnlineLeastSquares(batch=first), answers, [2, 3, 4])
    np.testing.assert_allclose(done.dense(), 5.0)


def test_exact_answers_do_not_break_the_recursion():
    source = Synthetic.low_rank((20, 15), rank=2, noise=0.0, rng=0)
    answers = source.observe(3000, rng=1)
    stream = OnlineLeastSquares(batch=ProjectedLeastSquares(rank=2))
    begun = stream.fit(answers.take(slice(0, 600)))
    done = streamed(stream, answers, range(600, 3001, 100))
    assert error(done, source.truth) < 0.1 * error(begun, source.truth)


def test_the_watch_waits_for_evidence_and_then_doubts_the_past():
    rng = np.random.default_rng(0)

    def judged(watch, spread, n=400):
        cells = rng.integers(50, size=n)
        entries = Entries.from_answers(cells, cells, rng.standard_normal(n), shape=(50, 50))
        misses = spread * rng.standard_normal(len(entries)) / np.sqrt(entries.visits)
        return watch.judge(entries, misses, np.full(len(entries), 0.01))

    watch = Watch()
    for _ in range(50):
        watch, share = judged(watch, spread=1.0)
        assert share == 1.0
    shares = []
    for _ in range(50):
        watch, share = judged(watch, spread=2.0)
        shares.append(share)
    assert min(shares) < 0.2


def test_without_repeats_the_past_is_never_doubted():
    entries = Entries.from_answers([0, 1], [0, 1], [9.0, -9.0], shape=(2, 2))
    assert Watch().judge(entries, np.array([9.0, -9.0]), np.zeros(2))[1] == 1.0


@pytest.mark.parametrize(
    ("settings", "refusal", "words"),
    [
        ({"rank": -1}, InvalidInput, "rank is -1; it must be at least 0, or 'auto'."),
        ({"rank": 2.0}, InvalidType, "rank is 2.0; it must be a whole number or 'auto'."),
        ({"rank": "lepski"}, InvalidType, "rank is 'lepski'; it must be a whole number or 'auto'."),
        ({"rank": 2, "batch": SoftImpute()}, InvalidInput, "give one of the two"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, refusal, words):
    with pytest.raises(refusal, match=words):
        OnlineLeastSquares(**settings)


def test_answers_are_learned_after_a_single_one():
    rng = np.random.default_rng(0)
    rows, cols = (rng.integers(side, size=400) for side in (12, 9))
    table = 3 + np.add.outer(rng.normal(size=12), rng.normal(size=9))
    answers = Observations(rows, cols, table[rows, cols], shape=table.shape)
    stream = OnlineLeastSquares(batch=ProjectedLeastSquares(rank=1, centre="additive"))
    done = stream.fit(answers, start=stream.fit(answers.take(slice(0, 1))))
    assert ((done.dense() - table) ** 2).mean() < 0.05 * table.var()
