"""The square-root lasso: optimal, certified, inside its box, free of the noise's level."""

from __future__ import annotations

import math

import cvxpy
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from malocate import (
    Completion,
    InvalidInput,
    InvalidType,
    Observations,
    SquareRootLasso,
    Status,
    Synthetic,
)
from malocate.estimators.centring import Centre
from malocate.estimators.convex import box as box_module
from malocate.estimators.convex.box import Box, Multipliers, Problem, certified_bound, dual_value
from malocate.estimators.convex.pivotal import paper_penalty, pivotal_penalty
from malocate.estimators.convex.splitting import Start, solve
from malocate.estimators.engine import shrinkage
from malocate.estimators.engine.cells import Cells


def answers(shape, n, *, scale, steep=0.4, whole=False, seed=0):
    """Noisy answers of a rank-2 matrix around the middle of the scale, clipped to it."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((shape[0], 2)) @ rng.standard_normal((2, shape[1]))
    rows, cols = rng.integers(shape[0], size=n), rng.integers(shape[1], size=n)
    length = scale[1] - scale[0]
    values = scale[0] + length * (0.5 + steep * truth[rows, cols] + rng.normal(0, 0.1, n))
    values = np.clip(np.round(values) if whole else values, *scale)
    return Observations(rows, cols, values, shape=shape, scale=scale)


def objective(observations, matrix, penalty, centre=0.0):
    """The objective as the paper writes it: answer by answer, all singular values."""
    misses = observations.values - matrix[observations.rows, observations.cols]
    return math.sqrt(np.mean(misses**2)) + penalty * np.linalg.norm(matrix - centre, "nuc")


def clarabel(observations, penalty, *, box=True, centre=0.0):
    """The minimum according to an outside solver."""
    matrix = cvxpy.Variable(observations.shape)
    misses = observations.values - matrix[observations.rows, observations.cols]
    loss = cvxpy.norm(misses) / math.sqrt(len(observations))
    low, high = observations.scale or (0, 0)
    problem = cvxpy.Problem(
        cvxpy.Minimize(loss + penalty * cvxpy.normNuc(matrix - centre)),
        [matrix >= low, matrix <= high] if box else [],
    )
    return problem.solve(solver=cvxpy.CLARABEL)


def slope_norm(observations, matrix):
    """The dual norm of the loss's gradient at a matrix, by dense linear algebra."""
    misses = observations.values - matrix[observations.rows, observations.cols]
    slopes = np.zeros(observations.shape)
    np.add.at(slopes, (observations.rows, observations.cols), misses)
    return np.linalg.norm(slopes, 2) / math.sqrt(len(misses) * np.sum(misses**2))


PROBLEMS = {
    "ratings": (answers((12, 9), 60, scale=(1, 5), whole=True), 0.05),
    "ratings, zero far outside": (answers((9, 12), 60, scale=(1, 5), whole=True), 0.1),
    "ratings, most at the wall": (answers((9, 12), 60, scale=(1, 5), whole=True), 0.5),
    "tight": (answers((12, 9), 60, scale=(-1, 1)), 0.01),
    "saturated": (answers((10, 14), 90, scale=(-1, 1), steep=2.0), 0.01),
    "saturated, repeated": (answers((10, 8), 200, scale=(-1, 1), steep=2.0), 0.005),
    "inactive": (answers((12, 9), 60, scale=(-100, 100)), 0.08),
    "one row": (answers((1, 12), 30, scale=(0, 1)), 0.05),
    "below zero": (answers((8, 9), 40, scale=(-5, -1)), 0.03),
}


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("box", [True, False])
def test_it_reaches_the_minimum_of_an_outside_solver(name, box):
    observations, penalty = PROBLEMS[name]
    done = SquareRootLasso(penalty=penalty, box=box, tol=1e-7).fit(observations)
    least = clarabel(observations, penalty, box=box)
    reached = objective(observations, done.dense(), penalty)
    assert done.status is (Status.CONVERGED if done.rank else Status.CLOSED_FORM)
    assert reached == pytest.approx(least, rel=1e-6)
    assert done.memory["objective"] == pytest.approx(reached, rel=1e-9)


