"""Threads inside a fit: the same bits for any number, also in a forked child."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys

import numba
import numpy as np
import pytest

from malocate import LowRankLeastSquares, SoftImpute, Synthetic
from malocate.estimators.engine import orthogonal, spectrum, threads
from malocate.estimators.engine import tall as tall_products


@pytest.fixture
def two_threads(monkeypatch):
    """Hand out even small sweeps, to two threads, whatever the machine has."""
    monkeypatch.setattr(threads, "WORTH_A_THREAD", 0)
    monkeypatch.setattr(threads, "_threads", lambda: 2)


SOFT = SoftImpute(0.5)


def fitted_matrix(estimator=SOFT):
    answers = Synthetic.low_rank(shape=(80, 60), rank=3, rng=0).observe(1500, rng=1)
    return estimator.fit(answers).dense()


@pytest.mark.parametrize("tall", [False, True])
@pytest.mark.parametrize("estimator", [SOFT, SoftImpute(5.0), LowRankLeastSquares()])
def test_two_threads_give_the_same_bits_as_one(estimator, tall, monkeypatch, two_threads):
    if tall:  # as matrices of many lines are
        monkeypatch.setattr(tall_products, "ROWS", 16)
        monkeypatch.setattr(orthogonal, "TALL", 40)
        monkeypatch.setattr(spectrum, "SMALL", 0)
    several = fitted_matrix(estimator)
    monkeypatch.setattr(threads, "_threads", lambda: 1)
    assert np.array_equal(several, fitted_matrix(estimator))


def test_tall_products_are_those_of_whole_matrices_for_any_number_of_threads(
    monkeypatch, two_threads
):
    rng = np.random.default_rng(0)
    tall, other, small = (rng.standard_normal(s) for s in ((3000, 7), (3000, 5), (7, 4)))
    found = tall_products.across(tall, other), tall_products.along(tall, small)
    np.testing.assert_allclose(found[0], tall.T @ other, atol=1e-10)
    np.testing.assert_allclose(found[1], tall @ small, atol=1e-12)
    monkeypatch.setattr(threads, "_threads", lambda: 1)
    assert np.array_equal(found[0], tall_products.across(tall, other))
    assert np.array_equal(found[1], tall_products.along(tall, small))


def test_every_line_is_worked_on_once(two_threads):
    indptr = np.array([0, 5, 5, 5, 90, 91, 100])
    seen = np.zeros(6, dtype=int)

    def work(first, last):
        seen[first:last] += 1

    threads.spread(work, indptr, 1)
    assert seen.tolist() == [1] * 6


@pytest.mark.parametrize("count", [2, 3, 64])
@pytest.mark.parametrize("cost", [0, 10**7, 10**12])
def test_runs_become_shorter_and_leave_nothing_out(count, cost):
    ends = threads._shares(1000, cost, count)
    assert (ends[0], ends[-1]) == (0.0, pytest.approx(1000))
    lengths = np.diff(ends)
    assert (lengths > 0).all()
    assert (np.diff(lengths) <= 1e-9).all()
    assert lengths[0] < 1000 / count or len(lengths) == count  # something is left for the quicker
    assert len(lengths) <= 10 * count


def test_a_worker_error_reaches_the_caller(two_threads):
    def work(first, last):
        if last == 2:
            raise RuntimeError("broken line")

    with pytest.raises(RuntimeError, match="broken line"):
        threads.spread(work, np.array([0, 10, 20]), 1)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_can_fit_after_its_parent_did(two_threads):
    here = fitted_matrix()
    with multiprocessing.get_context("fork").Pool(1) as pool:
        there = pool.apply_async(fitted_matrix).get(timeout=60)
    assert np.array_equal(here, there)


def test_the_number_of_threads_is_numbas(monkeypatch):
    monkeypatch.setattr(numba, "get_num_threads", lambda: 7)
    assert threads._threads() == 7


def test_a_library_that_loads_later_is_pinned_as_well(monkeypatch):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    monkeypatch.setenv("MKL_NUM_THREADS", "2")
    code = """
from malocate.estimators.engine.threads import pinned
with pinned():
    import scipy.linalg
    from threadpoolctl import threadpool_info
    print(*[each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"])
"""
    command = [sys.executable, "-c", code]
    pinned = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    assert set(pinned) == {"1"}
