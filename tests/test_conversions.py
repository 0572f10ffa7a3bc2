"""Answers from and to frames, dense matrices and sparse matrices."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from malocate.errors import InvalidInput, InvalidType
from malocate.problem import Observations

NAN = float("nan")


def tasting(**changes):
    columns = {"row": ["Bo", "Al", "Bo"], "column": ["red", "red", "white"], "value": [4, 5, 2]}
    return pd.DataFrame(columns | changes)


@st.composite
def labelled(draw):
    """Observations with labels, each of which has an answer."""
    d1, d2 = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    size = draw(st.integers(max(d1, d2), 20))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows = np.concatenate([np.arange(d1), rng.integers(0, d1, size - d1)])
    cols = np.concatenate([np.arange(d2), rng.integers(0, d2, size - d2)])
    texts = st.text(max_size=3) | st.sampled_from(["ä", "a b", "NA"])
    sides = st.sampled_from([texts, st.integers(-5, 50), st.tuples(texts, texts)])
    labels = [
        sorted(draw(st.lists(draw(sides), min_size=side, max_size=side, unique=True)))
        for side in (d1, d2)
    ]
    draws = rng.permutation(2 * size)[:size] if draw(st.booleans()) else None
    chances = rng.uniform(0.1, 1, size) if draw(st.booleans()) else None
    settings = {"shape": (d1, d2), "labels": labels, "draws": draws, "probability": chances}
    return Observations(rows, cols, rng.normal(size=size), **settings)


# Frames


@given(labelled())
def test_a_frame_comes_back_as_it_was(made):
    assert Observations.from_frame(made.to_frame()) == made


@given(labelled())
def test_a_frame_shuffled_line_by_line_holds_the_same_draws(made):
    frame = made.to_frame().assign(draw=made.draws)
    again = Observations.from_frame(frame.iloc[::-1])
    assert again == made.take(slice(None, None, -1))


def test_designed_replicates_come_back_even_through_text():
    made = Observations(
        [0, 0], [0, 0], [1, 2], shape=(1, 1), labels=(["a"], ["b"]), repeats=[-1, 0]
    )
    assert Observations.from_frame(made.to_frame()) == made
    frame = made.to_frame()
    frame["repeats"] = frame["repeats"].replace(-1, NAN)  # as read from a file with empty fields
    assert Observations.from_frame(frame) == made


def test_labels_are_sorted_when_they_can_be():
    made = Observations.from_frame(tasting(), scale=(1, 5))
    assert made.labels == (("Al", "Bo"), ("red", "white"))
    assert (made.rows.tolist(), made.cols.tolist()) == ([1, 0, 1], [0, 0, 1])
    assert made.scale == (1, 5)


def test_labels_that_cannot_be_sorted_stand_in_order_of_appearance():
    made = Observations.from_frame(tasting(row=["Bo", 7, "Bo"]))
    assert isinstance(made, Observations)
    assert made.labels == (("Bo", 7), ("red", "white"))


def test_given_labels_fix_the_order_and_make_room():
    made = Observations.from_frame(tasting(), labels=(iter(["Cy", "Bo", "Al"]), ["white", "red"]))
    assert isinstance(made, Observations)
    assert (made.shape, made.rows.tolist(), made.cols.tolist()) == ((3, 2), [1, 2, 1], [1, 1, 0])


@pytest.mark.parametrize("kind", ["category", "str", "object"])
def test_text_labels_of_any_dtype_are_the_same(kind):
    frame = tasting().astype({"row": kind, "column": kind})
    assert Observations.from_frame(frame) == Observations.from_frame(tasting())


@pytest.mark.parametrize("kind", ["int8", "float32", "Int64", "Float64"])
def test_numbers_of_any_dtype_are_the_same(kind):
    frame = tasting().astype({"value": kind})
    assert Observations.from_frame(frame) == Observations.from_frame(tasting())


def test_a_mapping_of_columns_is_a_frame():
    assert Observations.from_frame(tasting().to_dict("list")) == Observations.from_frame(tasting())


def test_columns_can_be_named():
    frame = tasting().rename(columns={"row": "who", "column": "what", "value": "stars"})
    again = Observations.from_frame(frame, row="who", column="what", value="stars")
    assert again == Observations.from_frame(tasting())


def test_a_segment_column_gives_one_each_with_its_own_labels():
    frame = tasting(segment=["north", "south", "north"])
    found = Observations.from_frame(frame)
    assert isinstance(found, dict)
    assert list(found) == ["north", "south"]
    assert found["north"].labels == (("Bo",), ("red", "white"))
    assert found["south"].labels == (("Al",), ("red",))
    assert found["north"].values.tolist() == [4, 2]
    named = Observations.from_frame(frame.rename(columns={"segment": "where"}), segment="where")
    assert named == found


@given(labelled(), labelled())
def test_segments_come_back_as_they_were(one, two):
    frames = [one.to_frame().assign(draw=one.draws), two.to_frame().assign(draw=two.draws)]
    for frame, each in zip(frames, (one, two), strict=True):
        chances = each.probability
        frame["probability"] = np.ones(len(each)) if chances is None else chances
    both = pd.concat([frames[0].assign(segment="b"), frames[1].assign(segment="a")])
    found = Observations.from_frame(both)
    alone = {"a": Observations.from_frame(frames[1]), "b": Observations.from_frame(frames[0])}
    assert found == alone


def test_an_empty_frame_needs_labels():
    empty = tasting().iloc[:0]
    made = Observations.from_frame(empty, labels=(["a"], ["x", "y"]))
    assert isinstance(made, Observations)
    assert (len(made), made.shape) == (0, (1, 2))
    with pytest.raises(InvalidInput, match="The frame has no lines; give labels= to say what"):
        Observations.from_frame(empty)


@pytest.mark.parametrize(
    ("changes", "settings", "sentence"),
    [
        ({"value": [4, NAN, 2]}, {}, "frame['value'][1] is missing; drop unanswered asks before."),
        ({"value": [4, np.inf, 2]}, {}, "frame['value'][1] is inf; an answer must be finite;"),
        ({"value": [4, 5, 7]}, {"scale": (1, 5)}, "frame['value'][2] is 7; the scale is 1 to 5."),
        ({"value": ["4", "5", "2"]}, {}, "frame['value'] has dtype"),
        ({"value": [True, False, True]}, {}, "frame['value'] has dtype bool; it must hold real"),
        ({"row": ["Bo", None, "Bo"]}, {}, "frame['row'][1] is missing; each line needs a label."),
        ({"column": [1.0, 2.0, NAN]}, {}, "frame['column'][2] is missing; each line needs a label"),
        ({"segment": ["n", None, "s"]}, {}, "frame['segment'][1] is missing; each line needs a"),
        ({}, {"row": "who"}, "The frame has no column 'who'; it has 'row', 'column', 'value'."),
        ({}, {"segment": "place"}, "The frame has no column 'place'; it has 'row', 'column', 'val"),
        (
            {},
            {"labels": (["Bo"], ["red", "white"])},
            "frame['row'][1] is 'Al', which is not among the labels.",
        ),
        ({}, {"labels": 3}, "labels must be two sequences, (row labels, column labels)."),
        ({"draw": [0, 1, 1]}, {}, "draws[1] and draws[2] are both 1;"),
        ({"draw": [0, 1.5, 2]}, {}, "frame['draw'][1] is 1.5; it must be a whole number."),
        ({"draw": [0, 1, 1e300]}, {}, "frame['draw'][2] is 1e+300; a float stands for a whole"),
        ({"draw": [0, NAN, 2]}, {}, "frame['draw'][1] is missing;"),
        ({"draw": ["0", "1", "2"]}, {}, "draws has dtype object; it must hold integers."),
        ({"draw": np.array([0, 1, 2**64 - 1], np.uint64)}, {}, f"draws[2] is {2**64 - 1}; draw"),
        ({"repeats": [-1, -1, 0.5]}, {}, "frame['repeats'][2] is 0.5; it must be a whole number."),
        ({"repeats": ["a", None, "b"]}, {}, "repeats has dtype object; it must hold integers."),
        ({"row": [["Bo"], "Al", "Bo"]}, {}, "frame['row'][0] is ['Bo']; a label must be hashable."),
        ({"segment": ["n", {}, "s"]}, {}, "frame['segment'][1] is {}; a label must be hashable."),
        ({}, {"row": ["row"]}, "row= is ['row']; a label must be hashable."),
        ({}, {"labels": (["Bo", []], ["red"])}, "row label 1 is []; a label must be hashable."),
        ({}, {"mask": [[True], [True, False]]}, "mask is a ragged list; the matrix has shape"),
        (
            {"segment": ["n", "s", "n"], "draw": [1, 1, 1]},
            {},
            "Segment 'n': draws[0] and draws[1] are both 1;",
        ),
    ],
)
def test_bad_frames_are_refused_by_line(changes, settings, sentence):
    with pytest.raises((InvalidInput, InvalidType), match="^" + re.escape(sentence)):
        Observations.from_frame(tasting(**changes), **settings)


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("file.csv", "frame is 'file.csv'; it must be a pandas frame, such as pandas.read_csv"),
        (5, "frame is 5; it must be a pandas frame,"),
        (None, "frame is None; it must be a pandas frame,"),
        ({"row": [1], "column": [1, 2], "value": [3]}, "frame is a dict that pandas makes no fra"),
        ({"row": 1, "column": 2, "value": 3}, "frame is a dict that pandas makes no frame of (If"),
        ([], "The frame has no column 'value'; it has none."),
    ],
)
def test_what_is_no_frame_is_refused(source, sentence):
    with pytest.raises((InvalidInput, InvalidType), match="^" + re.escape(sentence)):
        Observations.from_frame(source)


@pytest.mark.parametrize("kind", ["float64", "Int64", "object", "category"])
def test_whole_numbers_of_any_dtype_are_draws(kind):
    same_cell = {"row": ["Bo"] * 3, "column": ["red"] * 3}
    numbers = {
        "draw": pd.Series([4, 7, 9]).astype(kind),
        "repeats": pd.Series([NAN, NAN, 4]).astype(kind),
    }
    made = Observations.from_frame(tasting(**same_cell, **numbers))
    assert isinstance(made, Observations)
    assert (made.draws.tolist(), made.repeats.tolist()) == ([4, 7, 9], [-1, -1, 4])


def test_ordered_categories_keep_their_order():
    sizes = pd.Categorical(["tall", "short", "mid"], ["short", "mid", "tall", "none"], ordered=True)
    made = Observations.from_frame(tasting(column=sizes))
    assert isinstance(made, Observations)
    assert made.labels == (("Al", "Bo"), ("short", "mid", "tall"))
    assert made.cols.tolist() == [2, 0, 1]
    assert list(Observations.from_frame(tasting(segment=sizes))) == ["short", "mid", "tall"]


def test_two_columns_of_one_name_are_refused():
    frame = tasting(other=[1, 2, 3]).rename(columns={"other": "value"})
    with pytest.raises(InvalidInput, match="several columns 'value'; rename all but one"):
        Observations.from_frame(frame)


def test_a_frame_without_labels_has_numbers():
    frame = Observations([1], [2], [4.0], shape=(2, 3)).to_frame()
    assert frame.to_dict("list") == {"row": [1], "column": [2], "value": [4.0]}


# Dense matrices

matrices = st.integers(1, 5).flatmap(
    lambda width: st.lists(
        st.lists(st.floats(-5, 5) | st.just(NAN), min_size=width, max_size=width),
        min_size=1,
        max_size=5,
    )
)


@given(matrices)
def test_a_dense_matrix_comes_back_as_it_was(matrix):
    made = Observations.from_dense(matrix)
    again = np.full(made.shape, NAN)
    again[made.rows, made.cols] = made.values
    assert np.array_equal(again, np.array(matrix), equal_nan=True)
    assert len(made) == np.count_nonzero(~np.isnan(matrix))


def test_integers_are_all_seen():
    assert len(Observations.from_dense(np.ones((2, 3), int), scale=(0, 1))) == 6


@pytest.mark.parametrize("kind", ["float64", "Float64"])
def test_a_frame_lends_its_labels_to_a_dense_matrix(kind):
    frame = pd.DataFrame({"red": [1, NAN], "white": [NAN, 4]}, index=["Al", "Bo"]).astype(kind)
    made = Observations.from_dense(frame)
    assert made.labels == (("Al", "Bo"), ("red", "white"))
    assert made.values.tolist() == [1, 4]
    assert Observations.from_dense(frame, labels=([3, 4], [1, 2])).labels == ((3, 4), (1, 2))


@pytest.mark.parametrize(
    ("matrix", "sentence"),
    [
        ([[1, 2], [3, np.inf]], "matrix[1, 1] is inf; an answer must be finite;"),
        ([[1, NAN], [7, 3]], "matrix[1, 0] is 7; the scale is 1 to 5."),
        ([1, 2, 3], "The matrix has 1 dimensions; it must have two."),
        ([[1, 2], [3]], "matrix is a ragged list; all of its rows must have one length."),
        (np.zeros((0, 3)), "shape is (0, 3); both sides must be at least 1."),
        ([[True, False]], "matrix has dtype bool; it must hold real numbers."),
        ([["1", "2"]], "matrix has dtype <U1; it must hold real numbers."),
        (np.ma.array([[1.0]]), "The matrix is a masked array; give matrix.filled(numpy.nan)."),
        (sparse.eye_array(2), "The matrix is sparse; read it with Observations.from_sparse."),
        (pd.DataFrame({"a": ["x"]}), "column 'a' has dtype"),
    ],
)
def test_bad_dense_matrices_are_refused(matrix, sentence):
    with pytest.raises((InvalidInput, InvalidType), match="^" + re.escape(sentence)):
        Observations.from_dense(matrix, scale=(1, 5))


# Sparse matrices


@given(labelled(), st.sampled_from([sparse.coo_array, sparse.coo_matrix]))
def test_a_sparse_matrix_comes_back_as_it_was(made, kind):
    stored = kind((made.values, (made.rows, made.cols)), shape=made.shape)
    again = Observations.from_sparse(stored, labels=made.labels)
    plain = Observations(made.rows, made.cols, made.values, shape=made.shape, labels=made.labels)
    assert again == plain
    assert stored.nnz == len(made)  # repeats were not summed in place either


@pytest.mark.parametrize("form", ["csr", "csc", "lil", "dok", "bsr"])
def test_every_sparse_form_gives_the_same_entries(form):
    dense = np.array([[0, 2.0, 0], [3, 0, 1]])
    entries = Observations.from_sparse(sparse.coo_array(dense).asformat(form)).entries
    found = {(r, c): m for r, c, m in zip(entries.rows, entries.cols, entries.means, strict=True)}
    assert found.items() >= {(0, 1): 2.0, (1, 0): 3.0, (1, 2): 1.0}.items()


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_matrix])
def test_repeats_and_zeros_stored_in_compressed_matrices_are_answers(kind):
    repeated = kind(([4.0, 0.0, 2.0], [1, 0, 0], [0, 1, 3]), shape=(2, 2))
    made = Observations.from_sparse(repeated, scale=(0, 5))
    assert sorted(made.values.tolist()) == [0, 2, 4]
    assert sorted(made.entries.visits.tolist()) == [1, 2]


@pytest.mark.parametrize(
    ("matrix", "sentence"),
    [
        (np.eye(2), "The matrix is a ndarray, not a SciPy sparse matrix; read a dense one with"),
        (sparse.coo_array([[0, NAN]]), "matrix[0, 1] is nan; an answer must be finite;"),
        (sparse.coo_array([[0, 0], [7, 0]]), "matrix[1, 0] is 7; the scale is 1 to 5."),
        (sparse.coo_array([[True]]), "matrix has dtype bool; it must hold real numbers."),
        (sparse.coo_array([1, 2]), "The matrix has 1 dimensions; it must have two."),
    ],
)
def test_bad_sparse_matrices_are_refused(matrix, sentence):
    with pytest.raises((InvalidInput, InvalidType), match="^" + re.escape(sentence)):
        Observations.from_sparse(matrix, scale=(1, 5))


def test_observations_need_numpy_only():
    code = (
        "import sys; from malocate.problem import Observations;"
        "Observations([0], [0], [1.0], shape=(1, 1)).entries;"
        "sys.exit(any(name in sys.modules for name in ('pandas', 'scipy', 'numba')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