def test_the_box_of_these_problems_matters():
    observations, penalty = PROBLEMS["saturated"]
    inside = SquareRootLasso(penalty=penalty, tol=1e-6).fit(observations)
    outside = SquareRootLasso(penalty=penalty, tol=1e-6, box=False).fit(observations)
    assert np.abs(outside.dense()).max() > 1.2
    assert np.mean(np.abs(inside.dense()) > 0.999) > 0.04
    assert inside.memory["objective"] > 1.001 * outside.memory["objective"]
    assert len(inside.memory["wall_cells"]) > 0


@pytest.mark.parametrize("name", ["ratings", "saturated, repeated", "inactive"])
@pytest.mark.parametrize("tol", [0.3, 0.03, 0.003])
def test_the_gap_is_never_smaller_than_the_truth(name, tol):
    observations, penalty = PROBLEMS[name]
    done = SquareRootLasso(penalty=penalty, tol=tol).fit(observations)
    reached = objective(observations, done.dense(), penalty)
    least = clarabel(observations, penalty)
    assert done.gap <= tol
    assert (reached - least) / reached <= done.gap + 1e-8


@given(st.integers(0, 10**6))
def test_any_multipliers_give_a_lower_bound(seed):
    """Weak duality, at multipliers that no solver chose: no matrix in the box is below it."""
    rng = np.random.default_rng(seed)
    observations = answers((5, 4), 12, scale=(1, 3), seed=seed)
    entries = observations.entries
    problem = Problem(
        Cells.from_entries(entries),
        float(entries.squares.sum()),
        len(observations),
        0.1,
        Box(1.0, 3.0, Centre(), (5, 4)),
    )
    slopes = rng.standard_normal(len(entries))
    slopes /= math.sqrt(len(observations) * np.sum(slopes**2 / entries.visits)) * (
        1 + rng.exponential()
    )
    unseen = np.ones((5, 4), dtype=bool)
    unseen[entries.rows, entries.cols] = False
    walls = problem.cells.matrix(slopes) * 0
    walls = type(walls)(np.where(unseen, 0.05 * rng.standard_normal((5, 4)), 0.0))
    pulls = slopes + 0.02 * rng.standard_normal(len(slopes))
    bound = certified_bound(problem, slopes, Multipliers(pulls, walls), _nothing((5, 4)), 1e-3)
    for matrix in [*rng.uniform(1, 3, (20, 5, 4)), np.full((5, 4), 2.0), np.ones((5, 4))]:
        assert bound <= objective(observations, matrix, 0.1) + 1e-12


def _nothing(shape):
    return np.zeros((shape[0], 0)), np.zeros((shape[1], 0))


@pytest.mark.parametrize("name", ["ratings, zero far outside", "saturated", "wide"])
def test_inside_a_box_the_gap_holds_by_dense_algebra(name):
    """The bound of the final multipliers, anew: dense norms, the box's part cell by cell."""
    wide = answers((50, 70), 1400, scale=(-1, 1), steep=1.5), 0.002
    observations, penalty = PROBLEMS.get(name, wide)
    (low, high), entries, n = observations.scale, observations.entries, len(observations)
    within = entries.squares.sum()
    box = Box(low, high, Centre(), observations.shape)
    problem = Problem(Cells.from_entries(entries), within, n, penalty, box)
    start = Start(*_nothing(observations.shape))
    done = solve(problem, start, tol=1e-6, max_steps=5000)
    left, right = done.matrix.factors
    matrix = np.clip(left @ right.T, low, high)
    misses = entries.means - matrix[entries.rows, entries.cols]
    loss = math.sqrt((entries.visits @ misses**2 + within) / n)
    slopes, forces = np.zeros(matrix.shape), done.multipliers.walls.toarray()
    slopes[entries.rows, entries.cols] = entries.visits * misses / (n * loss)
    forces[entries.rows, entries.cols] = done.multipliers.pulls
    share = min(1.0, penalty / np.linalg.norm(forces, 2))
    push = forces - slopes
    means = np.sum(slopes[entries.rows, entries.cols] * entries.means)
    held = np.minimum(low * push, high * push).sum()
    bound = share * (means + within / (n * loss) + held)
    reached = objective(observations, matrix, penalty)
    assert 0 <= (reached - bound) / reached <= 1e-4
    assert done.gap <= 1e-6


