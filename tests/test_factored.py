"""The engine under the estimators: cells in both orders, descent in two precisions."""

from __future__ import annotations

import numpy as np
import pytest

from malocate import LowRankLeastSquares, SoftImpute, Synthetic
from malocate.estimators.engine.cells import Cells
from malocate.estimators.engine.factored import Descent, balanced, fitted, pull_cells
from malocate.estimators.engine.orthogonal import basis_of, nearly_basis_of, orthogonal
from malocate.problem import Observations


@pytest.fixture(scope="module")
def cells() -> Cells:
    return Cells.from_entries(Synthetic.low_rank((40, 30), 3, rng=0).observe(900, rng=1).entries)


def start(cells: Cells, rank: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    return tuple(rng.standard_normal((side, rank)) for side in cells.shape)


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_both_orders_hold_the_same_cells(cells, precision):
    by_row, by_column = cells.sides(precision).by_row, cells.sides(precision).by_column
    rows = np.repeat(np.arange(40), np.diff(by_row.indptr))
    cols = np.repeat(np.arange(30), np.diff(by_column.indptr))
    first = set(zip(rows, by_row.index, by_row.weights, by_row.targets, strict=True))
    second = set(zip(by_column.index, cols, by_column.weights, by_column.targets, strict=True))
    assert first == second
    assert len(first) == len(cells)
    assert by_row.targets.dtype == by_column.weights.dtype == precision


def test_descent_goes_on_where_single_precision_ends(cells):
    descent = Descent(cells, *start(cells, 5), np.full(5, 2.0))
    assert descent.run(3000, 0.0)
    left, right = descent.left, descent.right
    residual = cells.matrix(cells.weights * (cells.targets - fitted(cells, left, right)))
    for gradient in (residual @ right - 2.0 * left, residual.T @ left - 2.0 * right):
        assert np.abs(gradient).max() < 1e-6  # single precision stands still near 1e-4


@pytest.mark.parametrize("estimator", [LowRankLeastSquares(rank=3), SoftImpute(2.0, tol=1e-5)])
def test_a_fit_is_as_good_with_a_first_phase_in_single_precision(monkeypatch, estimator):
    source = Synthetic.ratings((80, 60), rank=3, rng=0)
    answers = source.observe(2500, rng=1)
    assert Cells.from_entries(answers.entries).fits_single
    quick = estimator.fit(answers).dense()
    monkeypatch.setattr(Cells, "fits_single", False)
    slow = estimator.fit(answers).dense()
    error = np.mean((slow - source.truth) ** 2)
    assert 0 < np.mean((quick - slow) ** 2) < 1e-4 * error  # two ways, one result
    assert np.mean((quick - source.truth) ** 2) == pytest.approx(error, rel=1e-3)


def test_going_on_with_fewer_columns_keeps_the_fit(cells):
    descent = Descent(cells, *start(cells, 8), np.full(8, 3.0))
    descent.run(60, 0.0)
    u, values, v = balanced(descent.left, descent.right)
    kept = values > 1e-4 * values[0]
    assert 0 < np.count_nonzero(kept) < 8
    root, before = np.sqrt(values[kept]), descent.objective
    turns = descent.right.T @ v[:, kept] / root, descent.left.T @ u[:, kept] / root
    left, right = u[:, kept] * root, v[:, kept] * root
    descent.go_on_from(left, right, turns, pull_cells(cells, left, right, np.empty(len(cells))))
    assert descent.left.shape == (40, np.count_nonzero(kept))
    assert descent.objective == pytest.approx(before, rel=1e-6)
    descent.run(20, 0.0)
    assert descent.objective <= before * (1 + 1e-6)


@pytest.mark.parametrize("unit", [1e-30, 1e-12, 1e11, 1e25])
def test_no_unit_of_the_answers_is_too_small_or_too_large(unit):
    seen = Synthetic.low_rank((30, 20), 2, rng=3).observe(400, rng=4)
    scaled = Observations(seen.rows, seen.cols, unit * seen.values, shape=seen.shape)
    ours = SoftImpute(penalty=unit * 2.0, tol=1e-8).fit(scaled)
    usual = SoftImpute(penalty=2.0, tol=1e-8).fit(seen)
    assert ours.gap <= 1e-8
    np.testing.assert_allclose(ours.dense() / unit, usual.dense(), atol=1e-3)


@pytest.mark.parametrize("shape", [(40, 30, 6), (30, 40, 6), (4, 30, 6), (30, 4, 6)])
def test_balanced_factors_are_the_singular_value_decomposition(shape):
    rng = np.random.default_rng(1)
    sizes = 10.0 ** -np.arange(shape[2])  # values spread over ten decades
    left, right = (rng.standard_normal((side, shape[2])) * sizes for side in shape[:2])
    u, values, v = balanced(left, right)
    assert values == pytest.approx(np.linalg.svd(left @ right.T)[1][: len(values)], abs=1e-13)
    assert len(values) == min(shape)
    np.testing.assert_allclose(u * values @ v.T, left @ right.T, atol=1e-12)
    np.testing.assert_allclose(u.T @ u, np.eye(len(values)), atol=1e-12)
    np.testing.assert_allclose(v.T @ v, np.eye(len(values)), atol=1e-12)


TALL = {
    "straight": (lambda common, own: own * 10.0 ** -np.arange(20), 20),
    "leaning": (lambda common, own: common + 0.1 * own, 20),
    "nearly dependent": (lambda common, own: common + 1e-7 * own, 1),
    "alike": (lambda common, own: own[:, np.arange(20) // 2], 10),
    "dependent": (lambda common, own: common * np.ones(20), 1),
    "partly zero": (lambda common, own: own * ([1.0, 1e-7] + [0.0] * 18), 2),
    "small": (lambda common, own: 1e-150 * (common + 1e-7 * own), 20),
    "large": (lambda common, own: 1e150 * (common + 0.1 * own), 20),
    "none": (lambda common, own: own[:, :0], 0),
}


@pytest.mark.parametrize("kind", TALL)
def test_tall_vectors_are_made_orthonormal_however_they_lean(kind):
    rng = np.random.default_rng(3)
    made, rank = TALL[kind]
    vectors = made(rng.standard_normal((600, 1)), rng.standard_normal((600, 20)))
    size = np.abs(vectors).max(initial=1e-300)
    columns, triangle = orthogonal(vectors)
    assert columns.shape == vectors.shape
    np.testing.assert_allclose(columns @ triangle / size, vectors / size, atol=1e-11)
    for found, digits in (
        (columns, 1e-10),
        (basis_of(vectors), 1e-10),
        (nearly_basis_of(vectors), 1e-9),
    ):
        assert found.shape[1] >= rank
        np.testing.assert_allclose(found.T @ found, np.eye(found.shape[1]), atol=digits)
        missed = vectors / size - found @ (found.T @ vectors / size)
        np.testing.assert_allclose(missed, 0.0, atol=1e-6)
