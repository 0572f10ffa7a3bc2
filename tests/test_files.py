"""Tables of answers in files: every form and layout gives the same answers."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from malocate.errors import InvalidInput
from malocate.files import Columns, Unclear, Variable, comma, read_answers, read_table, write_table

LONG = pd.DataFrame(
    {
        "region": ["north", "north", "south", "north"],
        "respondent": ["Al", "Bo", "Al", "Al"],
        "product": ["red", "red", "rosé, dry", "red"],
        "rating": [4.0, 98.0, 2.5, math.nan],
    }
)
CODES = {"rating": Variable("Liking", {1.0: "bad", 98.0: "Refused"}, (98.0, 99.0))}


@pytest.fixture
def file(tmp_path):
    def write(text, name="answers.csv", encoding="utf-8"):
        path = tmp_path / name
        path.write_bytes(text.encode(encoding))
        return path

    return write


def cells(answers):
    """Give the lines of the answers as tuples, with None for nan."""
    frame = answers.frame[["segment", "row", "column", "value", "reason"]]
    return [
        tuple(None if each != each else each for each in line)
        for line in frame.itertuples(index=False)
    ]


EXPECTED = [
    ("north", "Al", "red", 4.0, ""),
    ("north", "Bo", "red", None, "refused"),
    ("south", "Al", "rosé, dry", 2.5, ""),
    ("north", "Al", "red", None, "empty"),
]


@pytest.mark.parametrize("ending", ["csv", "xlsx", "parquet", "sav"])
def test_every_form_gives_the_same_answers(tmp_path, ending):
    path = tmp_path / f"answers.{ending}"
    write_table(LONG, path, codebook=CODES)
    missing = {"98": "Refused"} if ending == "csv" else {}
    answers = read_answers(path, missing=missing, scale=(1, 5))
    assert cells(answers) == EXPECTED
    assert answers.unanswered == {"empty": 1, "refused": 1}
    assert "row is 'respondent', column is 'product', value is 'rating'" in answers.understood
    if ending != "csv":
        assert answers.codebook == CODES


@pytest.mark.parametrize("ending", ["csv", "xlsx", "parquet", "sav"])
def test_a_wide_table_is_its_long_one(tmp_path, ending):
    path = tmp_path / f"wide.{ending}"
    frame = pd.DataFrame({"taster": ["Al", "Bo"], "red": [4.0, None], "white wine": [1.5, 2.0]})
    write_table(frame, path)
    answers = read_answers(path)
    assert answers.layout == "wide"
    assert cells(answers) == [
        ("", "Al", "red", 4.0, ""),
        ("", "Al", "white wine", 1.5, ""),
        ("", "Bo", "red", None, "empty"),
        ("", "Bo", "white wine", 2.0, ""),
    ]
    first = 1 if ending in ("parquet", "sav") else 2
    assert answers.frame["line"].tolist() == [first, first, first + 1, first + 1]
    assert answers.observations((1, 5))[""].labels == (("Al", "Bo"), ("red", "white wine"))


@pytest.mark.parametrize(
    ("header", "lines", "layout", "columns"),
    [
        ("row,column,value", "Al,red,4", "long", ("row", "column", "value")),
        ("User_ID,movieId,Rating", "1,7,4", "long", ("User_ID", "movieId", "Rating")),
        ("taster,wine,hedonic", "Al,red,4", "long", ("taster", "wine", "hedonic")),
        ("wer,was,wie", "Al,red,4\nAl,white,5", "long", ("wer", "was", "wie")),
        ("wer,red,white", "Al,3,4\nBo,3,4", "wide", ("wer", None, None)),
        ("product,Al,Bo,Cy", "red,3,4,refused", "wide", ("product", None, None)),
    ],
)
def test_what_columns_are_is_told_by_name_and_content(file, header, lines, layout, columns):
    answers = read_answers(file(f"{header}\n{lines}\n"))
    used = answers.columns
    assert answers.layout == layout
    assert (used.row, used.column, used.value) == columns


@pytest.mark.parametrize(
    "text",
    [
        "a,b,c\n1,2,3\n1,3,3\n",  # one line per answer, or two items of a row that comes twice
        "a,b\nAl,x\n",
        "a,b,c,d\nAl,x,y,z\n",
    ],
)
def test_what_cannot_be_told_must_be_named(file, text):
    with pytest.raises(Unclear, match="cannot be told which is what; name them"):
        read_answers(file(text))


def test_named_columns_win(file):
    path = file("value,rating,who,what\n7,4,Al,red\n")
    columns = Columns(row="who", column="what", value="rating")
    answers = read_answers(path, columns=columns)
    assert cells(answers) == [("", "Al", "red", 4.0, "")]
    assert answers.aside == ("value",)
    assert "Left aside: 'value'." in answers.understood
    with pytest.raises(InvalidInput, match="has no column 'ratng' in its first line; is 'rating'"):
        read_answers(path, columns=Columns(value="ratng"))


def test_items_leave_other_columns_aside(file):
    path = file("name,age,red,white\nAl,34,4,5\n")
    answers = read_answers(path, columns=Columns(row="name", items=("white", "red")))
    assert cells(answers) == [("", "Al", "white", 5.0, ""), ("", "Al", "red", 4.0, "")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("row;column;value\nAl;red;3,5\n", "CSV with semicolons, decimal comma"),
        ("row\tcolumn\tvalue\nAl\tred\t3.5\n", "CSV with tabs"),
        ('row,column,value\nAl,red,"3,5"\n', "CSV with commas, decimal comma"),
        ("sep=;\r\nrow;column;value\r\nAl;red;3.5\r\n", "CSV with semicolons"),
    ],
)
def test_marks_between_cells_and_in_numbers(file, text, words):
    answers = read_answers(file(text))
    assert cells(answers) == [("", "Al", "red", 3.5, "")]
    assert answers.form == words


def test_a_comma_that_may_mean_thousands_must_be_told(file):
    path = file("row;column;value\nAl;red;1,234\n")
    with pytest.raises(InvalidInput, match="numbers such as 1,234; say whether the comma"):
        read_answers(path)
    assert read_answers(path, decimal=",").frame["value"].tolist() == [1.234]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_marks_at_the_beginning_of_a_text_are_no_part_of_it(file, encoding):
    assert read_table(file("row,value\nZoë,1\n", encoding=encoding)).names == ["row", "value"]


def test_another_encoding_is_named(file):
    path = file("row,column,value\nZoë,red,1\n", encoding="cp1252")
    with pytest.raises(InvalidInput, match="is not text in UTF-8; save it as that, or name"):
        read_answers(path)
    assert cells(read_answers(path, encoding="cp1252"))[0][1] == "Zoë"


def test_reasons_stay_apart_and_are_no_numbers(file):
    text = "row,column,value,reason\nAl,red,,refused\nBo,red,,Don’t know\nCy,red,DK,\nDee,red,5,\n"
    answers = read_answers(file(text + "Eve,red,,allergic\nFay,red,97,\n"), missing={"97": "IAP"})
    assert answers.frame["reason"].tolist() == [
        "refused", "don't know", "don't know", "", "allergic", "not asked",
    ]  # fmt: skip
    assert answers.frame["value"].notna().sum() == 1


def test_mistakes_are_told_by_line_and_the_others_counted(file):
    lines = [f"p{n},red,{9 if n % 2 else 3}" for n in range(40)]
    lines[4] = ",red,x"
    path = file("\n".join(["row,column,rating", *lines, ""]))
    with pytest.raises(InvalidInput) as caught:
        read_answers(path, scale=(1, 5))
    assert str(caught.value) == (
        "line 6: rating is 'x', which is no number.\nline 6: row is empty; each line needs it."
    )
    path.write_text(path.read_text().replace(",red,x", "q,red,3"))
    with pytest.raises(InvalidInput) as caught:
        read_answers(path, scale=(1, 5))
    told = str(caught.value).splitlines()
    assert told[:2] == ["line 3: rating 9 is outside 1–5.", "line 5: rating 9 is outside 1–5."]
    assert (len(told), told[-1]) == (7, "and 14 more lines with mistakes.")


@pytest.mark.parametrize(
    "text", ["row,column,value\nAl,red,3\nBo,red,-2e100\n", "who,red,white\nAl,3,4\nBo,3,-2e100\n"]
)
def test_an_answer_that_is_too_large_is_told_by_its_line(file, text):
    with pytest.raises(
        InvalidInput, match=r"^line 3: (value|white) is -2e\+?100; an answer must be"
    ):
        read_answers(file(text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty; its first line must name the columns."),
        ("row,value\nAl\n", "line 2: it has 1 cells, and the header 2; put cells"),
        ('row,value\n"Al\nBo",1\nCy,2,3\n', "line 4: it has 3 cells"),
        ("row,row\n1,2\n", "has two columns 'row'; leave one."),
    ],
)
def test_a_broken_csv_is_refused(file, text, message):
    with pytest.raises(InvalidInput, match=message):
        read_table(file(text))


def test_lines_are_those_of_the_file(file):
    table = read_table(file('row,value\n\n"Al\nBo",1\n , \nCy,2\n'))
    assert table.lines.tolist() == [4, 6]
    assert table.frame["row"].tolist() == ["Al\nBo", "Cy"]


@pytest.mark.parametrize("ending", ["xlsx", "parquet", "sav"])
def test_a_file_that_is_not_what_it_is_called_is_refused(file, ending):
    with pytest.raises(InvalidInput, match=r"is no (Excel workbook|Parquet file|SPSS file)"):
        read_table(file("row,value\n", name=f"a.{ending}"))
    with pytest.raises(InvalidInput, match=r"missing.* cannot be read: No such file"):
        read_table(f"missing.{ending}")


def test_old_workbooks_are_refused_with_a_way_out(file):
    with pytest.raises(InvalidInput, match=r"ends in \.xls, which is not read; save it as \.xlsx"):
        read_table(file("", name="a.xls"))


def test_a_text_that_looks_like_a_formula_stays_a_text(tmp_path):
    write_table(pd.DataFrame({"row": ["=1+1"], "value": [2]}), tmp_path / "a.xlsx")
    assert read_table(tmp_path / "a.xlsx").frame["row"].tolist() == ["=1+1"]


def test_sheets_are_chosen_by_name(tmp_path):
    with pd.ExcelWriter(tmp_path / "two.xlsx") as book:
        LONG.to_excel(book, sheet_name="spring", index=False)
        LONG[:1].to_excel(book, sheet_name="autumn", index=False)
    first = read_answers(tmp_path / "two.xlsx")
    assert (len(first.frame), first.form) == (4, "sheet 'spring' of 'spring', 'autumn'")
    assert len(read_answers(tmp_path / "two.xlsx", sheet_name="autumn").frame) == 1
    with pytest.raises(InvalidInput, match="has no sheet 'winter'; it has spring, autumn"):
        read_table(tmp_path / "two.xlsx", sheet_name="winter")


def test_labels_of_a_codebook_name_rows_and_segments(tmp_path):
    frame = pd.DataFrame({"region": [1.0, 2.0], "id": [7.0, 8.0], "a": [1.0, 2.0], "b": [3.0, 4.0]})
    codes = {"region": Variable("", {1.0: "North", 2.0: "South"})}
    write_table(frame, tmp_path / "a.sav", codebook=codes)
    answers = read_answers(tmp_path / "a.sav")
    assert cells(answers)[0] == ("North", 7, "a", 1.0, "")
    assert sorted(answers.observations()) == ["North", "South"]


def test_a_file_is_replaced_only_by_a_whole_one(tmp_path):
    path = tmp_path / "a.xlsx"
    write_table(LONG, path)
    before = path.read_bytes()
    with pytest.raises(InvalidInput, match="Excel cannot hold the text"):
        write_table(LONG.assign(region="\x01"), path)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["a.xlsx"]


def test_numbers_of_rows_are_numbers_and_in_order(file):
    answers = read_answers(file("row,column,value\n10,b,1\n9,a,2\n"))
    (found,) = answers.observations().values()
    assert found.labels == ((9, 10), ("a", "b"))
    assert np.array_equal(found.values, [1, 2])


def test_labels_without_a_name_are_those_of_the_rows(file, tmp_path):
    answers = read_answers(file(",red,white\nAl,4,\nBo,,2\n"))
    assert answers.layout == "wide"
    assert set(answers.frame["row"]) == {"Al", "Bo"}
    table = pd.DataFrame({"red": [4.0, 4.0], "white": [1.0, 2.0]}, index=["Al", "Bo"])
    for name in (None, "taster"):
        table.rename_axis(name).to_parquet(tmp_path / "wide.parquet")
        kept = read_answers(tmp_path / "wide.parquet").answered
        assert kept["row"].tolist() == ["Al", "Al", "Bo", "Bo"]


def test_answers_are_not_taken_for_labels(file):
    with pytest.raises(Unclear, match="which is what"):
        read_answers(file("red,white,rosé,port\n4,3,2,1\n4,2,2,1\n5,1,1,2\n"))


def test_a_column_is_one_thing(file):
    path = file("who,what,stars\nAl,red,4\n")
    with pytest.raises(InvalidInput, match="'who' is named for two things"):
        read_answers(path, columns=Columns(row="who", column="who", value="stars"))


def test_a_scale_must_be_one_before_answers_are_held_against_it(file):
    with pytest.raises(InvalidInput, match="the least answer below the largest"):
        read_answers(file("row,column,value\nAl,red,4\n"), scale=(5, 1))


def test_workbooks_without_answers_are_refused(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book, path = openpyxl.Workbook(), tmp_path / "codes.xlsx"
    book.active.title = "codebook"
    book.save(path)
    with pytest.raises(InvalidInput, match="no sheet of answers"):
        read_answers(path)
    book.create_sheet("empty")
    book.create_sheet("wines").append(["row", "column", "value"])
    book.save(path)
    with pytest.raises(InvalidInput, match=r"'empty' of .* is empty; there is 'wines', too"):
        read_answers(path)


def test_a_truth_value_in_a_workbook_is_no_answer_and_hides_none(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book, path = openpyxl.Workbook(), tmp_path / "mixed.xlsx"
    for line in (["row", "column", "value"], ["Al", "red", True], ["Bo", "red", 1]):
        book.active.append(line)
    book.save(path)
    with pytest.raises(InvalidInput, match=r"^line 2: value is 'True', which is no number.$"):
        read_answers(path)


FAST = comma._fast
PLAIN = [
    "who,what,stars\nAl,red,4\nBo,white,\n",
    "who;what;stars\r\nAl;red;01\r\nAl;red;1\r\nBo;NA;nan",
    "sep=;\nwho;what;stars\nAl;red;4,5\n;;\n ; ;\nBo;white;3\n",
    "who\twhat\tstars\n\t\t\nAl \t réd\t4\n",
    "who,what,stars\n,,\nAl,#1,1e400\n,red,True\n",
]
NOT_PLAIN = [
    'who,what,stars\nAl,"red, dry",4\n',
    "who,what,stars\nAl,red,4\n\nBo,red,3\n",
    "who,what,stars\rAl,red,4\r",
    "who,what,stars\nAl,red,4\x00\n",
    "who,what,stars\n",
    "who\nAl\n\nBo\n",
]


def _read_as(path, monkeypatch, many):
    monkeypatch.setattr(comma, "MANY", many)
    table = read_table(path)
    cells = table.frame.astype(object)
    return cells.columns.tolist(), cells.to_numpy().tolist(), table.lines.tolist(), table.words


@pytest.mark.parametrize("text", [*PLAIN, *NOT_PLAIN])
def test_a_long_file_is_read_as_a_short_one(tmp_path, monkeypatch, text):
    path = tmp_path / "table.csv"
    path.write_bytes(text.encode())
    taken = []
    monkeypatch.setattr(comma, "_fast", lambda *given: taken.append(1) or FAST(*given))
    assert _read_as(path, monkeypatch, 0) == _read_as(path, monkeypatch, math.inf)
    assert len(taken) == (text in PLAIN)


def test_a_line_of_a_long_file_with_a_cell_too_many_is_named(tmp_path, monkeypatch):
    path = tmp_path / "table.csv"
    path.write_text("who,what,stars\nAl,red,4\nBo,red,3,2\nCy,red\n")
    monkeypatch.setattr(comma, "MANY", 0)
    with pytest.raises(InvalidInput, match="line 3: it has 4 cells, and the header 3"):
        read_table(path)
