"""Answers grouped by entry: right, and independent of their order to the bit."""

from __future__ import annotations

import pickle
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from malocate.problem import Entries, Observations, grouping

COLUMNS = ("indptr", "rows", "cols", "visits", "means", "squares")

numbers = st.floats(-1e6, 1e6, allow_subnormal=False) | st.sampled_from([0.0, -0.0, 0.1, 1e15])


@st.composite
def answers(draw):
    """Answers crowded onto few cells, so that most of them are repeats."""
    shape = draw(st.tuples(st.integers(1, 4), st.integers(1, 4)))
    cells = st.tuples(st.integers(0, shape[0] - 1), st.integers(0, shape[1] - 1), numbers)
    rows, cols, values = np.array(draw(st.lists(cells, max_size=40)), dtype=float).reshape(-1, 3).T
    return Observations(rows.astype(int), cols.astype(int), values, shape=shape)


def by_cell(observations):
    found = defaultdict(list)
    for row, col, value in zip(
        observations.rows.tolist(),
        observations.cols.tolist(),
        observations.values.tolist(),
        strict=True,
    ):
        found[row, col].append(Fraction(value))
    return dict(sorted(found.items()))


def assert_same_bits(one, two):
    assert one.shape == two.shape
    for name in COLUMNS:
        left, right = getattr(one, name), getattr(two, name)
        assert left.dtype == right.dtype
        assert left.tobytes() == right.tobytes(), name


@given(answers())
def test_entries_equal_a_dictionary_in_exact_arithmetic(observations):
    entries, cells = observations.entries, by_cell(observations)
    assert list(zip(entries.rows.tolist(), entries.cols.tolist(), strict=True)) == list(cells)
    assert entries.visits.tolist() == [len(each) for each in cells.values()]
    assert entries.n_answers == len(observations)
    for mean, square, exact in zip(entries.means, entries.squares, cells.values(), strict=True):
        size = float(max(map(abs, exact)))
        centre = sum(exact) / len(exact)
        scatter = float(sum((each - centre) ** 2 for each in exact))
        assert mean == pytest.approx(float(centre), rel=1e-15, abs=1e-14 * size)
        assert square == pytest.approx(scatter, rel=1e-9, abs=(1e-14 * size) ** 2 * len(exact))
        assert float(min(exact)) <= mean <= float(max(exact))


@given(answers())
def test_row_pointers_cut_the_entries_by_row(observations):
    entries = observations.entries
    assert entries.indptr.size == observations.shape[0] + 1
    assert (entries.indptr[0], entries.indptr[-1]) == (0, len(entries))
    for row in range(observations.shape[0]):
        assert (entries.rows[entries.indptr[row] : entries.indptr[row + 1]] == row).all()


@given(answers(), st.randoms(use_true_random=False))
def test_the_order_of_answers_does_not_change_a_bit(observations, random):
    order = list(range(len(observations)))
    random.shuffle(order)
    assert_same_bits(observations.entries, observations.take(order).entries)


@given(answers(), st.integers(1, 7))
def test_the_size_of_blocks_does_not_change_a_bit(observations, size):
    whole = Entries.from_answers(
        observations.rows, observations.cols, observations.values, observations.shape
    )
    numbers = observations.entry_numbers
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grouping, "_BLOCK", size)
        cut = Entries.from_answers(
            observations.rows, observations.cols, observations.values, observations.shape
        )
        assert observations.entry_numbers.tolist() == numbers.tolist()
    assert_same_bits(whole, cut)


@given(answers(), st.integers(1, 7))
def test_whoever_works_on_blocks_does_not_change_a_bit(observations, size):
    def backwards(function, items):
        return reversed([function(item) for item in reversed(list(items))])

    whole = observations.entries
    columns = observations.rows, observations.cols, observations.values
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(2) as threads:
        patch.setattr(grouping, "_BLOCK", size)
        for shared in (backwards, threads.map):
            assert_same_bits(whole, Entries.from_answers(*columns, observations.shape, shared))


@given(answers())
def test_entry_numbers_lead_from_answers_to_entries(observations):
    entries, numbers = observations.entries, observations.entry_numbers
    assert (entries.rows[numbers] == observations.rows).all()
    assert (entries.cols[numbers] == observations.cols).all()
    assert (np.bincount(numbers, minlength=len(entries)) == entries.visits).all()