def test_without_a_box_the_gap_holds_by_dense_algebra():
    source = Synthetic.low_rank(shape=(60, 45), rank=3, noise=0.3, rng=0)
    observations = source.observe(1500, rng=1)
    done = SquareRootLasso(tol=1e-6).fit(observations)
    matrix, penalty = done.dense(), done.memory["penalty"]
    misses = observations.values - matrix[observations.rows, observations.cols]
    share = min(1.0, penalty / slope_norm(observations, matrix))
    dual = share * (misses @ observations.values) / math.sqrt(len(misses) * (misses @ misses))
    primal = objective(observations, matrix, penalty)
    assert 0 <= (primal - dual) / primal <= 2e-5
    assert done.rank > 0


def test_on_full_data_it_is_the_soft_threshold():
    rng = np.random.default_rng(0)
    table = rng.standard_normal((12, 3)) @ rng.standard_normal((3, 8)) + rng.normal(0, 0.3, (12, 8))
    done = SquareRootLasso(penalty=0.06, tol=1e-9).fit(Observations.from_dense(table))
    u, values, vt = np.linalg.svd(table, full_matrices=False)
    threshold = 0.06 * table.size * done.memory["sigma"]
    expected = (u * np.maximum(values - threshold, 0)) @ vt
    np.testing.assert_allclose(done.dense(), expected, atol=1e-4)
    assert 0 < done.rank < 8


def test_a_penalty_above_the_dual_norm_gives_zero():
    observations = answers((12, 9), 60, scale=(-1, 1))
    norm = slope_norm(observations, np.zeros((12, 9)))
    none = SquareRootLasso(penalty=1.0001 * norm).fit(observations)
    some = SquareRootLasso(penalty=0.98 * norm, tol=1e-6).fit(observations)
    assert (none.rank, none.gap, none.status) == (0, 0.0, Status.CLOSED_FORM)
    assert none.memory["sigma"] == pytest.approx(np.sqrt(np.mean(observations.values**2)))
    assert some.rank >= 1


def test_a_huge_penalty_inside_a_box_without_zero_gives_its_nearest_wall():
    observations = answers((12, 9), 60, scale=(1, 5), whole=True)
    done = SquareRootLasso(penalty=50.0, tol=1e-6).fit(observations)
    np.testing.assert_allclose(done.dense(), 1.0, atol=1e-3)
    assert done.rank >= 1


@pytest.mark.parametrize("scale", [None, (-9, 9), (-2.5, 2.5)])
def test_answers_that_can_be_met_are_met(scale):
    """The loss has no slope at zero residuals; the solver must still end, with a certificate."""
    rng = np.random.default_rng(1)
    table = np.clip(rng.standard_normal((9, 1)) @ rng.standard_normal((1, 7)), -2.5, 2.5)
    table[rng.random((9, 7)) < 0.4] = np.nan
    observations = Observations.from_dense(table, scale=scale)
    done = SquareRootLasso(penalty=1e-3, tol=1e-6).fit(observations)
    assert done.status is Status.CONVERGED
    assert done.memory["sigma"] < 1e-6
    least = clarabel(observations, 1e-3, box=scale is not None)
    assert objective(observations, done.dense(), 1e-3) == pytest.approx(least, rel=1e-5)


@pytest.mark.parametrize("centre", ["mean", "additive"])
def test_a_centre_shifts_the_box(centre):
    observations = answers((10, 8), 60, scale=(1, 5), steep=4.0)
    done = SquareRootLasso(penalty=0.005, tol=1e-7, centre=centre).fit(observations)
    rows, cols = np.indices((10, 8))
    level = done.centre.at(rows, cols)
    least = clarabel(observations, 0.005, centre=level)
    assert objective(observations, done.dense(), 0.005, level) == pytest.approx(least, rel=1e-6)
    assert len(done.memory["wall_cells"]) > 0


def test_every_cell_lies_inside_the_scale():
    observations, penalty = PROBLEMS["saturated"]
    for box in (True, "clip"):
        matrix = SquareRootLasso(penalty=penalty, box=box, tol=0.05).fit(observations).dense()
        assert matrix.min() >= -1
        assert matrix.max() <= 1


