"""Designs as text: what comes back, and what is refused by a sentence."""

from __future__ import annotations

import datetime
import json
import math
from dataclasses import dataclass

import numpy as np
import pytest

from malocate import (
    Design,
    GoodAllocation,
    InvalidInput,
    InvalidType,
    Loss,
    MALocate,
    MalocateError,
    Segment,
    Uniform,
)

FORMS = ["toml", "json"]


def again(design, form):
    return getattr(Design, f"from_{form}")(getattr(design, f"to_{form}")())


@pytest.mark.parametrize("form", FORMS)
def test_a_segment_may_be_called_inf(form):
    segment = Segment("inf", labels=(["inf", "-inf"], ["nan", "x"]))
    for settings in ({}, {"rmse": {"inf": 0.5}}, {"strategy": GoodAllocation({"inf": 3.0})}):
        design = Design([segment], 9, **settings)
        assert again(design, form) == design


@pytest.mark.parametrize("form", FORMS)
def test_an_infinite_power_comes_back_as_a_number(form):
    design = Design([Segment("a", (3, 2))], 9, loss=Loss(math.inf), strategy=MALocate(p=math.inf))
    assert again(design, form).loss.p == again(design, form).strategy.p == math.inf


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rows", [[("a", 1), ("a", 2)], [1, 2.5], [np.int64(4), True]])
def test_labels_come_back_as_they_were(form, rows):
    design = Design([Segment("a", labels=(rows, ["x"]))], 9)
    assert again(design, form) == design


def test_dates_are_labels_in_toml_alone():
    days = [datetime.date(2024, 1, day) for day in (1, 2)]
    design = Design([Segment("a", labels=(days, ["x"]))], 9)
    assert again(design, "toml") == design
    with pytest.raises(
        InvalidType, match=r"holds the date .*, which JSON cannot; write it as TOML"
    ):
        design.to_json()


@pytest.mark.parametrize("label", [frozenset("ab"), b"ab", math.inf, ("a", None)])
def test_labels_that_no_file_holds_are_refused(label):
    design = Design([Segment("a", labels=([label], ["x"]))], 9)
    with pytest.raises(InvalidType, match=r"Segment 'a' has the label .*; a file holds labels"):
        design.to_toml()


def test_parts_that_no_file_holds_are_refused():
    @dataclass(frozen=True)
    class Wrapped:
        inner: object

        def plan(self, standings, budget, /): ...

    class Bare:
        def plan(self, standings, budget, /): ...

    segment = Segment("a", (3, 2))
    with pytest.raises(
        InvalidType, match=r"strategy\.inner is Uniform\(.*\); a file holds numbers"
    ):
        Design([segment], 9, strategy=Wrapped(Uniform())).to_toml()
    with pytest.raises(InvalidType, match="strategy Bare is no dataclass"):
        Design([segment], 9, strategy=Bare()).to_json()


def table(**settings):
    return {"budget": 50, "segments": [{"name": "a", "shape": [3, 2]}]} | settings


def segment(**settings):
    return table(segments=[{"name": "a"} | settings])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (segment(mask=[[0, 0]]), r"segments\[0\]: Segment 'a': it has neither shape nor labels"),
        (segment(shape=[3, 2], mask=5), "its mask is 5; it must list"),
        (segment(shape=[3, 2], mask=[[0.0, 1.0]]), r"its mask has \(0.0, 1.0\); it must list"),
        (segment(shape=[3, 2], mask=[[True, 1]]), "its mask has"),
        (segment(shape=[3, 2], mask=[[0, 1, 1]]), r"its mask has \(0, 1, 1\)"),
        (segment(shape=[3, 2], mask=[7]), "its mask has 7"),
        (segment(shape=[1, 1], mask=[[0, 0]]), "its mask leaves no cell to ask"),
        (segment(shape=[-2, 2], mask=[[0, 0]]), "both sides must be at least 1"),
        (segment(shape="ab", mask=[[0, 0]]), "shape is 'ab'; both sides must be integers"),
        (segment(labels={"rows": 5}), "labels must be two sequences"),
        (table(schedule={"name": "Batches"}), "schedule Batches has no size, which it needs"),
        (table(schedule="Batches"), "schedule Batches has no size, which it needs; give it"),
        (table(strategy={"name": "GoodAllocation"}), "strategy GoodAllocation has no complexities"),
        (table(strategy={"name": "GoodAllocation", "complexities": 5}), "strategy: complexities"),
    ],
)
def test_mistakes_are_named(given, words):
    with pytest.raises(MalocateError, match=words):
        Design.from_json(json.dumps(given))


