"""ProjectedLeastSquares: entry means, cut at Lepski's rank."""

from __future__ import annotations

import numpy as np
import pytest

from malocate import (
    InvalidInput,
    InvalidType,
    Observations,
    ProjectedLeastSquares,
    Status,
    Synthetic,
    TooLarge,
)
from malocate.estimators import base
from malocate.estimators.projected import lepski_rank, operator_bound


def error(done, truth):
    return float(np.mean((done.dense() - truth) ** 2))


def entry_means(observations):
    entries, means = observations.entries, np.zeros(observations.shape)
    means[entries.rows, entries.cols] = entries.means
    return means


def lepski_by_hand(values, bound):
    """The rule as it is stated: every larger rank is compared."""
    for rank in range(len(values)):
        larger = range(rank + 1, len(values) + 1)
        if all((values[rank:r] ** 2).sum() <= (r - rank) * bound**2 for r in larger):
            return rank
    return len(values)


@pytest.mark.parametrize("seed", range(5))
def test_counting_large_values_is_lepskis_choice(seed):
    rng = np.random.default_rng(seed)
    values = np.sort(rng.exponential(size=8))[::-1]
    for bound in (0.1, 0.5, 1.0, 5.0):
        assert lepski_rank(values, bound) == lepski_by_hand(values, bound)


@pytest.mark.parametrize("rank", [0, 1, 4, 12, 99])
def test_a_given_rank_is_the_truncated_decomposition(rank):
    seen = Synthetic.low_rank((15, 12), rank=3, noise=0.5, rng=1).observe(1800)
    assert seen.share_seen == 1
    u, values, vt = np.linalg.svd(entry_means(seen), full_matrices=False)
    done = ProjectedLeastSquares(rank=rank).fit(seen)
    assert done.rank == min(rank, 12)
    np.testing.assert_allclose(done.dense(), (u[:, :rank] * values[:rank]) @ vt[:rank], atol=1e-12)


@pytest.mark.parametrize(
    ("shape", "rank", "noise"), [((60, 60), 4, 1.0), ((40, 120), 6, 0.3), ((120, 30), 1, 2.0)]
)
@pytest.mark.parametrize("seed", range(4))
def test_lepski_finds_the_rank_of_a_clear_signal(shape, rank, noise, seed):
    source = Synthetic.low_rank(shape, rank, noise, rng=seed)
    done = ProjectedLeastSquares().fit(source.observe(10 * shape[0] * shape[1], rng=seed))
    assert done.rank == rank
    assert done.memory["noise_variance"] == pytest.approx(noise**2, rel=0.1)


def test_lepski_finds_nothing_in_pure_noise():
    ranks = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows, cols = rng.integers(30, size=3000), rng.integers(20, size=3000)
        seen = Observations(rows, cols, rng.standard_normal(3000), shape=(30, 20))
        ranks.append(ProjectedLeastSquares().fit(seen).rank)
    assert ranks == [0] * 20


def test_the_bound_holds_for_uneven_noise_and_is_not_far_above_it():
    rng, largest, bounds = np.random.default_rng(0), [], []
    for _ in range(50):
        visits = rng.poisson(4, size=(50, 80)) + 1
        visits[:10] *= 5
        noise = rng.standard_normal(visits.shape) / np.sqrt(visits)
        largest.append(np.linalg.norm(noise, 2))
        bounds.append(operator_bound(1 / visits))
    assert np.less(largest, bounds).all()
    assert np.mean(bounds) < 1.4 * np.mean(largest)


def test_lepski_is_nearly_as_good_as_the_best_rank():
    ratios = []
    for seed in range(6):
        source = Synthetic.decaying((60, 60), exponent=1.0, noise=2.0, rng=seed)
        seen = source.observe(20 * 3600, rng=seed)
        best = min(error(ProjectedLeastSquares(rank=r).fit(seen), source.truth) for r in range(20))
        ratios.append(error(ProjectedLeastSquares().fit(seen), source.truth) / best)
    assert np.mean(ratios) < 1.15


def test_more_answers_bring_the_error_to_the_limit_of_information():
    source = Synthetic.low_rank((80, 80), rank=4, noise=1.0, rng=3)
    for times in (10, 40):
        n = times * 6400
        limit = 4 * (80 + 80 - 4) / n
        done = ProjectedLeastSquares().fit(source.observe(n, rng=4))
        assert 0.7 * limit < error(done, source.truth) < 1.5 * limit


def test_without_repeats_the_noise_is_read_off_the_spectrum():
    source = Synthetic.low_rank((60, 50), rank=3, noise=0.2, rng=0)
    noisy = source.truth + 0.2 * np.random.default_rng(1).standard_normal((60, 50))
    done = ProjectedLeastSquares().fit(Observations.from_dense(noisy))
    assert done.rank == 3
    assert done.memory["noise_variance"] == pytest.approx(0.04, rel=0.2)


