"""SoftImpute: optimality by an independent dense duality gap, limits, rules, warm starts."""

from __future__ import annotations

import math

import cvxpy
import numpy as np
import pytest
from scipy import sparse

from malocate import (
    Completion,
    InvalidInput,
    InvalidType,
    Observations,
    SoftImpute,
    Status,
    Synthetic,
)
from malocate.estimators.convex import nuclear
from malocate.estimators.engine import gram, norms, orthogonal, spectrum, tall


def dense(observations):
    """Give visits and mean answers as full matrices."""
    entries = observations.entries
    visits, means = np.zeros(observations.shape), np.zeros(observations.shape)
    visits[entries.rows, entries.cols] = entries.visits
    means[entries.rows, entries.cols] = entries.means
    return visits, means


def objective(observations, matrix, penalty):
    visits, means = dense(observations)
    nuclear = np.linalg.svd(matrix, compute_uv=False).sum()
    return 0.5 * (visits * (means - matrix) ** 2).sum() + penalty * nuclear


def relative_gap(observations, matrix, penalty):
    """Compute the duality gap from scratch: dense matrices and a full decomposition."""
    visits, means = dense(observations)
    residual = visits * (means - matrix)
    fit, square = (residual * means).sum(), (visits * (means - matrix) ** 2).sum()
    scale = min(penalty / np.linalg.norm(residual, 2), max(fit / square, 0.0))
    dual = scale * fit - scale**2 * square / 2
    primal = objective(observations, matrix, penalty)
    return (primal - dual) / primal


CASES = [
    ((200, 200), 10, 8000, 1.26, 1e-3),
    ((60, 40), 2, 1200, 0.5, 1e-5),
    ((40, 90), 5, 700, 2.0, 1e-4),
    ((1, 30), 1, 25, 0.3, 1e-5),
    ((30, 1), 1, 25, 0.3, 1e-5),
    ((25, 25), 25, 5000, 3.0, 1e-6),
]


@pytest.mark.parametrize(("shape", "rank", "n", "penalty", "tol"), CASES)
def test_the_certified_gap_holds_by_an_independent_computation(shape, rank, n, penalty, tol):
    answers = Synthetic.low_rank(shape=shape, rank=rank, noise=0.1, rng=1).observe(n, rng=2)
    done = SoftImpute(penalty, tol=tol).fit(answers)
    true_gap = relative_gap(answers, done.dense(), penalty)
    assert done.status is Status.CONVERGED
    assert done.gap <= tol
    assert -1e-12 <= true_gap <= done.gap + 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_an_outside_solver(seed):
    source = Synthetic.low_rank(shape=(14, 20), rank=3, noise=0.2, rng=seed)
    answers = source.observe(250, rng=seed + 10)
    visits, means = dense(answers)
    matrix = cvxpy.Variable(answers.shape)
    loss = cvxpy.sum(cvxpy.multiply(visits, cvxpy.square(means - matrix))) / 2
    problem = cvxpy.Problem(cvxpy.Minimize(loss + 1.5 * cvxpy.norm(matrix, "nuc")))
    problem.solve(solver=cvxpy.CLARABEL)
    done = SoftImpute(1.5, tol=1e-7).fit(answers)
    assert objective(answers, done.dense(), 1.5) == pytest.approx(problem.value, rel=1e-6)
    np.testing.assert_allclose(done.dense(), matrix.value, atol=2e-3)


def test_a_penalty_at_the_operator_norm_gives_zero():
    answers = Synthetic.low_rank(shape=(30, 20), rank=2, rng=0).observe(200, rng=1)
    visits, means = dense(answers)
    limit = np.linalg.norm(visits * means, 2)
    assert SoftImpute(limit * 1.0001).fit(answers).rank == 0
    assert SoftImpute(limit * 0.98).fit(answers).rank == 1