def test_clipping_says_that_it_is_a_heuristic_and_how_far_it_may_be_off():
    observations, penalty = PROBLEMS["saturated"]
    done = SquareRootLasso(penalty=penalty, box="clip", tol=1e-5).fit(observations)
    exact = SquareRootLasso(penalty=penalty, tol=1e-7).fit(observations)
    reached = objective(observations, done.dense(), penalty)
    assert done.status is Status.CLIPPED
    assert "heuristic" in done.status.value
    assert reached == pytest.approx(done.memory["objective"], rel=1e-9)
    assert reached > 1.0005 * exact.memory["objective"]
    assert 1 - exact.memory["objective"] / reached <= done.gap


def test_clipping_that_moves_nothing_is_the_optimum():
    observations, penalty = PROBLEMS["inactive"]
    done = SquareRootLasso(penalty=penalty, box="clip").fit(observations)
    assert done.status is Status.CONVERGED
    assert done.gap <= 1e-3


@pytest.mark.parametrize("box", [True, False])
def test_the_box_may_be_numpys_boolean(box):
    answers = Synthetic.ratings((12, 9), rank=1, noise=1.0, rng=0).observe(60, rng=1)
    plain, numpys = (SquareRootLasso(box=each).fit(answers) for each in (box, np.bool_(box)))
    np.testing.assert_array_equal(numpys.dense(), plain.dense())
    assert numpys.clip == plain.clip


def test_without_a_scale_there_is_no_box():
    inside, penalty = PROBLEMS["saturated"]
    bare = Observations(inside.rows, inside.cols, inside.values, shape=inside.shape)
    done = SquareRootLasso(penalty=penalty, tol=1e-6).fit(bare)
    free = SquareRootLasso(penalty=penalty, tol=1e-6, box=False).fit(inside)
    assert done.clip is None
    np.testing.assert_array_equal(done.dense(), free.dense())


def test_the_order_of_the_answers_changes_nothing():
    observations = answers((15, 12), 150, scale=(1, 5), whole=True)
    order = np.random.default_rng(3).permutation(len(observations))
    shuffled = Observations(
        observations.rows[order], observations.cols[order], observations.values[order],
        shape=(15, 12), scale=(1, 5),
    )  # fmt: skip
    one, other = (SquareRootLasso().fit(each) for each in (observations, shuffled))
    np.testing.assert_array_equal(one.dense(), other.dense())
    assert one.memory["penalty"] == other.memory["penalty"]


@pytest.mark.parametrize("factor", [0.25, 3e5])
@pytest.mark.parametrize("scale", [None, (-1, 1)])
def test_other_units_give_the_same_matrix_in_those_units(factor, scale):
    observations = answers((15, 12), 100, scale=(-1, 1), steep=1.5)
    places = observations.rows, observations.cols

    def fitted(unit):
        box = None if scale is None else (scale[0] * unit, scale[1] * unit)
        given = Observations(*places, unit * observations.values, shape=(15, 12), scale=box)
        return SquareRootLasso(C=0.2, tol=1e-4).fit(given)

    np.testing.assert_allclose(fitted(factor).dense(), factor * fitted(1.0).dense(), rtol=1e-5)


def test_a_start_changes_no_more_than_the_tolerance_and_saves_steps():
    early = answers((60, 50), 1500, scale=(-1, 1), steep=1.5)
    late = Observations(
        np.append(early.rows, 3), np.append(early.cols, 4), np.append(early.values, 0.5),
        shape=early.shape, scale=early.scale,
    )  # fmt: skip
    lasso = SquareRootLasso(C=0.3, tol=1e-4)
    cold, warm = lasso.fit(late), lasso.fit(late, start=lasso.fit(early))
    assert warm.memory["objective"] == pytest.approx(cold.memory["objective"], rel=1e-4)
    assert warm.memory["steps"] < cold.memory["steps"]


def test_a_start_with_another_centre_is_moved_to_this_one():
    observations = answers((20, 15), 150, scale=(1, 5), whole=True)
    additive = SquareRootLasso(C=0.3, centre="additive", tol=1e-5).fit(observations)
    plain = SquareRootLasso(C=0.3, tol=1e-5)
    warm = plain.fit(observations, start=additive)
    assert warm.centre.rows.size == 0
    cold = plain.fit(observations)
    assert warm.memory["objective"] == pytest.approx(cold.memory["objective"], rel=1e-5)