WRONG = [5, -1, "x", [1], [[]], {}, {"name": 5}, True, 1e400]


@pytest.mark.parametrize("value", WRONG, ids=repr)
@pytest.mark.parametrize("name", list(Design.__dataclass_fields__))
def test_no_setting_ends_in_another_error(name, value):
    try:
        design = Design.from_json(json.dumps(table(**{name: value})))
    except MalocateError:
        return
    assert again(design, "json") == design


@pytest.mark.parametrize("value", WRONG, ids=repr)
@pytest.mark.parametrize("name", list(Segment.__dataclass_fields__))
def test_no_setting_of_a_segment_ends_in_another_error(name, value):
    try:
        design = Design.from_json(json.dumps(segment(**({"shape": [3, 2]} | {name: value}))))
    except MalocateError:
        return
    assert again(design, "json") == design


@pytest.mark.parametrize(
    ("form", "text"), [("json", "[" * 100_000), ("toml", "a = " + "[" * 9_999)]
)
def test_deep_nesting_is_refused(form, text):
    with pytest.raises(InvalidInput, match=f"The design is not {form.upper()} that can be read"):
        getattr(Design, f"from_{form}")(text)


def test_a_number_of_too_many_digits_is_refused():
    with pytest.raises(InvalidInput, match="The design is not JSON"):
        Design.from_json('{"budget": ' + "9" * 5_000 + "}")


def test_a_setting_given_twice_is_refused():
    with pytest.raises(InvalidInput, match="The design has 'budget' twice in one table"):
        Design.from_json('{"budget": 5, "budget": 6}')


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    design = Design([Segment("a", (3, 2))], 9)
    with pytest.raises(InvalidInput, match=r"x\.toml cannot be written: No such file or directory"):
        design.save(tmp_path / "nowhere" / "x.toml")


@pytest.mark.parametrize("form", FORMS)
def test_questions_come_back_in_their_order(form):
    wording = {"fr": "{row} aime {column} ?", "en": {"text": "Rate {column}.", "low": "bad"}}
    design = Design([Segment("a", (3, 2))], 9, questions=wording)
    back = again(design, form)
    assert back == design
    assert list(back.questions) == ["fr", "en"]
    assert back.questions["en"].about(row="Ada", column="Gamay") == "Rate Gamay."
    assert (back.questions["en"].low, back.questions["en"].high) == ("bad", "very much")


@pytest.mark.parametrize(
    ("wording", "words"),
    [
        ({}, "questions are empty"),
        ("How?", "must be a table by language"),
        ({"English": "Rate {row}."}, "language 'English'"),
        ({"en": 3}, "questions.en is 3"),
        ({"en": {"txt": "Rate {row}."}}, "unknown setting 'txt'"),
        ({"en": "How are you?"}, "must name the row or the column"),
        ({"en": "Rate {row.__class__}."}, "may name {row}"),
        ({"en": "Rate {row!r}."}, "may name {row}"),
        ({"en": "Rate {row:>9}."}, "may name {row}"),
        ({"en": "Rate {0} {row}."}, "may name {row}"),
        ({"en": "Rate {row"}, "brace alone is written twice"),
        ({"en": {"text": "Rate {row}.", "low": ""}}, "questions.en: low is ''"),
        ({"en": "Rate {row}.\n"}, "one line"),
    ],
)
def test_questions_that_cannot_be_asked_are_refused(wording, words):
    with pytest.raises(MalocateError) as caught:
        Design([Segment("a", (3, 2))], 9, questions=wording)
    assert words in str(caught.value)