def test_full_data_gives_the_closed_form_soft_threshold():
    values = np.random.default_rng(0).normal(size=(30, 22))
    done = SoftImpute(2.0, tol=1e-9).fit(Observations.from_dense(values))
    u, s, vt = np.linalg.svd(values, full_matrices=False)
    np.testing.assert_allclose(done.dense(), (u * np.maximum(s - 2.0, 0)) @ vt, atol=1e-4)
    assert done.rank == np.count_nonzero(s > 2.0)


def test_one_row_has_a_closed_form():
    # One row: min ½ Σ w (y − m)² + λ‖m‖₂ over the seen cells; unseen cells are zero.
    values = np.array([3.0, -1.0, 2.0])
    answers = Observations([0, 0, 0], [0, 2, 3], values, shape=(1, 5))
    done = SoftImpute(1.0, tol=1e-10).fit(answers)
    shrunk = values * (1 - 1.0 / np.linalg.norm(values))
    np.testing.assert_allclose(done.dense()[0], [shrunk[0], 0, shrunk[1], shrunk[2], 0], atol=1e-5)


def test_tighter_tolerance_never_ends_higher():
    answers = Synthetic.low_rank(shape=(80, 60), rank=4, rng=3).observe(2000, rng=4)
    reached = [SoftImpute(0.7, tol=tol).fit(answers) for tol in (1e-1, 1e-3, 1e-6)]
    values = [objective(answers, done.dense(), 0.7) for done in reached]
    assert values[0] >= values[1] >= values[2] * (1 - 1e-12)
    assert all(
        value * (1 - done.gap) <= values[2] for value, done in zip(values, reached, strict=True)
    )


def test_a_warm_start_reaches_the_same_objective_in_fewer_steps():
    source = Synthetic.low_rank(shape=(120, 100), rank=5, rng=3)
    answers = source.observe(5000, rng=4)
    more = Observations.concat([answers, source.observe(50, rng=5)])
    estimator = SoftImpute(1.0, tol=1e-3)
    cold, warm = estimator.fit(more), estimator.fit(more, start=estimator.fit(answers))
    assert warm.memory["steps"] < cold.memory["steps"]
    assert warm.memory["objective"] == pytest.approx(cold.memory["objective"], rel=1e-3)


def test_the_path_is_the_same_as_single_fits():
    answers = Synthetic.low_rank(shape=(50, 40), rank=3, rng=3).observe(900, rng=4)
    penalties = [4.0, 2.0, 1.0, 0.5]
    estimator = SoftImpute(tol=1e-6)
    for penalty, done in zip(penalties, estimator.path(answers, penalties), strict=True):
        alone = SoftImpute(penalty, tol=1e-6).fit(answers)
        assert done.memory["penalty"] == penalty
        assert done.memory["objective"] == pytest.approx(alone.memory["objective"], rel=2e-6)


@pytest.mark.parametrize("penalties", [3, "universal", None])
def test_a_path_is_a_list_of_penalties(penalties):
    answers = Synthetic.low_rank((6, 5), rank=1, rng=0).observe(20, rng=1)
    with pytest.raises(InvalidType, match=f"penalties is {penalties!r}; it must be a list of them"):
        SoftImpute().path(answers, penalties)


def test_the_universal_rule_uses_replicates_when_there_are_enough():
    source = Synthetic.low_rank(shape=(40, 30), rank=2, noise=0.3, rng=0)
    answers = source.observe(1500, rng=1)
    done = SoftImpute("universal").fit(answers)
    noise = math.sqrt(answers.entries.noise_variance)
    rule = noise * (math.sqrt(1500 / 40) + math.sqrt(1500 / 30))
    assert done.memory["penalty"] == pytest.approx(rule)


