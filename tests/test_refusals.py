"""Observations: bad input is refused with a sentence that names the place."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from malocate.errors import InvalidInput, InvalidType
from malocate.problem import Observations

GOOD = {"rows": [0, 1, 1], "cols": [0, 2, 2], "values": [3.0, 4.0, 5.0], "shape": (2, 3)}


def observations(**changes):
    return Observations(**{**GOOD, **changes})


NAN = float("nan")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"rows": [0, 2, 1]}, "rows[1] is 2; shape (2, 3) has rows 0 to 1."),
        ({"rows": [0, 1, -1]}, "rows[2] is -1; shape (2, 3) has rows 0 to 1."),
        ({"cols": [3, 1, 1]}, "cols[0] is 3; shape (2, 3) has columns 0 to 2."),
        ({"rows": np.array([0, 1, 2**63], np.uint64)}, f"rows[2] is {2**63}; shape (2, 3)"),
        ({"values": [1, NAN, 2]}, "values[1] is nan; an answer must be finite; drop unanswered"),
        ({"values": [1, 2, np.inf]}, "values[2] is inf; an answer must be finite"),
        ({"values": [-np.inf, NAN, 2]}, "values[0] is -inf; an answer must be finite"),
        ({"values": [1, 1e200, 2]}, "values[1] is 1e+200; an answer must be between -1e+100 and"),
        ({"values": [1, 6, 2], "scale": (1, 5)}, "values[1] is 6; the scale is 1 to 5."),
        ({"values": [1, 0.5, 9], "scale": (1, 5)}, "values[1] is 0.5; the scale is 1 to 5."),
        ({"values": [1, NAN, 9], "scale": (1, 5)}, "values[1] is nan; an answer must be finite"),
        ({"values": [1.0, 2.0]}, "The lengths differ: rows 3, cols 3, values 2; there must be one"),
        ({"draws": [1]}, "The lengths differ: rows 3, cols 3, values 3, draws 1;"),
        ({"values": [[1.0, 2.0, 3.0]]}, "values has 2 dimensions, shape (1, 3);"),
        ({"rows": 0}, "rows has 0 dimensions, shape ();"),
        ({"values": [[1.0], [2.0, 3.0]]}, "values is a ragged list; it must be one-dimensional."),
        ({"shape": (0, 3)}, "shape is (0, 3); both sides must be at least 1."),
        ({"shape": (2, -3)}, "shape is (2, -3); both sides must be at least 1."),
        ({"shape": (2,)}, "shape is (2,); it must be two integers, (rows, columns)."),
        ({"shape": 6}, "shape is 6; it must be two integers, (rows, columns)."),
        ({"shape": (True, 3)}, "shape is (True, 3); it must be two integers"),
        ({"shape": (2**31, 3)}, "shape is (2147483648, 3); a side can be at most 100,000,000."),
        ({"scale": (5, 1)}, "scale is (5, 1); it must be two finite numbers, the least answer"),
        ({"scale": (0, 10**400)}, "scale is (0, 1000000000000000"),
        ({"mask": [[True], [True, False]]}, "mask is a ragged list; the matrix has shape (2, 3)."),
        ({"draws": np.array([0, 1, 2**63], np.uint64)}, f"draws[2] is {2**63}; draw numbers end"),
        ({"labels": ([pd.NA, "b"], list("xyz"))}, "row label 0 is missing;"),
        ({"scale": (3, 3)}, "scale is (3, 3); it must be two finite numbers, the least answer"),
        ({"scale": (0, np.inf)}, "scale is (0, inf); it must be two finite numbers"),
        ({"scale": (NAN, 5)}, "scale is (nan, 5); it must be two finite numbers"),
        ({"labels": ("ab", "x")}, "labels must be two sequences, (row labels, column labels)."),
        ({"labels": (["a"], ["x", "y", "z"])}, "There are 1 row labels for 2 rows; give one per"),
        ({"labels": (["a", "b"], ["x", "y"])}, "There are 2 column labels for 3 columns;"),
        (
            {"labels": (["a", "b"], ["x", "y", "x"])},
            "column label 'x' stands at 0 and at 2; labels must not repeat.",
        ),
        ({"labels": (["a", None], "xyz")}, "labels must be two sequences"),
        ({"labels": (["a", None], list("xyz"))}, "row label 1 is missing; every row needs a label"),
        ({"labels": ([NAN, "b"], list("xyz"))}, "row label 0 is missing;"),
        ({"mask": np.zeros((3, 2), bool)}, "mask has shape (3, 2); the matrix has shape (2, 3)."),
        (
            {"mask": np.array([[0, 0, 0], [0, 0, 1]], bool)},
            "Answer 1 is at cell (1, 2), which the mask marks as not askable; drop the answer or",
        ),
        ({"draws": [4, 2, 4]}, "draws[0] and draws[2] are both 4; each answer has a draw number"),
        ({"draws": [4, -2, 5]}, "draws[1] is -2; draw numbers start at 0."),
        ({"repeats": [-1, -2, -1]}, "repeats[1] is -2; give the draw it repeats, or -1 for none."),
        ({"repeats": [-1, -1, 7]}, "repeats[2] is draw 7, which is not among the draws."),
        ({"repeats": [-1, -1, 0]}, "repeats[2] is draw 0, which is at another cell;"),
        ({"repeats": [-1, 1, -1]}, "repeats[1] is draw 1, itself a replicate;"),
        ({"draws": [5, 1, 9], "repeats": [-1, -1, 4]}, "repeats[2] is draw 4, which is not among"),
        ({"probability": [0.5, 0, 0.5]}, "probability[1] is 0; it must be above 0 and at most 1."),
        ({"probability": [0.5, 0.5, 1.5]}, "probability[2] is 1.5; it must be above 0 and at"),
        ({"probability": [NAN, 0.5, 0.5]}, "probability[0] is nan; it must be above 0 and at"),
    ],
)
def test_bad_values_are_refused_by_a_sentence_that_names_the_place(change, sentence):
    with pytest.raises((InvalidInput, InvalidType), match="^" + re.escape(sentence)):
        observations(**change)


def test_a_chain_of_replicates_is_refused():
    with pytest.raises(InvalidInput, match=r"repeats\[2\] is draw 1, itself a replicate; name the"):
        Observations([0] * 3, [0] * 3, [1, 2, 3], shape=(1, 1), repeats=[-1, 0, 1])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"rows": [0.0, 1.0, 1.0]}, "rows has dtype float64; it must hold integers; cast whole"),
        ({"rows": [True, False, True]}, "rows has dtype bool; it must hold integers."),
        ({"cols": ["0", "1", "2"]}, "cols has dtype <U1; it must hold integers."),
        ({"cols": [0, None, 1]}, "cols has dtype object; it must hold integers."),
        ({"values": [True, False, True]}, "values has dtype bool; it must hold real numbers."),
        ({"values": ["3", "4", "5"]}, "values has dtype <U1; it must hold real numbers."),
        ({"values": [3, None, 5]}, "values has dtype object; it must hold real numbers."),
        ({"values": [3, 4j, 5]}, "values has dtype complex128; it must hold real numbers."),
        ({"values": np.ma.array([1, 2, 3])}, "values is a masked array; pass only the unmasked"),
        ({"draws": [0.0, 1.0, 2.0]}, "draws has dtype float64; it must hold integers"),
        ({"repeats": [NAN, 0, 1]}, "repeats has dtype float64; it must hold integers"),
        ({"probability": ["a", "b", "c"]}, "probability has dtype <U1; it must hold real"),
        ({"shape": (2.0, 3)}, "shape is (2.0, 3); both sides must be integers."),
        ({"shape": ("2", "3")}, "shape is ('2', '3'); both sides must be integers."),
        ({"scale": 5}, "scale is 5; it must be two numbers, (least, largest)."),
        ({"scale": ("1", "5")}, "scale is ('1', '5'); it must be two numbers"),
        ({"scale": (False, True)}, "scale is (False, True); it must be two numbers"),
        ({"mask": np.zeros((2, 3), int)}, "mask has dtype int64; it must be boolean"),
        ({"labels": 3}, "labels must be two sequences, (row labels, column labels)."),
        ({"labels": ([["a"], "b"], list("xyz"))}, "row label 0 is ['a']; a label must be hashable"),
    ],
)
def test_wrong_types_are_refused(change, sentence):
    with pytest.raises(InvalidType, match="^" + re.escape(sentence)):
        observations(**change)
