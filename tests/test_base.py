"""Completion, Status and the helpers that every estimator shares."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from malocate import Completion, InvalidInput, InvalidType, Observations, Status, TooLarge
from malocate.estimators import base
from malocate.estimators.base import check_start, empty_completion
from malocate.estimators.centring import Centre


@pytest.fixture
def done():
    rng = np.random.default_rng(0)
    return Completion(
        rng.standard_normal((4, 2)),
        rng.standard_normal((3, 2)),
        Centre(1.0, rng.standard_normal(4), rng.standard_normal(3)),
        Status.OUT_OF_STEPS,
        0.25,
        (-1.0, 1.2),
        (("a", "b", "c", "d"), (1, 2.5, 7)),
        {"penalty": np.float64(2.0), "rule": "universal", "path": np.arange(3.0), "steps": 4},
    )


def by_hand(done):
    values = done.left @ done.right.T + done.centre.offset
    values = values + done.centre.rows[:, None] + done.centre.cols
    return np.clip(values, -1.0, 1.2)


def test_predict_dense_and_blocks_agree(done):
    expected = by_hand(done)
    assert (expected == 1.2).any()
    assert (expected == -1.0).any()
    np.testing.assert_allclose(done.dense(), expected)
    rows, cols = np.indices(done.shape)
    np.testing.assert_allclose(done.predict(rows, cols), expected)
    np.testing.assert_allclose(done.predict(2, [0, 2]), expected[2, [0, 2]])
    walked = list(done.blocks(cells=5))
    assert [rows.start for rows, _ in walked] == [0, 1, 2, 3]
    np.testing.assert_allclose(np.vstack([block for _, block in walked]), expected)


def test_predict_in_pieces_equals_predict_at_once(done, monkeypatch):
    rows, cols = np.indices(done.shape)
    whole = done.predict(rows, cols)
    monkeypatch.setattr(base, "_GATHERED", 3)
    np.testing.assert_array_equal(done.predict(rows, cols), whole)


def test_predict_of_no_cells_is_empty(done):
    assert done.predict([], []).shape == (0,)


@pytest.mark.parametrize(
    ("rows", "cols", "error", "words"),
    [
        ([0, 4], [0, 0], InvalidInput, "rows holds 4; this completion has rows 0 to 3."),
        ([0], [-1], InvalidInput, "cols holds -1; this completion has cols 0 to 2."),
        ([0.0], [0], InvalidType, "rows has dtype float64; predict takes integer indices."),
        ([True], [0], InvalidType, "rows has dtype bool; predict takes integer indices."),
        ([0, 1], [0, 1, 2], InvalidInput, r"rows has shape \(2,\) and cols has shape \(3,\); pr"),
        ([[0, 1]], [[0], [1], [2, 0]], InvalidInput, "cols is a ragged list; predict takes"),
    ],
)
def test_predict_refuses_what_is_no_cell(done, rows, cols, error, words):
    with pytest.raises(error, match=words):
        done.predict(rows, cols)


@pytest.mark.parametrize("cells", [20.5, 0, None, True])
def test_blocks_refuse_a_size_at_once(done, cells):
    with pytest.raises((InvalidInput, InvalidType), match=f"cells is {cells}; it must be"):
        done.blocks(cells)


def test_a_large_dense_matrix_must_be_forced(done, monkeypatch):
    monkeypatch.setattr(base, "DENSE_LIMIT", 11)
    words = r"shape \(4, 3\) has 12 cells, more than the limit of 11; walk `blocks\(\)`"
    with pytest.raises(TooLarge, match=words):
        done.dense()
    with pytest.raises(TooLarge, match=words):
        done.to_frame()
    np.testing.assert_allclose(done.dense(force=True), by_hand(done))


def test_a_completion_cannot_be_changed(done):
    for array in (done.left, done.right, done.memory["path"], done.centre.rows):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 9.0
    with pytest.raises(TypeError):
        done.memory["penalty"] = 3.0
    with pytest.raises(AttributeError):
        done.gap = 0.0


def test_a_completion_does_not_share_the_factors_it_was_given():
    left = np.ones((2, 1))
    done = Completion(left, np.ones((2, 1)))
    left[0] = 9.0
    assert done.predict(0, 0) == 1.0


def test_a_completion_reads_as_a_line(done):
    limit = "the step limit came before the tolerance: usable, but not finished"
    assert repr(done) == f"Completion(4×3, rank 2, gap 0.25, {limit})"


@pytest.mark.parametrize(
    ("made", "error", "words"),
    [
        ({"left": np.ones(2)}, InvalidInput, r"shapes \(2,\) and \(3, 1\); both must be two-dim"),
        ({"left": np.ones((2, 2))}, InvalidInput, "with the same number of columns"),
        ({"left": np.full((2, 1), np.nan)}, InvalidInput, "hold NaN or infinity"),
        ({"centre": Centre(np.inf)}, InvalidInput, "hold NaN or infinity"),
        ({"centre": Centre(0, [1.0])}, InvalidInput, r"are 1 row effects .* shape \(2, 3\)"),
        ({"labels": ("ab", "cd")}, InvalidInput, r"are 2 column labels .* shape \(2, 3\)"),
        ({"memory": {"x": [1]}}, InvalidType, r"memory\['x'\] is a list; a completion remembers"),
        ({"memory": {"x": np.array(["a"])}}, InvalidType, r"memory\['x'\] is a ndarray"),
    ],
)
def test_a_completion_that_does_not_hang_together_is_refused(made, error, words):
    with pytest.raises(error, match=words):
        Completion(**{"left": np.ones((2, 1)), "right": np.ones((3, 1))} | made)


def copies(done, tmp_path):
    done.save(tmp_path / "done.npz")
    return Completion.load(tmp_path / "done.npz"), pickle.loads(pickle.dumps(done))


def test_saving_and_pickling_give_the_same_completion_back(done, tmp_path):
    for copy in copies(done, tmp_path):
        np.testing.assert_array_equal(copy.dense(), done.dense())
        assert (copy.status, copy.gap, copy.clip) == (done.status, done.gap, done.clip)
        assert copy.labels == done.labels
        assert [type(label) for label in copy.labels[1]] == [int, float, int]
        assert copy.memory["path"].tolist() == [0.0, 1.0, 2.0]
        assert {k: v for k, v in copy.memory.items() if k != "path"} == {
            "penalty": 2.0,
            "rule": "universal",
            "steps": 4,
        }
        with pytest.raises(ValueError, match="read-only"):
            copy.centre.rows[0] = 9.0


def test_a_bare_completion_comes_back_bare(tmp_path):
    for copy in copies(Completion(np.zeros((2, 0)), np.zeros((5, 0))), tmp_path):
        assert (copy.shape, copy.rank, copy.clip, copy.labels) == ((2, 5), 0, None, None)
        assert math.isnan(copy.gap)
        assert (copy.dense() == 0).all()


def test_the_file_has_exactly_the_name_that_was_given(done, tmp_path):
    done.save(tmp_path / "done")
    assert [path.name for path in tmp_path.iterdir()] == ["done"]
    assert Completion.load(str(tmp_path / "done")).shape == (4, 3)


def test_a_label_that_no_file_keeps_is_named(tmp_path):
    labels = ((("north", 1), ("south", 2)), ("x",))
    done = Completion(np.ones((2, 1)), np.ones((1, 1)), labels=labels)
    with pytest.raises(InvalidType, match=r"row label \('north', 1\) is a tuple; .* pickle"):
        done.save(tmp_path / "done.npz")
    assert not (tmp_path / "done.npz").exists()


def other_file(tmp_path, kind):
    path = tmp_path / "other"
    match kind:
        case "text":
            path.write_text("row,column,value\n")
        case "empty":
            path.write_bytes(b"")
        case "npy":
            with path.open("wb") as file:
                np.save(file, np.ones(3))
        case "npz":
            with path.open("wb") as file:
                np.savez(file, left=np.ones(3))
        case "other head":
            with path.open("wb") as file:
                np.savez(file, head=np.frombuffer(b'{"format": 3}', dtype=np.uint8))
        case "pickled head":
            with path.open("wb") as file:
                np.savez(file, head=np.array([{}], dtype=object))
    return path


@pytest.mark.parametrize("kind", ["text", "empty", "npy", "npz", "other head", "pickled head"])
def test_a_file_that_is_not_ours_is_refused(tmp_path, kind):
    with pytest.raises(InvalidInput, match=r"other is not a saved completion; `Completion.save`"):
        Completion.load(other_file(tmp_path, kind))


def test_a_later_format_is_refused(done, tmp_path, monkeypatch):
    monkeypatch.setattr("malocate.estimators.storage.VERSION", 9)
    done.save(tmp_path / "done.npz")
    monkeypatch.undo()
    with pytest.raises(InvalidInput, match=r"written by a later malocate \(format 9; .* up to 1"):
        Completion.load(tmp_path / "done.npz")


def test_frames_carry_labels_or_numbers(done):
    frame = done.to_frame()
    assert frame.columns.tolist() == ["row", "column", "value"]
    assert frame["row"].tolist() == list("aaabbbcccddd")
    assert frame["column"].tolist() == [1, 2.5, 7] * 4
    np.testing.assert_array_equal(frame["value"], done.dense().ravel())
    bare = Completion(np.ones((2, 1)), np.ones((2, 1))).to_frame()
    assert bare["row"].tolist() == [0, 0, 1, 1]


def test_a_start_of_another_matrix_is_refused():
    seen = Observations([0], [0], [1.0], shape=(2, 3))
    check_start(seen, None)
    check_start(seen, Completion(np.ones((2, 1)), np.ones((3, 1))))
    with pytest.raises(
        InvalidInput, match=r"start has shape \(3, 2\) and .* shape \(2, 3\); start"
    ):
        check_start(seen, Completion(np.ones((3, 1)), np.ones((2, 1))))
    with pytest.raises(InvalidType, match="start is a ndarray; it must be a Completion"):
        check_start(seen, np.ones((2, 3)))


def test_without_answers_or_a_scale_the_completion_is_zero():
    done = empty_completion(
        Observations([], [], [], shape=(2, 3), labels=(list("ab"), list("xyz")))
    )
    assert (done.dense() == 0).all()
    assert done.labels == (("a", "b"), ("x", "y", "z"))
    assert "no answers yet" in done.status.value