def test_equal_answers_have_exactly_their_value_and_no_scatter():
    values = np.repeat([0.1, 1 / 3, 1e15 + 0.3], [3, 7, 11])
    rows = np.repeat([0, 1, 2], [3, 7, 11])
    entries = Observations(rows, np.zeros(21, int), values, shape=(3, 1)).entries
    assert entries.means.tolist() == [0.1, 1 / 3, 1e15 + 0.3]
    assert entries.squares.tolist() == [0.0, 0.0, 0.0]


def test_a_small_scatter_survives_a_large_offset():
    values = 1e9 + np.array([0.0, 1.0, 2.0, 3.0])
    entries = Observations([0] * 4, [0] * 4, values, shape=(1, 1)).entries
    assert entries.squares.tolist() == [5.0]


def test_cells_that_do_not_fit_beside_the_place_are_grouped_all_the_same():
    far, rng = 2**31 - 4, np.random.default_rng(5)
    rows, cols = rng.integers(0, 3, (2, 500)).astype(np.int32)
    values = rng.normal(size=500)
    near = grouping.number_answers(rows, cols, (3, 3))
    wide = grouping.number_answers(rows + far, cols + far, (2**31 - 1, 2**31 - 1))
    assert near.tolist() == wide.tolist()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grouping, "_KEY_BITS", 8)
        indirect = Entries.from_answers(rows, cols, values, (3, 3))
    assert_same_bits(indirect, Entries.from_answers(rows, cols, values, (3, 3)))


@given(answers(), st.data())
def test_a_subset_holds_the_same_entries(observations, data):
    entries = observations.entries
    keep = np.array(
        data.draw(st.lists(st.booleans(), min_size=len(entries), max_size=len(entries)))
    )
    keep = keep.astype(bool)
    part = entries.subset(keep)
    for name in COLUMNS[1:]:
        assert (getattr(part, name) == getattr(entries, name)[keep]).all()
    assert (np.diff(part.indptr) == np.bincount(part.rows, minlength=entries.shape[0])).all()
    assert (part.cells == entries.cells[keep]).all()


def test_noise_variance_is_the_plain_mean_over_repeated_entries():
    # Entry (0, 0) has sample variance 2, entry (0, 1) has 1; (1, 0) was seen once.
    entries = Observations(
        [0, 0, 0, 0, 0, 1], [0, 0, 1, 1, 1, 0], [1, 3, 4, 5, 6, 9], shape=(2, 2)
    ).entries
    assert entries.noise_variance == 1.5


@pytest.mark.parametrize("size", [0, 1])
def test_noise_variance_is_nan_without_repeats(size):
    entries = Observations([0] * size, [0] * size, [1.0] * size, shape=(2, 2)).entries
    assert np.isnan(entries.noise_variance)


def test_no_answers_give_no_entries():
    entries = Observations([], [], [], shape=(3, 2)).entries
    assert (len(entries), entries.n_answers, entries.indptr.tolist()) == (0, 0, [0, 0, 0, 0])


def test_dtypes_are_as_promised():
    entries = Observations([0, 1], [1, 1], [1, 2], shape=(2, 2)).entries
    kinds = [getattr(entries, name).dtype.name for name in COLUMNS]
    assert kinds == ["int64", "int32", "int32", "int64", "float64", "float64"]


@pytest.mark.parametrize("name", COLUMNS)
def test_entries_cannot_be_written_even_after_pickling(name):
    entries = Observations([0, 1], [1, 1], [1, 2], shape=(2, 2)).entries
    for each in (entries, pickle.loads(pickle.dumps(entries)), entries.subset(entries.means > 0)):
        with pytest.raises(ValueError, match="read-only"):
            getattr(each, name)[0] = 1


def test_entries_are_computed_once():
    observations = Observations([0, 1], [1, 1], [1, 2], shape=(2, 2))
    assert observations.entries is observations.entries
    assert observations.grouped(None) is observations.entries


@pytest.mark.parametrize("on_disk", [False, True])
def test_entries_are_grouped_by_the_map_given(on_disk, tmp_path):
    asked, observations = [], Observations([0, 1], [1, 1], [1, 2], shape=(2, 2))
    if on_disk:
        observations.save(tmp_path / "answers")
        observations = Observations.open(tmp_path / "answers")

    def noted(function, items):
        asked.append(function)
        return map(function, items)

    assert observations.grouped(noted) is observations.entries
    assert asked