def test_the_universal_rule_without_replicates_finds_the_noise_by_the_residual():
    source = Synthetic.low_rank(shape=(150, 120), rank=2, noise=0.3, rng=0)
    once = source.observe(9000, rng=1).once()
    done = SoftImpute("universal").fit(once)
    per_noise = math.sqrt(len(once) / 150) + math.sqrt(len(once) / 120)
    assert 0.8 * 0.3 <= done.memory["penalty"] / per_noise <= 1.25 * 0.3


def test_the_fancyimpute_rule_is_the_largest_singular_value_over_fifty():
    answers = Synthetic.low_rank(shape=(60, 40), rank=3, rng=0).observe(900, rng=1)
    done = SoftImpute("fancyimpute").fit(answers)
    largest = np.linalg.norm(dense(answers)[1], 2)
    assert done.memory["penalty"] == pytest.approx(largest / 50, rel=1e-6)


def test_out_of_steps_is_said_with_an_honest_gap():
    answers = Synthetic.low_rank(shape=(80, 60), rank=5, rng=0).observe(2000, rng=1)
    done = SoftImpute(0.1, tol=1e-8, max_steps=6).fit(answers)
    assert done.status is Status.OUT_OF_STEPS
    assert done.gap > 1e-8
    assert relative_gap(answers, done.dense(), 0.1) <= done.gap + 1e-12


@pytest.mark.parametrize("penalty", [0.0, -1.0, math.nan, math.inf, "bayes"])
def test_a_bad_penalty_is_refused(penalty):
    with pytest.raises(InvalidInput, match=r"penalty is .*; it must be a positive number"):
        SoftImpute(penalty)


def test_bad_tolerances_and_steps_are_refused():
    with pytest.raises(InvalidInput, match="tol is 0; it must lie between 0 and 1"):
        SoftImpute(tol=0)
    with pytest.raises(InvalidInput, match="max_steps is 0"):
        SoftImpute(max_steps=0)


@pytest.mark.parametrize("shape", [(60, 50), (700, 60)])
@pytest.mark.parametrize("unit", [1e90, 1e-90])
def test_large_and_small_answers_take_as_many_steps(unit, shape):
    answers = Synthetic.low_rank(shape=shape, rank=3, noise=0.1, rng=0).observe(
        shape[0] * shape[1] // 2, rng=1
    )
    scaled = Observations(answers.rows, answers.cols, answers.values * unit, shape=answers.shape)
    done = SoftImpute(penalty=3 * unit, tol=1e-6).fit(scaled)
    assert done.gap <= 1e-6
    assert done.memory["steps"] == SoftImpute(penalty=3, tol=1e-6).fit(answers).memory["steps"]


def test_norm_bounds_are_above_the_norm_and_close():
    rng = np.random.default_rng(0)
    answers = Synthetic.low_rank(shape=(90, 70), rank=3, rng=0).observe(1500, rng=1)
    visits, means = dense(answers)
    matrix = sparse.csr_matrix(visits * means)
    truth = np.linalg.norm(visits * means, 2)
    none = (np.zeros((90, 0)), np.zeros((70, 0)))
    some = tuple(np.linalg.qr(rng.normal(size=(side, 4)))[0] for side in (90, 70))
    lower = spectrum.largest_singular_value(matrix)
    assert lower == pytest.approx(truth, rel=1e-8)
    assert truth <= norms.norm_bound(matrix, lower, 1.01 * lower, none) <= 1.02 * truth
    low = 0.5 * truth  # a guess at which it fails is not followed by others, but on request
    assert norms.norm_bound(matrix, low, 0.9 * truth, none) == pytest.approx(
        np.linalg.norm(visits * means)
    )
    assert truth <= norms.norm_bound(matrix, low, 0.6 * truth, none, anyhow=True) <= 2.5 * truth
    assert truth <= norms.norm_bound(matrix, 0.0, 0.0, none, anyhow=True) <= 4 * truth
    assert truth <= norms._bound_by_blocks(matrix, 1.01 * truth, none) <= 1.3 * truth
    assert truth <= norms._bound_by_blocks(matrix, 1.01 * truth, some) <= 1.6 * truth


