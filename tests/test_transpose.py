"""Cells by row and by column: the order that SciPy gives, for any number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from malocate import Observations, Synthetic
from malocate.estimators.engine import threads, transpose
from malocate.estimators.engine.cells import Cells
from malocate.estimators.engine.table import Table


@st.composite
def seen_cells(draw):
    """Which cells of a matrix are seen; some lines may have none."""
    shape = draw(st.tuples(st.integers(1, 12), st.integers(1, 9)))
    share = draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    seen = np.random.default_rng(draw(st.integers(0, 99))).random(shape) < share
    return sparse.csr_matrix(seen.astype(float))


@given(seen_cells(), st.integers(1, 4), st.sampled_from([0.1, 8]))
def test_the_order_of_the_columns_is_scipys(seen, count, worth):
    indptr, cols = seen.indptr.astype(np.int64), seen.indices.astype(np.int32)
    numbered = sparse.csr_matrix((np.arange(seen.nnz), cols, seen.indptr), seen.shape).tocsc()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(transpose, "WORTH_A_PART", worth)  # so that few cells are several parts
        patch.setattr(threads, "WORTH_A_THREAD", 1)
        patch.setattr(threads, "_threads", lambda: count)
        begins, rows, order = transpose.transposed(indptr, cols, seen.shape[1])
    assert begins.tolist() == numbered.indptr.tolist()
    assert rows.tolist() == numbered.indices.tolist()
    assert order.tolist() == numbered.data.tolist()
    assert (begins.dtype, rows.dtype, order.dtype) == (np.int64, np.int32, np.int32)


@pytest.mark.parametrize("parts", [1, 3, 16])
def test_parts_hold_all_rows_and_about_as_many_cells(parts, monkeypatch):
    monkeypatch.setattr(transpose, "PARTS", parts)
    visits = np.random.default_rng(0).integers(0, 100, 500)
    indptr = np.append(0, np.cumsum(visits))
    cut = transpose._parts(indptr, columns=20)
    assert (cut[0], cut[-1], len(cut)) == (0, 500, parts + 1)
    assert np.ptp(np.diff(indptr[cut])) <= 2 * visits.max()


def test_a_row_longer_than_a_part_is_no_trouble():
    indptr, cols = np.array([0, 0, 90, 91]), np.append(np.arange(90), 5).astype(np.int32)
    begins, rows, order = transpose.transposed(indptr, cols, 90)
    assert rows[begins[5] : begins[6]].tolist() == [1, 2]
    assert order[begins[5] : begins[6]].tolist() == [5, 90]


def test_a_table_that_is_lent_room_gives_the_same_product():
    entries = Synthetic.low_rank(shape=(30, 20), rank=2, rng=0).observe(200, rng=1).entries
    cells, thin = Cells.from_entries(entries), np.random.default_rng(2).random((30, 3))
    room = np.full(len(cells), np.nan)
    own, lent = Table(cells, cells.targets), Table(cells, cells.targets, room)
    assert np.array_equal(own.T @ thin, lent.T @ thin)
    assert np.allclose(lent.T @ thin, own.toarray().T @ thin)
    assert lent.by_column is room


def test_cells_without_any_answer_have_an_order():
    cells = Cells.from_entries(Observations([], [], [], shape=(2, 3)).entries)
    assert [each.tolist() for each in cells.columns] == [[0, 0, 0, 0], [], []]