def test_exact_answers_are_given_back():
    truth = Synthetic.low_rank((12, 9), rank=2, rng=5).truth
    done = ProjectedLeastSquares().fit(Observations.from_dense(truth))
    assert done.rank == 2
    np.testing.assert_allclose(done.dense(), truth, atol=1e-12)
    assert done.status is Status.CLOSED_FORM


def test_a_line_of_answers_is_taken_as_it_is():
    done = ProjectedLeastSquares().fit(Observations.from_dense([[1.0, 2.0, 4.0]]))
    np.testing.assert_allclose(done.dense(), [[1.0, 2.0, 4.0]])


@pytest.mark.parametrize(("times", "noise"), [(3, 0.1), (1, 0.1), (0.6, 0.1), (1, 1.0)])
def test_unseen_cells_are_filled_by_the_fit(times, noise):
    source = Synthetic.low_rank((100, 100), rank=3, noise=noise, rng=0)
    n = int(times * 10_000)
    done = ProjectedLeastSquares().fit(source.observe(n, rng=1))
    assert done.rank == 3
    assert done.status is Status.CONVERGED
    assert error(done, source.truth) < 2 * noise**2 * 3 * (100 + 100 - 3) / n


def test_a_filled_fit_is_a_stationary_point_of_the_misses_at_seen_cells():
    seen = Synthetic.low_rank((20, 15), rank=2, noise=0.2, rng=0).observe(400, rng=1)
    done = ProjectedLeastSquares(rank=2, tol=1e-10, max_steps=5000).fit(seen)
    entries, residual = seen.entries, np.zeros((20, 15))
    residual[entries.rows, entries.cols] = entries.means - done.predict(entries.rows, entries.cols)
    assert len(entries) < 300
    np.testing.assert_allclose(residual @ done.right, 0, atol=1e-6)
    np.testing.assert_allclose(residual.T @ done.left, 0, atol=1e-6)


def test_with_next_to_no_answers_it_gives_the_centre():
    source = Synthetic.low_rank((100, 100), rank=5, noise=0.1, rng=0)
    assert ProjectedLeastSquares().fit(source.observe(800, rng=1)).rank == 0


def test_the_step_limit_is_told():
    seen = Synthetic.low_rank((20, 15), rank=2, noise=0.2, rng=0).observe(400, rng=1)
    done = ProjectedLeastSquares(rank=2, max_steps=2).fit(seen)
    assert done.status is Status.OUT_OF_STEPS
    assert done.memory["steps"] == 2


def test_additive_answers_leave_no_rank_above_the_centre():
    truth = np.add.outer(np.arange(10.0), np.arange(8.0))
    rng = np.random.default_rng(0)
    rows, cols = rng.integers(10, size=1500), rng.integers(8, size=1500)
    values = truth[rows, cols] + 0.1 * rng.standard_normal(1500)
    done = ProjectedLeastSquares(centre="additive").fit(
        Observations(rows, cols, values, shape=truth.shape)
    )
    assert done.rank == 0
    assert error(done, truth) < 1e-3


def test_a_declared_scale_is_kept():
    source = Synthetic.ratings((20, 15), rank=2, noise=0.5, rng=0)
    done = ProjectedLeastSquares(rank=4).fit(source.observe(3000))
    assert done.clip == (1, 5)
    assert done.dense().min() >= 1
    assert done.dense().max() <= 5


def test_a_matrix_too_large_to_be_dense_is_refused(monkeypatch):
    monkeypatch.setattr(base, "DENSE_LIMIT", 5)
    words = r"shape \(2, 3\) has 6 cells, more than the limit of 5; use LowRankLeastSquares"
    with pytest.raises(TooLarge, match=words):
        ProjectedLeastSquares().fit(Observations([0], [0], [1.0], shape=(2, 3)))


@pytest.mark.parametrize(
    ("settings", "refusal", "words"),
    [
        ({"rank": -1}, InvalidInput, "rank is -1; it must be at least 0, or 'lepski'."),
        ({"rank": 2.0}, InvalidType, "rank is 2.0; it must be a whole number or 'lepski'."),
        ({"rank": True}, InvalidType, "rank is True; it must be a whole number"),
        ({"rank": "auto"}, InvalidType, "rank is 'auto'; it must be a whole number or 'lepski'."),
        ({"tol": 0.0}, InvalidInput, "tol is 0.0; it must lie between 0 and 1."),
        ({"max_steps": 0}, InvalidInput, "max_steps is 0; it must be at least 1."),
        ({"max_steps": 1.5}, InvalidType, "max_steps is 1.5; it must be a whole number."),
        ({"centre": "rows"}, InvalidInput, "centre is 'rows'; it must be 'none', 'mean' or"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, refusal, words):
    with pytest.raises(refusal, match=words):
        ProjectedLeastSquares(**settings)
