"""Nothing forms the matrix: few answers about many cells need memory for the answers alone."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import numpy as np
import pytest
from scipy import sparse

from malocate import Completion, Synthetic
from malocate.confidence.contrasts import Side
from malocate.estimators.engine import gram
from malocate.experiments import truth

CEILING = """
    import resource
    import numpy as np
    import malocate
    from malocate import (
        CrossFit, LowRankLeastSquares, Observations, SoftImpute, Synthetic, error_band,
    )

    SHAPE = 60_000, 50_000  # 24 GB as floats, 3 GB as a mask
    source = Synthetic.ratings(shape=SHAPE, rank=2, rng=0)
    answers = source.observe(20_000, rng=1)
    factored = LowRankLeastSquares(rank=2, ridge=3.0, centre="mean")
    used = next(int(line.split()[1]) for line in open("/proc/self/status") if "VmSize" in line)
    most = used * 1024 + 1_200_000_000
    resource.setrlimit(resource.RLIMIT_AS, (most, most))

    cells = np.arange(100), np.arange(100)
    for estimator in (SoftImpute(penalty=6.0, centre="mean"), factored):
        band = error_band(estimator, answers, scheme=CrossFit(2))
        assert np.isfinite(band.upper), band
        assert band.audit is not None and len(band.audit.checks) == 4
        band.interval(*cells)
        band.interval(*cells, of="mean")
        band.completion.predict(*cells)
        band.ensemble.predict(*cells)
        assert next(band.ensemble.blocks())[1].shape[1] == SHAPE[1]
        repr(band), str(band), repr(answers), answers.share_seen
    plain = Observations(answers.rows, answers.cols, answers.values, shape=SHAPE)
    for deliver in ("refit", "ensemble"):
        band = error_band(factored, plain, scheme="holdout", deliver=deliver)
        assert np.isfinite(band.estimate)
    try:
        band.completion.dense()
    except malocate.TooLarge:
        print("done")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits memory")
@pytest.mark.slow
def test_a_band_at_three_thousand_million_cells():
    """1.2 GB of address space beyond the imports, of which threads and compiled code take some."""
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(CEILING)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    assert run.stdout.strip() == "done"


def test_the_mean_over_all_cells_walks_and_holds_nothing():
    done = Completion(np.arange(6.0)[:, None], np.ones((2, 1)))
    mask = np.zeros((6, 2), bool)
    mask[5] = True
    spread = Side().spread(done, mask)
    assert (spread.mean, spread.least, spread.largest) == (2.0, 0.0, 4.0)
    walked = Side()._values(done, None)
    assert next(iter(walked)).size <= 12
    assert not isinstance(walked, list)


def test_a_true_error_needs_no_dense_truth(monkeypatch):
    source = Synthetic.ratings(shape=(40, 30), rank=2, rng=0)
    answers = source.observe(300, rng=1)
    done = Completion(source.left, source.right, clip=(1.0, 5.0))
    segment = source.segment("north")
    known = truth.true_error(source, segment, done, answers.entries)
    looked_up = Synthetic.ratings(shape=(40, 30), rank=2, rng=0)
    monkeypatch.setattr(truth, "DENSE_LIMIT", 100)
    found = truth.true_error(looked_up, segment, done, answers.entries)
    assert found == pytest.approx(known, rel=1e-12)
    assert "truth" not in vars(looked_up)


@pytest.mark.parametrize("share", [0.05, 0.5])
@pytest.mark.parametrize("shape", [(7, 90), (90, 7)])
@pytest.mark.parametrize("at_once", [50, 10_000])
def test_rows_of_a_gram_matrix_are_products_of_the_shorter_lines(
    monkeypatch, share, shape, at_once
):
    monkeypatch.setattr(gram, "AT_ONCE", at_once)
    matrix = sparse.random(*shape, share, format="csr", rng=np.random.default_rng(0))
    matrix.indices = matrix.indices.copy()  # unsorted lines are as good
    matrix.data = matrix.data.copy()
    for first, last in zip(matrix.indptr, matrix.indptr[1:], strict=False):
        matrix.indices[first:last] = matrix.indices[first:last][::-1]
        matrix.data[first:last] = matrix.data[first:last][::-1]
    matrix.has_sorted_indices = False
    short = matrix.toarray() if shape[0] < shape[1] else matrix.toarray().T
    exact, rows_of = short @ short.T, gram.gram_of(matrix)
    for first, last in ((0, 7), (0, 3), (3, 7), (6, 7)):
        found = rows_of(first, last)
        assert found.shape == (last - first, 7 - first)
        np.testing.assert_allclose(np.triu(found), np.triu(exact[first:last, first:]), rtol=1e-12)


@pytest.mark.parametrize("at_a_time", [1, 4, 11, 12, 512])
def test_elimination_by_rows_tells_what_is_above_the_largest_eigenvalue(monkeypatch, at_a_time):
    monkeypatch.setattr(gram, "AT_A_TIME", at_a_time)
    matrix = sparse.random(12, 40, 0.2, format="csr", rng=np.random.default_rng(1))
    largest = np.linalg.norm(matrix.toarray(), 2) ** 2
    rows_of = gram.gram_of(matrix)
    for level, above in (
        (1.5, True),
        (1 + 1e-9, True),
        (1 - 1e-9, False),
        (0.5, False),
        (0, False),
    ):
        assert gram.is_above(level * largest, rows_of, 12) is above
