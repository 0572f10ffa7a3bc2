"""The heat map's windows: pages, orders and shades of a matrix that is too large for one page."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from malocate import Observations, SoftImpute
from malocate.drawing.heat import COLUMNS, ROWS, STEPS, heat_of, likings, means_of, shade


@pytest.fixture(scope="module")
def finding():
    rng = np.random.default_rng(0)
    truth = 3 + np.outer(rng.normal(size=95), rng.normal(size=60))
    seen = Observations.from_dense(np.clip(truth, 1, 5), scale=(1, 5))
    band = SimpleNamespace(estimate=0.04, se=0.01)
    return SimpleNamespace(completion=SoftImpute(5.0).fit(seen), band=band)


def test_the_means_are_those_of_the_whole_matrix(finding):
    means, dense = means_of(finding), finding.completion.dense()
    np.testing.assert_allclose(means.rows, dense.mean(axis=1))
    np.testing.assert_allclose(means.columns, dense.mean(axis=0))
    assert (means.low, means.high) == (dense.min(), dense.max())


def test_pages_cover_every_cell_once_in_the_order_asked_for(finding):
    means, labels = means_of(finding), []
    for row_page in (1, 2, 3):
        shown = heat_of(finding, means, (1, 5), rows_by="high", row_page=row_page)
        assert (shown.row_pages, shown.column_pages) == (3, 3)
        assert len(shown.lines) <= ROWS
        assert all(len(line.cells) == COLUMNS for line in shown.lines)
        labels += [int(line.label) for line in shown.lines]
    assert labels == np.argsort(-means.rows, kind="stable").tolist()


def test_a_cell_shows_the_completion_at_its_own_place(finding):
    shown = heat_of(finding, means_of(finding), (1, 5), rows_by="low", columns_by="high")
    row, column = int(shown.lines[3].label), int(shown.columns[7][0])
    value = float(finding.completion.predict(row, column))
    half = 1.6449 * 0.2  # nine of ten, were the errors normal
    low, high = max(1, value - half), min(5, value + half)
    words = f"{row}, {column}: {value:.2f} ({low:.2f} to {high:.2f})"
    assert shown.lines[3].cells[7].words == words
    assert shown.lines[3].cells[7].shade == shade(value, (1, 5))


@pytest.mark.parametrize("page", [-3, 0, 4, 10**6])
def test_a_page_that_is_not_there_is_the_nearest(finding, page):
    shown = heat_of(finding, means_of(finding), None, row_page=page, column_page=page)
    assert shown.row_page == shown.column_page == (1 if page < 1 else 3)


def test_shades_stay_within_the_style_sheet():
    assert [shade(value, (1, 5)) for value in (-9, 1, 5, 99)] == [0, 0, STEPS - 1, STEPS - 1]


def test_the_most_liked_come_first_and_so_do_the_least(finding):
    best, worst = likings(finding, means_of(finding), (1, 5))
    order = np.argsort(-means_of(finding).columns, kind="stable")
    assert [int(each.name) for each in best] == order[:5].tolist()
    assert [int(each.name) for each in worst] == order[::-1][:5].tolist()


def test_where_nobody_judged_no_interval_is_shown(finding):
    bare = SimpleNamespace(completion=finding.completion, band=None)
    shown = heat_of(bare, means_of(bare), (1, 5))
    assert not shown.judged
    assert " to " not in shown.lines[0].cells[0].words