@pytest.mark.parametrize("box", [False, "clip"])
def test_a_start_inside_the_box_leaves_no_walls_behind(box):
    observations, penalty = PROBLEMS["saturated"]
    inside = SquareRootLasso(penalty=penalty, tol=1e-5).fit(observations)
    lasso = SquareRootLasso(penalty=penalty, tol=1e-6, box=box)
    warm, cold = lasso.fit(observations, start=inside), lasso.fit(observations)
    assert len(inside.memory["wall_cells"]) > 0
    assert len(warm.memory["wall_cells"]) == 0
    assert warm.memory["objective"] == pytest.approx(cold.memory["objective"], rel=1e-4)
    assert warm.memory["objective"] * (1 - warm.gap) <= cold.memory["objective"] * (1 + 1e-12)


def test_a_saved_completion_is_as_good_a_start(tmp_path):
    observations = answers((20, 15), 150, scale=(-1, 1), steep=1.5)
    lasso = SquareRootLasso(C=0.3)
    done = lasso.fit(observations)
    done.save(tmp_path / "done.npz")
    loaded = Completion.load(tmp_path / "done.npz")
    one, other = (lasso.fit(observations, start=start) for start in (done, loaded))
    np.testing.assert_array_equal(one.dense(), other.dense())


@pytest.mark.parametrize("box", [True, False])
@pytest.mark.parametrize("share", [1.0, 0.3])
def test_long_matrices_take_another_way_to_the_same_minimum(monkeypatch, box, share):
    observations = answers((45, 60), 900, scale=(-1, 1), steep=1.0)
    lasso = SquareRootLasso(C=share, box=box, tol=1e-5)
    short = lasso.fit(observations)
    monkeypatch.setattr(shrinkage, "DENSE_SIDE", 10)
    monkeypatch.setattr(box_module, "EXACT_SIDE", 10)
    monkeypatch.setattr(box_module, "BLOCK_CELLS", 500)
    long = lasso.fit(observations)
    penalty = long.memory["penalty"]
    assert (short.status, long.status) == (Status.CONVERGED, Status.CONVERGED)
    reached = objective(observations, long.dense(), penalty)
    assert reached == pytest.approx(short.memory["objective"], rel=2e-5)
    assert reached <= long.memory["objective"] * (1 + 1e-9)


def test_a_step_limit_is_told_with_the_gap_reached():
    observations, penalty = PROBLEMS["saturated"]
    done = SquareRootLasso(penalty=penalty, max_steps=3, tol=1e-9).fit(observations)
    assert done.status is Status.OUT_OF_STEPS
    assert 1e-9 < done.gap < 1


def test_one_answer_and_none():
    empty = SquareRootLasso().fit(Observations([], [], [], shape=(3, 4), scale=(1, 5)))
    assert (empty.status, empty.rank) == (Status.EMPTY, 0)
    assert np.all(empty.dense() == 3)
    one = Observations([1], [2], [4.0], shape=(3, 4))
    assert SquareRootLasso().fit(one).rank == 0
    met = SquareRootLasso(penalty=0.1, tol=1e-6).fit(one)
    expected = np.zeros((3, 4))
    expected[1, 2] = 4
    np.testing.assert_allclose(met.dense(), expected, atol=1e-5)


@pytest.mark.parametrize("centre", ["none", "mean", "additive"])
@pytest.mark.parametrize("scale", [None, (1, 5), (0, 3.3)])
def test_constant_answers(centre, scale):
    rng = np.random.default_rng(0)
    places = rng.integers(10, size=40), rng.integers(8, size=40)
    observations = Observations(*places, np.full(40, 3.3), shape=(10, 8), scale=scale)
    done = SquareRootLasso(C=0.1, centre=centre).fit(observations)
    assert done.gap <= 1e-3
    assert done.status in (Status.CONVERGED, Status.CLOSED_FORM)
    assert centre == "none" or np.all(done.dense() == 3.3)


def test_sigma_is_the_root_mean_square_residual():
    observations, penalty = PROBLEMS["saturated, repeated"]
    done = SquareRootLasso(penalty=penalty).fit(observations)
    misses = observations.values - done.predict(observations.rows, observations.cols)
    assert done.memory["sigma"] == pytest.approx(math.sqrt(np.mean(misses**2)))