def test_what_a_basis_shares_with_directions_beside_it_raises_the_norm():
    dense = np.zeros((30, 20))
    np.fill_diagonal(dense[:3, :3], [1.0, 0.99, 0.1])
    dense[1, 0] = 0.05  # from the first basis vector to the first direction beside
    matrix, bases = sparse.csr_matrix(dense), (np.eye(30)[:, :1], np.eye(20)[:, :1])
    beside = spectrum.leading(matrix, 2, without=bases)
    within = norms.norm_within(matrix, bases)
    truth = np.linalg.norm(dense, 2)
    assert max(within, beside.largest) < truth - 0.01
    assert norms.norm_beside(matrix, bases, beside) == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize("shape", [(1, 30), (30, 1), (4, 4)])
def test_directions_beside_a_basis_that_leaves_none_are_rounding(shape):
    dense = np.random.default_rng(0).standard_normal(shape)
    u, _, vt = np.linalg.svd(dense, full_matrices=False)
    matrix, bases = sparse.csr_matrix(dense), (u, vt.T)
    beside = spectrum.leading(matrix, 2, without=bases)
    truth = np.linalg.norm(dense, 2)
    assert norms.norm_beside(matrix, bases, beside) == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize("short", [0, spectrum.SHORT], ids=["iterated", "exact"])
@pytest.mark.parametrize("shape", [(6, 6), (9, 6), (6, 8)], ids=str)
def test_leading_directions_stay_outside_the_bases(shape, short, monkeypatch):
    monkeypatch.setattr(spectrum, "SHORT", short)
    dense = np.zeros(shape)
    np.fill_diagonal(dense, [5.0, 4.0, 3.0, 2.0, 1.0, 0.5])
    bases = tuple(np.eye(side)[:, :1] for side in shape)
    found = spectrum.leading(sparse.csr_matrix(dense), 2, without=bases, rounds=8)
    np.testing.assert_allclose(found.values, [4.0, 3.0], rtol=1e-6)
    np.testing.assert_allclose(found.left.T @ dense @ found.right, np.diag([4, 3]), atol=1e-5)
    for basis, side in zip(bases, (found.left, found.right), strict=True):
        assert np.abs(basis.T @ side).max() < 1e-12


@pytest.mark.parametrize("way", ["short", "long", "very long"])
@pytest.mark.parametrize("seed", range(12))
def test_no_gap_is_claimed_below_the_truth(seed, way, monkeypatch):
    """Bad starts, few steps and few answers, on every way of bounding the norm."""
    if way != "short":
        monkeypatch.setattr(nuclear, "LONG_SIDE", 1)
        monkeypatch.setattr(gram, "AT_A_TIME", 5)
        monkeypatch.setattr(orthogonal, "TALL", 5)
        monkeypatch.setattr(tall, "ROWS", 4)
        monkeypatch.setattr(spectrum, "SHORT", 0)
        monkeypatch.setattr(spectrum, "SMALL", 0)
    if way == "very long":
        monkeypatch.setattr(norms, "CHOLESKY_SIDE", 1)
    rng = np.random.default_rng(seed)
    shape = tuple(int(side) for side in rng.integers(2, 40, size=2))
    source = Synthetic.low_rank(shape=shape, rank=2, noise=0.5, rng=seed)
    answers = source.observe(int(rng.integers(1, 60)), rng=seed + 1)
    penalty = float(rng.choice([0.01, 0.1, 1.0]))
    start = Completion(*(5 * rng.normal(size=(side, 3)) for side in shape))
    best = SoftImpute(penalty, tol=1e-8, max_steps=5000).fit(answers).memory["objective"]
    for steps in (1, 3, 30):
        for begin in (None, start):
            done = SoftImpute(penalty, max_steps=steps).fit(answers, start=begin)
            reached = objective(answers, done.dense(), penalty)
            assert (reached - best) / reached <= done.gap + 1e-7


