"""SPSS files: what they say about their numbers survives, whatever it is."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from malocate.errors import InvalidInput
from malocate.files import Variable, read_answers, read_table, write_table

NUMBERS = st.integers(-999, 999).map(float) | st.sampled_from([0.5, 2.25, 1e9])
LETTERS = st.characters(codec="utf-8", categories=("L", "N", "P", "Zs"))
WORDS = st.text(LETTERS, min_size=1, max_size=25).map(str.strip).filter(bool)
NAMES = st.text(LETTERS, min_size=1, max_size=12).map(str.strip).filter(bool)
CODES = st.lists(NUMBERS, max_size=3, unique=True).map(tuple)
RANGE = st.tuples(NUMBERS, NUMBERS).map(sorted).map(tuple).filter(lambda ends: ends[0] < ends[1])
MISSING = CODES | st.tuples(RANGE) | st.tuples(RANGE, NUMBERS)


@st.composite
def tables(draw):
    """Give a frame and its codebook."""
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique_by=str.casefold))
    count = draw(st.integers(1, 6))
    frame, codebook = {}, {}
    for name in names:
        labels = draw(st.dictionaries(NUMBERS, WORDS, max_size=4))
        variable = Variable("", labels, draw(MISSING))
        cells = NUMBERS | st.just(math.nan) | st.sampled_from([*labels, 1.0])
        frame[name] = draw(st.lists(cells, min_size=count, max_size=count))
        if variable != Variable():
            codebook[name] = variable
    return pd.DataFrame(frame), codebook


def parts(codebook):
    """Give what a codebook says; declared codes are a set."""
    return {
        name: (each.title, dict(each.labels), set(each.missing)) for name, each in codebook.items()
    }


@settings(max_examples=60, deadline=None)
@given(tables(), st.sampled_from(["sav", "xlsx", "parquet"]))
def test_labels_and_missing_codes_survive_a_round_trip(table, ending):
    frame, codebook = table
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"table.{ending}")
        write_table(frame, path, codebook=codebook)
        back = read_table(path)
        again = Path(folder, f"again.{ending}")
        write_table(back.frame, again, codebook=back.codebook)
        twice = read_table(again)
    for read in (back, twice):
        assert read.names == list(frame.columns)
        assert parts(read.codebook) == parts(codebook)
        if ending != "xlsx" or len(read.frame) == len(frame):  # empty lines of a sheet are none
            pd.testing.assert_frame_equal(read.frame.astype(float), frame.astype(float))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from([1.0, 5.0, 97.0, 98.0, 99.0, math.nan]), min_size=1, max_size=9))
def test_reasons_stay_apart_through_an_spss_file(values):
    labels = {97.0: "REFUSED", 98.0: "Don't know", 99.0: "Not asked", 5.0: "very good"}
    told = {97.0: "refused", 98.0: "don't know", 99.0: "not asked"}
    frame = pd.DataFrame({"row": [str(k) for k in range(len(values))], "column": "x"})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "answers.sav")
        codebook = {"value": Variable("Liking", labels, (97.0, 98.0, 99.0))}
        write_table(frame.assign(value=values), path, codebook=codebook)
        answers = read_answers(path, scale=(1, 5))
    expected = ["empty" if v != v else told.get(v, "") for v in values]
    assert answers.frame["reason"].tolist() == expected
    numbers = answers.frame["value"].tolist()
    assert [v for v in numbers if not math.isnan(v)] == [v for v in values if v in (1.0, 5.0)]


@pytest.mark.parametrize(
    "missing", [(1.0, 2.0, 3.0, 4.0), ((1.0, 2.0), (4.0, 5.0)), ((1.0, 2.0), 3.0, 4.0)]
)
def test_more_missing_codes_than_spss_holds_are_refused(tmp_path, missing):
    with pytest.raises(InvalidInput, match="SPSS takes three codes, or one range and one code"):
        write_table(
            pd.DataFrame({"a": [1.0]}),
            tmp_path / "a.sav",
            codebook={"a": Variable(missing=missing)},
        )
    assert list(tmp_path.iterdir()) == []


def test_the_title_of_a_variable_is_kept(tmp_path):
    codebook = {"q1": Variable("How do you like it?", {1.0: "not at all"})}
    write_table(pd.DataFrame({"q1": [1.0]}), tmp_path / "a.sav", codebook=codebook)
    assert read_table(tmp_path / "a.sav").codebook == codebook