def test_the_dual_value_of_the_zero_matrix_is_its_loss():
    observations = answers((6, 5), 40, scale=(-1, 1))
    entries = observations.entries
    cells = Cells.from_entries(entries)
    problem = Problem(cells, float(entries.squares.sum()), len(observations), 1.0, None)
    slopes = problem.slopes(cells.targets)
    assert dual_value(problem, slopes, Multipliers(slopes, cells.matrix(slopes))) == pytest.approx(
        math.sqrt(np.mean(observations.values**2))
    )


def test_the_papers_rule_and_an_explicit_penalty():
    observations = answers((15, 30), 100, scale=(-1, 1))
    rule = 0.7 * math.sqrt(math.log(30) / (15 * 100))
    assert paper_penalty((15, 30), 100, 0.7) == pytest.approx(rule)
    assert paper_penalty((1, 1), 4, 1.0) == pytest.approx(math.sqrt(math.log(2) / 4))
    by_rule = SquareRootLasso(C=0.7).fit(observations)
    assert (by_rule.memory["penalty"], by_rule.memory["rule"]) == (pytest.approx(rule), "paper")
    both = SquareRootLasso(C=0.7, penalty=0.01).fit(observations)
    assert (both.memory["penalty"], both.memory["rule"]) == (0.01, "given")
    assert SquareRootLasso().fit(observations).memory["rule"] == "pivotal"


@pytest.mark.parametrize(("shape", "n"), [((30, 20), 300), ((20, 30), 3000), ((330, 250), 9000)])
def test_the_pivotal_penalty_is_the_quantile_of_simulated_noise(shape, n):
    """Simulated here answer by answer, on dense matrices, without grouping the repeats."""
    rng = np.random.default_rng(5)
    rows, cols = rng.integers(shape[0], size=n), rng.integers(shape[1], size=n)
    observations = Observations(rows, cols, rng.standard_normal(n), shape=shape)
    ratios = []
    for _ in range(200 if n < 9000 else 40):
        noise, sums = rng.standard_normal(n), np.zeros(shape)
        np.add.at(sums, (rows, cols), noise)
        ratios.append(np.linalg.norm(sums, 2) / n / math.sqrt(np.mean(noise**2)))
    expected = 1.1 * np.quantile(ratios, 0.95)
    assert pivotal_penalty(observations.entries) == pytest.approx(expected, rel=0.04)
    assert pivotal_penalty(observations.entries) == pivotal_penalty(observations.entries)


def test_the_pivotal_penalty_drowns_pure_noise():
    rng = np.random.default_rng(2)
    zero = 0
    for _ in range(20):
        rows, cols = rng.integers(30, size=300), rng.integers(20, size=300)
        noise = Observations(rows, cols, 7 * rng.standard_normal(300), shape=(30, 20))
        zero += SquareRootLasso().fit(noise).rank == 0
    assert zero >= 18


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"penalty": 0}, InvalidInput, "penalty is 0; it must be a positive number"),
        ({"penalty": float("nan")}, InvalidInput, "penalty is nan"),
        ({"C": -1.0}, InvalidInput, "C is -1.0"),
        ({"C": "1"}, InvalidType, "C is '1'; it must be a positive number"),
        ({"tol": None}, InvalidType, "tol is None"),
        ({"tol": 0.0}, InvalidInput, "tol is 0.0"),
        ({"box": 1}, InvalidInput, "box is 1; it must be True, False or 'clip'"),
        ({"box": np.ones(2)}, InvalidInput, "box is array"),
        ({"box": "clipped"}, InvalidInput, "box is 'clipped'; it must be True, False or 'clip'"),
        ({"max_steps": 0}, InvalidInput, "max_steps is 0; it must be at least 1"),
        ({"max_steps": 2.5}, InvalidType, "max_steps is 2.5; it must be a whole number"),
        ({"centre": "median"}, InvalidInput, "centre is 'median'"),
    ],
)
def test_bad_settings_are_refused_when_the_estimator_is_made(settings, error, words):
    with pytest.raises(error, match=words):
        SquareRootLasso(**settings)