def test_directions_that_the_penalty_only_just_keeps_out_settle_sooner(monkeypatch):
    """Where a universal penalty puts its level, singular values crowd."""

    def steps():
        return [SoftImpute("universal", tol=1e-5).fit(each).memory["steps"] for each in answers]

    answers = [
        Synthetic.low_rank(shape=(400, 300), rank=5, noise=0.1, rng=seed).observe(20_000, rng=9)
        for seed in range(3)
    ]
    with_near = steps()
    monkeypatch.setattr(nuclear._Solver, "_with_near", lambda solver: solver.bases)
    assert sum(with_near) <= 0.85 * sum(steps())


@pytest.mark.parametrize("seed", range(7))
def test_a_basis_beside_another_is_orthonormal_and_outside(seed):
    rng = np.random.default_rng(seed)
    side, known, count = [
        (6, 5, 3),
        (6, 6, 2),
        (40, 3, 8),
        (900, 30, 16),
        (900, 0, 4),
        (9, 2, 0),
        (6, 5, 6),
    ][seed]
    basis = np.linalg.qr(rng.standard_normal((side, known)))[0]
    mixed = basis @ rng.standard_normal((known, count)) + 3 * rng.standard_normal((side, count))
    mixed[:, count // 2 :] = basis[:, :1] if known else 0.0  # some have nothing outside
    mixed /= np.linalg.norm(mixed, axis=0) + 1e-300
    found = orthogonal.basis_beside(mixed, basis)
    assert found.shape[1] == min(count // 2, side - known)
    np.testing.assert_allclose(found.T @ found, np.eye(found.shape[1]), atol=1e-8)
    assert np.abs(basis.T @ found).max(initial=0.0) < 1e-8


@pytest.mark.parametrize("values", [[], [3.0], [3.0, 1.0], [5.0, 2.0, 0.5]])
def test_a_norm_bound_holds_when_lanczos_runs_out_of_space(values, monkeypatch):
    monkeypatch.setattr(norms, "CHOLESKY_SIDE", 1)
    dense_matrix = np.zeros((50, 40))
    dense_matrix[range(len(values)), range(len(values))] = values
    matrix = sparse.csr_matrix(dense_matrix)
    none = (np.zeros((50, 0)), np.zeros((40, 0)))
    truth = max(values, default=0.0)
    bound = norms.norm_bound(matrix, 0.5 * truth, truth, none)
    assert truth <= bound <= truth * (1 + 1e-6)


def test_a_penalty_close_to_nothing_interpolates_one_answer():
    done = SoftImpute(1e-20).fit(Observations([0], [0], [4.0], shape=(1, 1)))
    assert done.dense() == pytest.approx(4.0)


def test_a_tolerance_beyond_double_precision_stalls_and_says_so():
    answers = Synthetic.low_rank(shape=(20, 15), rank=2, rng=0).observe(200, rng=1)
    done = SoftImpute(0.5, tol=1e-16, max_steps=20_000).fit(answers)
    assert done.status is Status.STALLED
    assert done.gap < 1e-6


def test_a_start_with_another_centre_is_taken_as_the_matrix_it_is():
    answers = Synthetic.ratings(shape=(60, 50), rank=2, rng=0).observe(1500, rng=1)
    plain = SoftImpute(2.0, tol=1e-4).fit(answers)
    about_mean = SoftImpute(2.0, centre="mean").fit(answers)
    again = SoftImpute(2.0, tol=1e-4).fit(answers, start=about_mean)
    assert again.memory["objective"] == pytest.approx(plain.memory["objective"], rel=2e-4)


@pytest.mark.parametrize(
    ("settings", "error", "sentence"),
    [
        ({"penalty": True}, InvalidType, "penalty is True; it must be a positive number"),
        ({"penalty": None}, InvalidType, "penalty is None; it must be a positive number"),
        ({"tol": "x"}, InvalidType, "tol is 'x'; it must lie between 0 and 1"),
        ({"tol": 1.0}, InvalidInput, "tol is 1.0; it must lie between 0 and 1"),
        ({"max_steps": 2.5}, InvalidType, "max_steps is 2.5; it must be a whole number"),
        ({"centre": "median"}, InvalidInput, "centre is 'median'"),
    ],
)
def test_bad_settings_are_refused(settings, error, sentence):
    with pytest.raises(error, match=sentence):
        SoftImpute(**settings)


@pytest.mark.parametrize("size", [0.0, 1e-200, 1e-30])
def test_a_start_with_a_column_of_nearly_nothing(size):
    rows, cols = np.divmod(np.arange(16), 4)
    answers = Observations(rows, cols, np.diag([5.0, 3.0, 3.0, 3.0]).ravel(), shape=(4, 4))
    start = Completion(*(np.eye(4)[:, :2] * [1.0, size] for _ in range(2)))
    estimator = SoftImpute(0.1, tol=1e-8)
    done = estimator.fit(answers, start=start)
    np.testing.assert_allclose(done.dense(), estimator.fit(answers).dense(), atol=1e-4)


@pytest.mark.parametrize("size", [1e6, 1e20, 1e150])
def test_a_start_worse_than_nothing_is_left_aside(size):
    answers = Synthetic.low_rank(shape=(12, 10), rank=2, rng=0).observe(90, rng=1)
    far = Completion(size * np.ones((12, 1)), np.ones((10, 1)))
    estimator = SoftImpute(1.0, tol=1e-6)
    cold, warm = estimator.fit(answers), estimator.fit(answers, start=far)
    assert warm.status is Status.CONVERGED
    assert np.array_equal(cold.dense(), warm.dense())


def test_a_path_that_rises_and_falls_ends_where_single_fits_do():
    answers = Synthetic.low_rank(shape=(12, 10), rank=2, rng=0).observe(90, rng=1)
    ranks = [done.rank for done in SoftImpute(tol=1e-5).path(answers, [0.1, 5.0, 1e9, 0.1])]
    assert ranks[2] == 0
    assert ranks[3] == ranks[0]


def test_a_thousand_equal_answers_at_one_cell():
    answers = Observations([3] * 1000, [2] * 1000, np.full(1000, 2.0), shape=(6, 7))
    assert SoftImpute().fit(answers).predict(3, 2) == pytest.approx(2.0, rel=0.01)


def test_a_clipped_fit_is_the_fit_clipped_and_says_so():
    source = Synthetic.ratings((30, 20), rank=2, noise=1.0, rng=0)
    answers = source.observe(500, rng=1)
    plain, clipped = (SoftImpute(0.5, clip=clip).fit(answers) for clip in (False, True))
    assert (plain.clip, clipped.clip) == (None, (1.0, 5.0))
    assert plain.dense().min() < 1
    np.testing.assert_array_equal(clipped.dense(), np.clip(plain.dense(), 1, 5))
    assert (plain.status, clipped.status) == (Status.CONVERGED, Status.CLIPPED)
    assert "heuristic" in clipped.status.value
    assert clipped.gap == plain.gap


def test_a_fit_without_a_scale_is_not_clipped():
    answers = Synthetic.low_rank((12, 9), rank=2, rng=0).observe(80, rng=1)
    done = SoftImpute(1.0, clip=True).fit(answers)
    assert (done.clip, done.status) == (None, Status.CONVERGED)


@pytest.mark.parametrize("clip", [1, None, "clip"])
def test_clip_is_a_switch(clip):
    assert SoftImpute(clip=np.True_) == SoftImpute(clip=True)
    with pytest.raises(InvalidInput, match=f"clip is {clip!r}; it must be True or False."):
        SoftImpute(clip=clip)
