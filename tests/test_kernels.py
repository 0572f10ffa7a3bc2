"""The kernels under the solvers, against the same thing written in a line of NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from malocate import Observations, Synthetic
from malocate.estimators.engine import lines
from malocate.estimators.engine.cells import Cells
from malocate.estimators.engine.factored import fitted, pull_cells, sweep
from malocate.estimators.engine.momentum import extrapolate
from malocate.estimators.engine.table import Table
from malocate.estimators.engine.tiles import gather


@pytest.fixture(scope="module")
def cells() -> Cells:
    return Cells.from_entries(Synthetic.low_rank((40, 30), 3, rng=0).observe(900, rng=1).entries)


@pytest.fixture
def factors() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    return rng.standard_normal((40, 7)), np.asfortranarray(rng.standard_normal((30, 7)))


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("rank", [1, 3, 4, 5, 8, 11])
def test_gathered_rows_are_the_columns_of_the_block(rank, precision):
    rng = np.random.default_rng(rank)
    other = rng.standard_normal((30, rank)).astype(precision)
    index = rng.integers(0, 30, 16).astype(np.int32)
    block = np.zeros((rank, 20), precision)
    gather(other, index, block, 12)
    assert np.array_equal(block[:, :12], other[index[:12]].T)
    assert not block[:, 12:].any()


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_many_steps_solve_every_line_exactly(cells, precision):
    side = cells.sides(precision).by_row
    rng = np.random.default_rng(2)
    other, ridge = rng.standard_normal((30, 5)).astype(precision), np.full(5, 0.5, precision)
    factor = np.zeros((40, 5), precision)
    loss = sweep(side, factor, other, ridge, 60).sum()
    total = 0.0
    for i in range(40):
        part = slice(side.indptr[i], side.indptr[i + 1])
        known, w, y = other[side.index[part]], side.weights[part], side.targets[part]
        exact = np.linalg.solve((known.T * w) @ known + 0.5 * np.eye(5), known.T @ (w * y))
        np.testing.assert_allclose(factor[i], exact, rtol=2e-3, atol=2e-4)
        total += float(w @ (y - known @ exact) ** 2)
    assert loss == pytest.approx(total, rel=1e-4)


@pytest.mark.parametrize("rank", [0, 1, 2])
def test_a_loss_has_the_same_bits_wherever_its_arrays_lie(rank):
    rng = np.random.default_rng(1)
    long = Cells.from_entries(Synthetic.low_rank((2, 6000), 1, rng=0).observe(9000, rng=1).entries)
    left, right = rng.standard_normal((2, rank)), rng.standard_normal((6000, rank))
    found, held = set(), []
    for size in rng.integers(1, 20_000, 200):
        held.append(np.empty(size))  # moves what is made next
        found.add(pull_cells(long, left, right, np.empty(len(long))))
    assert len(found) == 1


def test_pulls_and_loss_are_those_of_the_fit(cells, factors):
    fit = (factors[0] @ factors[1].T)[cells.rows, cells.cols]
    np.testing.assert_allclose(fitted(cells, *factors), fit, rtol=1e-10, atol=1e-12)
    pulls = np.empty(len(cells))
    loss = pull_cells(cells, *factors, pulls)
    np.testing.assert_allclose(pulls, cells.weights * (cells.targets - fit), atol=1e-12)
    assert loss == pytest.approx(float(cells.weights @ (cells.targets - fit) ** 2))


def test_a_table_multiplies_like_the_matrix(cells, factors):
    table, matrix = Table(cells, cells.targets), cells.matrix(cells.targets)
    assert np.array_equal(table.toarray(), matrix.toarray())
    np.testing.assert_allclose(table @ factors[1], matrix @ factors[1], atol=1e-12)
    np.testing.assert_allclose(table.T @ factors[0], matrix.T @ factors[0], atol=1e-12)


def test_equal_weights_are_kept_once():
    rows, cols = np.divmod(np.arange(12), 4)
    seen = Observations(rows, cols, np.arange(12.0), shape=(3, 4))
    sides = Cells.from_entries(seen.entries).sides(np.float64)
    assert np.shares_memory(sides.by_column.weights, sides.by_row.weights)
    assert sides.by_column.targets.tolist() == np.arange(12.0).reshape(3, 4).T.ravel().tolist()


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("count", [1, 3, lines.NEAR])  # the last takes the way of long lines
def test_blocks_multiply_from_both_sides(count, precision):
    rng = np.random.default_rng(count)
    width = count * 64 // precision().itemsize
    block, x = rng.standard_normal((8, width)).astype(precision), np.zeros((1, 16), precision)
    x[0, :8] = rng.standard_normal(8)
    along, out = np.empty((1, width), precision), np.empty((1, 8), precision)
    lines.combine(block, x, along, count)
    np.testing.assert_allclose(along[0], x[0, :8] @ block, atol=1e-5)
    lines.project(block, along, out, count)
    np.testing.assert_allclose(out[0], block @ along[0], rtol=1e-3, atol=1e-3)


def test_extrapolation_goes_on_from_before(factors):
    now = np.ascontiguousarray(factors[0])
    out = np.empty(now.shape, np.float32)
    extrapolate(now, 0.5 * now, 0.5, out)
    np.testing.assert_allclose(out, 1.25 * now, rtol=1e-6)
