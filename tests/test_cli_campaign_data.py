"""Campaigns on the command line: data in and out, changes, checks, the interview, the worker."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import contextmanager
from importlib import import_module

import pandas as pd
import pytest
from surveys import PEOPLE, WINES, live, small_design, value_of

from malocate import Campaign, Design, Segment, SoftImpute, StoreError
from malocate.files import read_table

worker_module = import_module("malocate.cli.campaign.worker")


@pytest.fixture
def campaign(tmp_path):
    with Campaign.create(tmp_path / "tasting.db", small_design()) as made:
        yield made


def counted(campaign):
    return len(campaign.export("answers"))


OLD = "segment,row,column,value\nnorth,p1,w2,4\nsouth,p0,w0,1\nnorth,p1,w2,5\n"


def test_cells_without_an_answer_are_noted_in_the_log(run, campaign):
    text = OLD + "north,p2,w1,refused\nnorth,p3,w1,dk\nsouth,p3,w1,refused\n"
    assert run("import", "-", stdin=text).exit_code == 0
    events = [each.told for each in campaign.store.events(campaign.id) if each.kind == "imported"]
    noted = [each["without"] for each in events if "without" in each]
    assert noted == [{"refused": 2, "don't know": 1}]
    assert campaign.verify().ok


def test_answers_from_before_are_imported_and_marked(run, campaign):
    result = run("import", "-", "--who", "Ann", stdin=OLD)
    assert result.exit_code == 0, result.output
    assert " ".join(result.stdout.split()) == (
        "The standard input: CSV with commas, one line per answer; row is 'row', column is "
        "'column', value is 'value', segment is 'segment'. 3 answers. 3 answers imported."
    )
    frame = campaign.export("answers")
    assert frame["imported"].all()
    assert sorted(frame[["segment", "row", "column", "value"]].itertuples(index=False)) == [
        ("north", "p1", "w2", 4.0),
        ("north", "p1", "w2", 5.0),
        ("south", "p0", "w0", 1.0),
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("suoth,p0,w0,1", "line 3: there is no segment 'suoth'; is 'south' meant?"),
        (",p0,w0,1", "line 3: no segment is named; there is north, south."),
        (
            "south,x,w0,1",
            "line 3: segment 'south' has no row 'x'; there is p0, p1, p2, p3, p4 and 5 more.",
        ),
        (
            "south,p0,w9,1",
            "line 3: segment 'south' has no column 'w9'; there is w0, w1, w2, w3, w4 and 3 more.",
        ),
        ("south,p0,w0,9", "line 3: value 9 is outside 1–5."),
        ("south,p0,w0,four", "line 3: value is 'four', which is no number."),
        ("south,,w0,1", "line 3: row is empty; each line needs it."),
    ],
)
def test_a_bad_line_is_named_and_nothing_is_imported(run, campaign, line, message):
    result = run("import", "-", stdin=OLD.replace("south,p0,w0,1", line))
    assert (result.exit_code, result.stderr) == (2, f"Error: {message}\n")
    assert counted(campaign) == 0


def test_a_masked_cell_cannot_be_imported(run, campaign):
    campaign.amend(why="sold out", mask={"south": [("p0", "w0")]})
    result = run("import", "-", stdin=OLD)
    assert result.exit_code == 2
    assert "line 3: the cell (p0, w0) of segment 'south' is masked" in result.stderr


def test_one_segment_with_numbers_needs_no_names(run, tmp_path):
    design = Design([Segment("all", (4, 3))], budget=50, estimator=SoftImpute(2.0))
    with Campaign.create(tmp_path / "one.db", design) as campaign:
        assert run("import", "-", stdin="row,column,value\n3,2,0.5\n").exit_code == 0
        assert campaign.export("answers")[["row", "column"]].to_numpy().tolist() == [[3, 2]]


def test_exported_answers_come_back_as_they_were(run, campaign, tmp_path):
    live(campaign, most=2)
    assert run("export", "answers", "--out", "answers.parquet").exit_code == 0
    with Campaign.create(tmp_path / "second.db", small_design()) as second:
        result = run("import", "second.db", "answers.parquet", "--uniform")
        assert result.stdout.endswith(f"{counted(campaign)} answers imported.\n")
        names = ["segment", "row", "column", "value"]
        one, two = (each.export("answers")[names].sort_values(names) for each in (campaign, second))
        assert one.to_numpy().tolist() == two.to_numpy().tolist()


@pytest.mark.parametrize("what", ["answers", "completions", "bands", "decisions", "log"])
def test_every_table_is_exported_in_every_form(run, campaign, tmp_path, what):
    live(campaign)
    printed = run("export", what)
    assert printed.exit_code == 0, printed.output
    rows = list(csv.DictReader(io.StringIO(printed.stdout)))
    assert rows
    frame = campaign.export(what)
    names = ["t.csv", "t.json", "t.parquet", "t.sav", "t.xlsx"]
    for name in names:
        assert f"{name}: {len(frame):,} lines" in run("export", what, "--out", name).stdout
    assert (tmp_path / "t.csv").read_bytes().decode() == printed.stdout
    as_json = json.loads((tmp_path / "t.json").read_text(), parse_constant=pytest.fail)
    assert [list(each) for each in as_json] == [list(frame.columns)] * len(frame)
    again = pd.read_parquet(tmp_path / "t.parquet")
    assert list(again.columns) == list(frame.columns)
    assert len(again) == len(rows) == len(as_json) == len(frame)
    for name in names[2:]:
        table = read_table(tmp_path / name)
        assert (table.names, len(table.lines)) == (list(frame.columns), len(frame))
    assert sorted(path.name for path in tmp_path.glob("t.*")) == names


def test_labels_of_two_kinds_fit_into_one_column_of_parquet(run, tmp_path):
    named = Segment("named", labels=(["Al", "Bo"], ["red", "white"]))
    design = Design([named, Segment("numbered", (2, 2))], budget=50, estimator=SoftImpute(2.0))
    with Campaign.create(tmp_path / "two.db", design) as campaign:
        campaign.tell_many([(ticket, 1.0) for ticket in campaign.ask(50, who="ann")])
    assert run("export", "answers", "-o", "a.parquet").exit_code == 0
    assert {"Al", "0"} <= set(pd.read_parquet(tmp_path / "a.parquet")["row"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "'nothing' cannot be exported; choose from answers, completions"),
        (["log", "--out", "log.doc"], "log.doc must end in .csv, .xlsx, .parquet, .sav or .json"),
        (["log", "--out", "no/log.csv"], "The folder of no/log.csv does not exist"),
        (["log", "--format", "parquet"], "write it to a file by --out."),
        ([], "Missing argument"),
        (["a", "b", "c"], "Give WHAT, after the campaign or without it; there came 'a b c'."),
    ],
)
def test_an_export_that_cannot_be_is_refused(run, campaign, arguments, message):
    result = run("export", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_amendments(run, campaign, tmp_path):
    (tmp_path / "west.toml").write_text('[[segments]]\nname = "west"\nshape = [5, 4]\n')
    (tmp_path / "rows.csv").write_text("segment,row\nnorth,Zoe\n")
    (tmp_path / "columns.csv").write_text("segment,column\nnorth,port\nnorth,cava\n")
    (tmp_path / "mask.csv").write_text("segment,row,column\nsouth,p1,w1\n")
    files = [("--segments", "west.toml"), ("--rows", "rows.csv"), ("--columns", "columns.csv")]
    given = [part for pair in (*files, ("--mask", "mask.csv")) for part in pair]
    goals = ["--budget", 300, "--rmse", 0.5, "--rmse", "north=0.25"]
    result = run("amend", "--why", "west joins", *goals, *given)
    assert result.exit_code == 0, result.output
    campaign.status()
    design = campaign.design
    assert (design.budget, design.rmse) == (300, {"north": 0.25, "south": 0.5})
    north, south, west = design.segments
    assert north.labels == ((*PEOPLE, "Zoe"), (*WINES, "port", "cava"))
    assert south.mask.nonzero() == (1, 1)
    assert west.shape == (5, 4)


@pytest.mark.parametrize(
    ("arguments", "stdin", "message"),
    [
        (["--budget", "300"], "", "--why is missing"),
        (["--why", "x"], "", "Nothing is changed"),
        (["--why", "x", "--rmse", "low"], "", "--rmse low is no goal"),
        (["--why", "x", "--rows", "-"], "segment,row\nnorth,Zoe\neast,Al\n", "line 3: there is no"),
        (["--why", "x", "--rows", "-"], "segment,row\nnorth,\n", "line 2: the row is empty"),
        (["--why", "x", "--mask", "-"], "segment,row,column\nnorth,p1,x\n", "line 2: segment 'nor"),
        (["--why", "x", "--segments", "no.toml"], "", "no.toml cannot be read"),
    ],
)
def test_a_bad_amendment_changes_nothing(run, campaign, arguments, stdin, message):
    result = run("amend", *arguments, stdin=stdin)
    assert result.exit_code == 2
    assert message in result.stderr
    campaign.status()
    assert campaign.design == small_design()


def test_erasing_asks_first(run, campaign):
    tickets = campaign.ask(40, who="ann")
    campaign.tell_many([(ticket, value_of(ticket)) for ticket in tickets])
    stopped = run("erase", "--segment", "north", "--row", "p1", stdin="n\n")
    assert stopped.exit_code == 130
    assert counted(campaign) == 40
    theirs = sum((ticket.segment, ticket.row) == ("north", "p1") for ticket in tickets)
    done = run("erase", "--segment", "north", "--row", "p1", stdin="y\n")
    assert done.exit_code == 0, done.output
    assert counted(campaign) == 40 - theirs < 40
    assert run("erase", "--who", "ann", "--yes").exit_code == 0
    assert counted(campaign) == 0
    assert run("verify").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Give either --who, or --row with its --segment."),
        (["--who", "ann", "--row", "p1"], "Give either --who, or --row with its --segment."),
        (["--row", "p1"], "no segment is named; there is north, south."),
        (["--row", "p99", "--segment", "north"], "segment 'north' has no row 'p99'"),
    ],
)
def test_erasing_nobody_is_refused(run, campaign, arguments, message):
    result = run("erase", *arguments, "--yes")
    assert result.exit_code == 2
    assert message in result.stderr


def test_verify_says_yes_and_a_changed_answer_is_a_break(run, campaign, tmp_path):
    live(campaign)
    whole = run("verify", "--json")
    assert whole.exit_code == 0
    assert json.loads(whole.stdout)["ok"] is True
    with sqlite3.connect(tmp_path / "tasting.db") as raw:
        changed = "UPDATE draws SET value = 6 - value WHERE id = (SELECT min(id) FROM draws "
        raw.execute(changed + "WHERE state = 'answered' AND value <> 3)")
    raw.close()
    broken = run("verify")
    assert broken.exit_code == 1
    assert "BROKEN" in broken.stdout


def test_status_and_report(run, campaign):
    live(campaign)
    shown = run("status").stdout
    assert max(len(line) for line in shown.splitlines()[2:7]) <= 80
    assert "tasting: It has ended: the budget is spent." in shown
    found = json.loads(run("status", "--json").stdout, parse_constant=pytest.fail)
    assert found["answered"] == campaign.status().answered
    assert run("report").stdout == f"{campaign.report()}\n"
    assert json.loads(run("report", "--json").stdout)["status"]["state"] == "done"


INTERVIEW = ["wines", "north", "Al, Bo, Cy", "2", "1 5", "y", "south", "4", "3", "none", "n"]


def test_the_interview_makes_a_design_and_a_campaign(run, tmp_path):
    result = run("new", stdin="\n".join([*INTERVIEW, "200", "0.5", ""]))
    assert result.exit_code == 0, result.output
    design = Design.load(tmp_path / "wines.toml")
    north, south = design.segments
    assert north.labels == (("Al", "Bo", "Cy"), (1, 2))
    assert (south.shape, south.scale, north.scale) == ((4, 3), None, (1, 5))
    assert (design.budget, design.rmse) == (200, 0.5)
    with Campaign.open(tmp_path / "wines.db") as campaign:
        assert campaign.name == "wines"
        assert campaign.design == design


def test_the_interview_asks_again_and_has_defaults(run, tmp_path):
    (tmp_path / "people.txt").write_text("Ann\nBob\n\nCarl\n", encoding="utf-8")
    (tmp_path / "taken.toml").write_text("")
    answers = ["taken", "", "", "many", "people.txt", "a,a", "", "5 1", "", "", "-3", "", ""]
    result = run("new", stdin="\n".join([*answers, ""]))
    assert result.exit_code == 0, result.output
    for message in ("taken.toml exists already", "'many' is no number", "'a' comes twice",
                    "'5 1' is no scale", "'-3' is no number above 0"):  # fmt: skip
        assert message in result.stderr
    (segment,) = Design.load(tmp_path / "survey.toml").segments
    assert segment.labels[0] == ("Ann", "Bob", "Carl")
    assert (segment.shape, segment.scale) == ((3, 20), (1, 5))


def test_an_interview_that_is_left_writes_nothing(run, tmp_path):
    result = run("new", stdin="\n".join(INTERVIEW[:4]))
    assert result.exit_code == 130
    assert result.stderr.endswith("Stopped.\n")
    assert list(tmp_path.iterdir()) == []


def test_the_worker_plans_and_takes_back_once(run, campaign):
    assert run("worker", "--once", "--nice", 0).exit_code == 0
    assert campaign.status().round == 1
    campaign.ask(3, who="ann", lease=0.01)
    time.sleep(0.05)
    assert "3 overdue questions taken back." in run("worker", "--once", "--nice", 0).stdout
    assert sum(each.expired for each in campaign.status().segments) == 3


def until(true, seconds=300):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


@contextmanager
def working(folder, *options):
    program = "from malocate.cli import app; app()"
    command = [sys.executable, "-c", program, "worker", "tasting.db", "--every", "0.1", *options]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE) as worker:
        try:
            yield worker
        finally:
            worker.kill()  # a test that failed must not wait for it


def test_a_worker_steps_back_for_other_programs(campaign, tmp_path):
    with working(tmp_path) as worker:
        until(lambda: os.getpriority(os.PRIO_PROCESS, worker.pid) >= 10)
    assert campaign.status().state == "open"


@pytest.mark.parametrize(("way", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_asking_leaves_planning_to_a_worker_until_it_stops(campaign, tmp_path, way, code):
    alive = lambda: campaign.store.held(campaign.id).worker_until > time.time()  # noqa: E731
    with working(tmp_path, "--nice", "0") as worker:
        until(alive)
        until(lambda: campaign.status().round == 1)
        campaign.tell_many([(t, value_of(t)) for t in campaign.ask(999, who="ann")])
        until(lambda: campaign.status().round == 2)
        worker.send_signal(way)
        assert worker.wait(60) == code
        assert b"Traceback" not in worker.stderr.read()
    assert not alive()
    campaign.tell_many([(t, value_of(t)) for t in campaign.ask(999, who="ann")])
    assert campaign.ask(1, who="ann")  # planned here, at once
    assert campaign.status().round == 3


def test_a_worker_outlives_a_database_that_goes_away(run, campaign, monkeypatch):
    steps = iter([StoreError("the server is away."), "open", "finished"])
    waits = []

    def step(_):
        found = next(steps)
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr(worker_module, "_step", step)
    monkeypatch.setattr(worker_module.time, "sleep", waits.append)
    result = run("worker", "--nice", 0, "--every", 1)
    assert result.exit_code == 0
    assert "the server is away. Trying again in 2 s." in result.stderr
    assert waits == [2, 1]
