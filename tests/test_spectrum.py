"""Singular directions of sparse matrices: never above the truth, in no more products than asked."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from malocate.estimators.engine import norms, spectrum

SHAPES = [(700, 300), (60, 600), (50, 49)]


def low_rank(rng, shape, rank):
    return rng.standard_normal((shape[0], rank)) @ rng.standard_normal((rank, shape[1]))


def one_entry(rng, shape, _):
    dense = np.zeros(shape)
    dense[rng.integers(shape[0]), rng.integers(shape[1])] = 3.0
    return dense


def falling(rng, shape, _):
    u, v = (np.linalg.qr(rng.standard_normal((side, 40)))[0] for side in shape)
    return (u * 10.0 ** -np.arange(40)) @ v.T


def filled(rng, shape, _):
    return rng.standard_normal(shape) * (rng.random(shape) < 0.2)


class Counting:
    """A matrix that counts the products with it and its transpose."""

    def __init__(self, matrix):
        self.matrix, self.shape, self.products = matrix, matrix.shape, 0

    def __matmul__(self, other):
        self.products += 1
        return self.matrix @ other

    def __getattr__(self, name):  # of its transpose
        self.products += 1
        return getattr(self.matrix, name)


@pytest.mark.parametrize(("rank", "products"), [(2, 6), (400, 12)])
def test_a_look_takes_two_products_a_round_and_none_for_rounding(rank, products, monkeypatch):
    seen = []
    monkeypatch.setattr(spectrum, "_multipliable", lambda m: seen.append(Counting(m)) or seen[0])
    matrix = sparse.csr_matrix(low_rank(np.random.default_rng(0), (1500, 400), rank))
    found = spectrum.leading(matrix, 8, rounds=6)
    assert seen[0].products <= products
    truth = np.linalg.svd(matrix.toarray(), compute_uv=False)
    assert found.largest == pytest.approx(truth[0], rel=1e-9 if rank == 2 else 0.01)


@pytest.mark.parametrize("boost", [0.0, 1.0, 1e4])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("made", [low_rank, one_entry, falling, filled])
def test_values_are_not_above_the_true_ones_outside_the_bases(made, shape, boost):
    """Even where the matrix is far larger inside the bases, and nothing is left outside."""
    for seed in range(4):
        rng = np.random.default_rng([seed, *shape])
        left, right = (np.linalg.qr(rng.standard_normal((side, 3)))[0] for side in shape)
        dense = made(rng, shape, 1 + seed)
        dense = dense + boost * np.linalg.norm(dense, 2) * left @ rng.random((3, 3)) @ right.T
        outside = dense - left @ (left.T @ dense)
        outside -= (outside @ right) @ right.T
        matrix, largest = sparse.csr_matrix(dense), np.linalg.norm(dense, 2)
        found = spectrum.leading(matrix, 12, without=(left, right), rounds=8)
        truth = np.linalg.svd(outside, compute_uv=False)[: len(found.values)]
        assert (found.values - truth).max() <= 1e-7 * largest
        assert norms.norm_beside(matrix, (left, right), found) <= (1 + 1e-7) * largest


@pytest.mark.parametrize("unit", [1e-80, 1e80])
def test_the_unit_does_not_matter(unit):
    dense = low_rank(np.random.default_rng(0), (600, 300), 5)
    found = spectrum.leading(sparse.csr_matrix(unit * dense), 8, rounds=4)
    truth = np.linalg.svd(dense, compute_uv=False)[:5]
    np.testing.assert_allclose(found.values[:5] / unit, truth, rtol=1e-9)
    dense = falling(np.random.default_rng(1), (60, 600), 0)
    found = spectrum.leading(sparse.csr_matrix(unit * dense), 7, rounds=11)
    truth = np.linalg.svd(dense, compute_uv=False)[: len(found.values)]
    assert (found.values / unit - truth).max() <= 1e-7
