"""Files people have on the command line: imports, exports, and waves out and back in."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import pandas as pd
import pytest
from databases import database
from hypothesis import given
from hypothesis import strategies as st
from surveys import PEOPLE, live, small_design

from malocate import Campaign, Design, Segment, SoftImpute
from malocate.campaign.waves import quotas
from malocate.files import read_table, write_table

columns_module = import_module("malocate.cli.columns")
WIDE = "region,name,age,w0,w1\nnorth,p1,34,4,refused\nsouth,p2,51,,2\nnorth,p1,34,5,DK\n"


@pytest.fixture
def campaign(tmp_path):
    with Campaign.create(tmp_path / "tasting.db", small_design()) as made:
        yield made


def answers_of(campaign):
    frame = campaign.export("answers")[["segment", "row", "column", "value"]]
    return sorted(frame.itertuples(index=False, name=None))


def test_a_wide_file_with_other_columns_is_imported(run, campaign):
    result = run("import", "-", stdin=WIDE)
    assert result.exit_code == 0, result.output
    told = " ".join(result.stdout.split())
    assert "one line per row; row is 'name', segment is 'region'" in told
    assert "Left aside: 'age'." in told
    assert "3 answers; 3 cells without one (1 don't know, 1 empty, 1 refused)." in told
    assert answers_of(campaign) == [
        ("north", "p1", "w0", 4.0),
        ("north", "p1", "w0", 5.0),
        ("south", "p2", "w1", 2.0),
    ]


def test_a_preview_changes_nothing(run, campaign):
    result = run("import", "-", "--preview", stdin=WIDE)
    assert result.exit_code == 0, result.output
    assert "north: 2  south: 1" in result.stdout
    assert result.stdout.endswith("This is a preview: nothing was imported.\n")
    assert max(map(len, result.stdout.splitlines()[1:])) <= 80
    assert answers_of(campaign) == []
    found = json.loads(run("import", "-", "--preview", "--json", stdin=WIDE).stdout)
    assert (found["imported"], found["answers"]) == (0, 3)
    assert found["unanswered"] == {"don't know": 1, "empty": 1, "refused": 1}


def test_columns_and_codes_are_named_by_options(run, campaign):
    text = "a;b;c;d\nnorth;p1;w1;4,5\nnorth;p2;w1;99\n"
    named = ["--segment", "a", "--row", "b", "--column", "c", "--value", "d"]
    result = run("import", "-", *named, "--missing", "99=not asked", stdin=text)
    assert result.exit_code == 0, result.output
    assert "decimal comma" in result.stdout
    assert answers_of(campaign) == [("north", "p1", "w1", 4.5)]
    refused = run("import", "-", *named, "--missing", "99", stdin=text)
    assert "--missing 99 is no code with a reason; write 98=refused." in refused.stderr


def test_all_bad_lines_are_named_or_counted_and_nothing_is_imported(run, campaign):
    lines = [f"north,p{n % 10},w1,{9 if n > 2 else 3}" for n in range(30)]
    lines[1] = "north,p1,w99,3"
    text = "\n".join(["segment,row,column,rating", *lines])
    result = run("import", "-", stdin=text)
    assert result.exit_code == 2
    told = result.stderr.splitlines()
    assert told[0].startswith("Error: line 3: segment 'north' has no column 'w99'; there is")
    assert told[1] == "line 5: rating 9 is outside 1–5."
    assert told[-1] == "and 22 more lines with mistakes."
    assert answers_of(campaign) == []


def test_unclear_columns_are_asked_for_on_a_terminal(run, campaign, monkeypatch):
    text = "a,b,c,d\nnorth,p1,w1,4\n"
    unclear = run("import", "-", stdin=text)
    assert unclear.exit_code == 2
    assert "Such as: --row NAME --column NAME --value NAME" in unclear.stderr
    Path("old.csv").write_text(text)
    monkeypatch.setattr(columns_module, "on_terminal", lambda: True)
    answers = ["nobody", "b", "y", "c", "d", "a"]
    result = run("import", "old.csv", stdin="\n".join([*answers, ""]))
    assert result.exit_code == 0, result.output
    assert "There is no column 'nobody'." in result.stderr
    assert answers_of(campaign) == [("north", "p1", "w1", 4.0)]


@pytest.mark.parametrize("ending", ["csv", "xlsx", "parquet", "sav"])
@pytest.mark.parametrize("wide", [True, False])
def test_exported_answers_come_back_in_every_form_and_layout(run, campaign, ending, wide, tmp_path):
    live(campaign, most=2)
    name = f"answers.{ending}"
    more = ["--wide"] if wide else []
    assert run("export", "answers", "--out", name, *more).exit_code == 0
    with Campaign.create(tmp_path / "second.db", small_design()) as second:
        result = run("import", "second.db", name)
        assert result.exit_code == 0, result.output
        assert answers_of(second) == answers_of(campaign)
        assert second.verify().ok


def test_bands_have_no_wide_layout(run, campaign):
    assert "The bands have no wide layout" in run("export", "bands", "--wide").stderr


def test_a_wave_goes_out_and_comes_back_as_a_workbook(run, campaign, tmp_path):
    result = run("ask", "-n", 30, "--who", "field", "--out", "wave.xlsx")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("Send next 30: north 15, south 15.\n")
    frame = read_table(tmp_path / "wave.xlsx").frame
    values = ["refused", "don't know", None, "Not asked", None]
    frame["value"] = pd.Series([*values, *(3 + n % 3 for n in range(25))], dtype=object)
    frame["reason"] = pd.Series([None] * 4 + ["allergic"] + [None] * 25, dtype=object)
    write_table(frame, tmp_path / "filled.xlsx")
    told = run("tell", "--file", "filled.xlsx")
    assert told.exit_code == 0, told.output
    assert "25 answered: recorded\n3 declined: recorded as refused" in told.stdout
    assert "2 lines without a value left out" in told.stdout
    status = campaign.status()
    assert (status.answered, sum(each.refused for each in status.segments)) == (25, 3)
    reasons = {each.told.get("reason") for each in campaign.store.events(campaign.id)}
    assert {"refused", "don't know", "allergic"} <= reasons
    again = run("tell", "--file", "filled.xlsx")
    assert "25 same" in again.stdout
    assert "3 declined" in again.stdout
    assert campaign.verify().ok


def test_a_wave_that_is_fetched_again_is_the_same(run, campaign, tmp_path):
    for name in ("one.csv", "two.csv"):
        assert run("ask", "-n", 12, "--who", "field", "--out", name).exit_code == 0
    one, two = (read_table(tmp_path / name).frame for name in ("one.csv", "two.csv"))
    assert sorted(one["ticket"]) == sorted(two["ticket"])
    assert one["segment"].value_counts().to_dict() == {"north": 6, "south": 6}


def test_quotas_lend_nothing(run, campaign, tmp_path):
    shown = run("ask", "-n", 20, "--quotas")
    assert shown.stdout == "Send next 20: north 10, south 10.\n"
    found = json.loads(run("ask", "-n", 20, "--quotas", "--json").stdout)
    assert found["quotas"] == {"north": 10, "south": 10}
    assert run("ask", "-n", 3, "--quotas", "--csv").stdout == "segment,quota\nnorth,2\nsouth,1\n"
    assert run("ask", "-n", 3, "--quotas", "--out", "q.xlsx").exit_code == 0
    assert read_table(tmp_path / "q.xlsx").frame["quota"].tolist() == [2, 1]
    assert sum(each.lent for each in campaign.status().segments) == 0


def test_a_round_that_holds_fewer_says_so(run, campaign):
    campaign.plan()
    waiting = sum(each.open for each in campaign.status().segments)
    result = run("ask", "-n", 900, "--quotas")
    assert "That is all that waits of round 1" in result.stdout
    assert "the next round is planned when" in " ".join(result.stdout.split())
    assert f"{900 - waiting:,} fewer than wanted" in " ".join(result.stdout.split())
    assert "leave --segment and --rows out" in run("ask", "--quotas", "--rows", "p1").stderr


def test_nothing_to_send_is_exit_code_1(run, campaign):
    campaign.finish("enough")
    for more in (["--quotas"], ["--out", "wave.csv"]):
        result = run("ask", "-n", 5, "--who", "field", *more)
        assert result.exit_code == 1
        assert "Nothing to ask now. It is finished: enough." in result.stderr


COUNTS = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 300), min_size=1)


@given(st.integers(1, 500), COUNTS, COUNTS)
def test_quotas_keep_floors_and_never_exceed_the_plan(wanted, waiting, short):
    found = quotas(wanted, waiting, short)
    total = min(wanted, sum(waiting.values()))
    assert sum(found.values()) == total
    least = {name: min(short.get(name, 0), count) for name, count in waiting.items()}
    for name, count in waiting.items():
        assert 0 <= found[name] <= count
        if sum(least.values()) <= total:
            assert found[name] >= least[name]
    rest = {name: waiting[name] - least[name] for name in waiting}
    if sum(least.values()) <= total and sum(rest.values()):
        share = (total - sum(least.values())) / sum(rest.values())
        for name in waiting:
            assert abs(found[name] - least[name] - share * rest[name]) < 1


def test_a_hundred_thousand_lines_are_imported_soon(run, tmp_path):
    design = Design(
        [Segment("all", (1000, 100), scale=(1, 5))], budget=500, estimator=SoftImpute(2.0)
    )
    frame = pd.DataFrame({"row": range(100_000), "column": 0, "value": 3})
    frame["row"] %= 1000
    frame["column"] = frame.index // 1000
    frame.to_csv(tmp_path / "many.csv", index=False)
    with Campaign.create(tmp_path / "many.db", design) as campaign:
        assert "100,000 answers imported." in run("import", "many.db", "many.csv").stdout
        assert campaign.store.check(campaign.id).broken == ""


def test_a_server_takes_imported_answers_in_bulk(postgresql):
    frame = pd.DataFrame({"segment": "south", "row": PEOPLE, "column": "w3", "value": 2.5})
    with database(postgresql) as url, Campaign.create(url, small_design()) as campaign:
        assert campaign.import_answers(frame) == campaign.import_answers(frame) == len(PEOPLE)
        assert answers_of(campaign) == sorted([("south", p, "w3", 2.5) for p in PEOPLE] * 2)
        assert campaign.verify().ok


def test_a_file_is_not_imported_twice_by_mistake(run, campaign):
    assert run("import", "-", stdin=WIDE).exit_code == 0
    twice = run("import", "-", stdin=WIDE)
    assert twice.exit_code == 2
    assert "is there already, imported before" in twice.stderr
    assert run("import", "-", "--again", stdin=WIDE).exit_code == 0


def test_a_wave_that_was_filled_in_is_not_replaced(run, campaign):
    ask = ("ask", "-n", 3, "--who", "field", "--out", "wave.csv")
    assert run(*ask).exit_code == run(*ask).exit_code == 0
    wave = pd.read_csv("wave.csv")
    wave.assign(value=4.0).to_csv("wave.csv", index=False)
    refused = run(*ask)
    assert refused.exit_code == 2
    assert "has answers in it, which would be lost" in refused.stderr
    assert pd.read_csv("wave.csv")["value"].tolist() == [4.0] * 3
