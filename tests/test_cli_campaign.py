"""Campaigns on the command line: from a design file to answers, and back out."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from importlib import import_module

import pytest
from surveys import small_design

from malocate import Campaign
from malocate.cli.campaign import COMMANDS

ask_module = import_module("malocate.cli.campaign.ask")
DESIGN = """
budget = 120

[estimator]
name = "SoftImpute"
penalty = 2.0

[[segments]]
name = "north"
scale = [1, 5]
labels = { rows = ["Al", "Bo", "Cy", "Dee"], columns = ["red", "white", "rosé"] }

[[segments]]
name = "south"
shape = [4, 3]
scale = [-5, 5]
"""


@pytest.fixture
def tasting(run, tmp_path):
    (tmp_path / "tasting.toml").write_text(DESIGN, encoding="utf-8")
    assert run("new", "tasting.toml").exit_code == 0
    return tmp_path / "tasting.db"


def lines_of(result):
    return list(csv.DictReader(io.StringIO(result.stdout)))


def asked(run, n=100, who="ann", *more):
    return lines_of(run("ask", "-n", n, "--who", who, "--csv", *more))


def filled(lines, value=3):
    text = io.StringIO()
    writer = csv.DictWriter(text, lines[0])
    writer.writeheader()
    writer.writerows(line | {"value": value} for line in lines)
    return text.getvalue()


def test_a_design_makes_a_database_beside_it(run, tmp_path):
    (tmp_path / "field").mkdir()
    (tmp_path / "field" / "tasting.toml").write_text(DESIGN, encoding="utf-8")
    result = run("new", "field/tasting.toml")
    assert result.exit_code == 0, result.output
    assert "'tasting': 2 segments, 24 cells, budget 120." in result.stdout
    assert (tmp_path / "field" / "tasting.db").exists()
    assert run("ask", "field/tasting.db", "--who", "ann").exit_code == 0


def test_a_second_campaign_does_not_replace_the_first(run, tasting):
    result = run("new", "tasting.toml")
    assert result.exit_code == 2
    assert "tasting.db exists already; `malocate status tasting.db` says" in result.stderr
    again = run("new", "tasting.toml", "--name", "again")
    assert again.exit_code == 0
    assert "Next:  malocate ask tasting.db --name again -n 20 --who NAME" in again.stdout
    refused = run("status")
    assert refused.exit_code == 2
    assert "holds several campaigns: tasting, again; say which" in refused.stderr
    assert run("status", "--name", "again").exit_code == 0


def test_what_asking_gives_goes_back_filled_in(run, tasting):
    lines = asked(run)
    assert set(lines[0]) == set(ask_module.COLUMNS)
    assert {line["value"] for line in lines} == {""}
    result = run("tell", "--file", "-", stdin=filled(lines))
    assert (result.exit_code, result.stdout) == (0, f"{len(lines)} answered: recorded\n")
    again = run("tell", tasting, "--file", "-", stdin=filled(lines))
    assert again.stdout == f"{len(lines)} same: told before; nothing was changed\n"


def test_lines_without_a_value_are_left_out(run, tasting):
    lines = asked(run, 3)
    result = run(
        "tell", "--file", "-", stdin=filled(lines[:1]) + filled(lines, "").split("\n", 1)[1]
    )
    assert result.stdout == "1 answered: recorded\n3 lines without a value left out\n"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"value": "6"}, "line 4: The answer to ticket"),
        ({"value": "four"}, "line 4: value is 'four', which is no number."),
        ({"reason": "refused"}, "line 4: it has a value and a reason; leave one."),
        ({"ticket": "0-0-1-beef"}, "line 4: There is no ticket '0-0-1-beef' in this campaign"),
    ],
)
def test_a_bad_line_is_named_and_nothing_is_recorded(run, tasting, wrong, message):
    lines = asked(run, 5)
    lines = [line | {"value": 3} for line in lines]
    text = io.StringIO()
    writer = csv.DictWriter(text, lines[0])
    writer.writeheader()
    writer.writerows([*lines[:2], lines[2] | wrong, *lines[3:]])
    result = run("tell", "--file", "-", stdin=text.getvalue())
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: {message}")
    assert json.loads(run("status", "--json").stdout)["answered"] == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "tickt,value\n",
            "The standard input has no column 'ticket' in its first line; is 'tickt'",
        ),
        ("", "The standard input is empty; its first line must name the columns."),
        ("ticket,value\na,1,2\n", "line 2: it has 3 cells, and the header 2"),
        ('ticket,value\na,"1\n', "line 2: it is no CSV"),
        ("value,ticket,value\n", "The standard input has two columns 'value'; leave one."),
    ],
)
def test_a_file_that_is_no_table_is_refused(run, tasting, text, message):
    result = run("tell", "--file", "-", stdin=text)
    assert result.exit_code == 2
    assert message in result.stderr


def test_spreadsheets_of_some_countries_write_semicolons(run, tasting):
    (line,) = asked(run, 1)
    text = f"\ufeffticket;value\r\n{line['ticket']};3\r\n"
    assert run("tell", "--file", "-", stdin=text.encode()).exit_code == 0


def test_one_answer_below_zero_is_no_option(run, tasting):
    (line,) = asked(run, 1, "ann", "--segment", "south")
    result = run("tell", line["ticket"], "-2")
    assert (result.exit_code, result.stdout) == (0, "answered: recorded\n")
    assert json.loads(run("tell", tasting, line["ticket"], "-2", "--json").stdout) == {
        "ticket": line["ticket"],
        "outcome": "same",
    }


def test_a_contradiction_is_refused_and_corrected_with_a_reason(run, tasting):
    (line,) = asked(run, 1)
    assert run("tell", line["ticket"], 4).exit_code == 0
    assert "The first answer stands" in run("tell", line["ticket"], 3).stderr
    from_file = run("tell", "--file", "-", stdin=filled([line]))
    assert from_file.exit_code == 1
    assert from_file.stderr == f"line 2: ticket {line['ticket']} has another answer.\n"
    assert "--reason is missing" in run("correct", line["ticket"], 3).stderr
    corrected = run("correct", line["ticket"], 3, "--reason", "typed 4")
    assert corrected.stdout == "Corrected: it was 4, and is 3.\n"


def test_what_became_of_every_line_is_told_to_machines(run, tasting, monkeypatch):
    lines = asked(run, 3)
    became = ["answered", "gone", "conflict"]
    monkeypatch.setattr(
        Campaign, "record", lambda _, answers: [became[i] for i, _ in enumerate(answers)]
    )
    result = run("tell", "--file", "-", "--json", stdin=filled(lines))
    assert result.exit_code == 1
    found = json.loads(result.stdout)
    assert found["outcomes"] == {"answered": 1, "gone": 1, "conflict": 1}
    assert [(each["line"], each["outcome"]) for each in found["refused"]] == [
        (3, "gone"),
        (4, "conflict"),
    ]
    assert f"line 3: ticket {lines[1]['ticket']} was erased.\n" in result.stderr


def test_tickets_are_declined_released_and_renewed(run, tasting):
    first, second = asked(run, 2)
    assert run("decline", first["ticket"], "--reason", "allergic").exit_code == 0
    assert run("renew", tasting, second["ticket"], "--lease", "2h").exit_code == 0
    assert run("release", second["ticket"]).exit_code == 0
    late = run("renew", second["ticket"])
    assert late.exit_code == 2
    assert "is not out any more" in late.stderr
    assert (
        "north: 1 refused." in run("status").stdout or "south: 1 refused." in run("status").stdout
    )


def test_who_is_present_is_found_by_what_was_typed(run, tasting):
    lines = asked(run, 4, "ann", "--rows", "Bo", "--rows", "3")
    assert {line["row"] for line in lines} <= {"Bo", "3"}
    refused = run("ask", "--who", "ann", "--rows", "Zed")
    assert refused.exit_code == 2
    assert "There is no row 'Zed' in any segment" in refused.stderr


@pytest.mark.parametrize("lease", ["3x", "-1h", "0", "soon"])
def test_a_lease_that_is_no_time_is_refused(run, tasting, lease):
    result = run("ask", "--who", "ann", f"--lease={lease}")
    assert result.exit_code == 2
    assert "write a time such as 90s, 45m, 2h or 7d." in result.stderr


def test_leases_have_units(run, tasting):
    (line,) = json.loads(run("ask", "--who", "ann", "--lease", "2d", "--json").stdout)
    (soon,) = json.loads(run("ask", "--who", "bob", "--lease", "90", "--json").stdout)
    assert 2 * 86_400 - 100 < line["deadline"] - soon["deadline"] < 2 * 86_400


def test_a_terminal_gets_a_table_of_80_columns(run, tasting, monkeypatch):
    monkeypatch.setattr(ask_module, "_on_terminal", lambda: True)
    shown = run("ask", "-n", 9, "--who", "ann").stdout
    assert max(len(line.rstrip()) for line in shown.splitlines()) <= 80
    assert re.search(r"│ \d-\d+-1-[0-9a-f]{16} │ (north|south)", shown)


def test_nothing_to_ask_is_exit_code_1_and_a_reason(run, tasting):
    run("pause", "--why", "a holiday")
    result = run("ask", "--who", "ann", "--json")
    assert (result.exit_code, result.stdout) == (1, "[]\n")
    assert result.stderr == "Nothing to ask now. It is paused: a holiday.\n"
    assert run("resume").exit_code == 0
    assert run("ask", "--who", "ann").exit_code == 0
    assert run("finish", "--why", "enough").exit_code == 0
    assert "It is finished: enough." in run("ask", "--who", "bob").stderr
    assert run("resume").exit_code == 2


def test_a_round_goes_on_without_those_who_cannot_be_reached(run, tasting):
    lines = asked(run, 5)
    run("tell", "--file", "-", stdin=filled(lines))
    result = run("give-up")
    assert re.fullmatch(r"\d+ questions given up.\n", result.stdout)
    assert asked(run, 5, "bob")
    assert json.loads(run("status", "--json").stdout)["round"] == 2


def test_which_campaign(run, tasting, tmp_path, monkeypatch):
    assert run("status").exit_code == 0  # the only one here
    (tmp_path / "other.db").write_bytes(b"")
    several = run("status")
    assert several.exit_code == 2
    assert "several .db files (other.db, tasting.db)" in several.stderr
    monkeypatch.setenv("MALOCATE_URL", "sqlite:///tasting.db")
    assert run("status").exit_code == 0
    monkeypatch.delenv("MALOCATE_URL")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    none = run("status")
    assert none.exit_code == 2
    assert "this folder holds no .db file" in none.stderr


def test_trouble_with_the_database_is_exit_code_3(run, tmp_path):
    (tmp_path / "letter.db").write_text("Dear Sir or Madam, this is not a database. " * 50)
    result = run("status", "letter.db")
    assert result.exit_code == 3
    assert "is no SQLite database" in result.stderr
    assert result.stderr.count("\n") == 1
    assert run("status", "nowhere.db").exit_code == 2


@pytest.mark.parametrize("name", COMMANDS)
def test_help_has_an_example_and_exit_codes(run, name):
    shown = " ".join(run(name, "--help").stdout.split())
    assert f"Example: malocate {COMMANDS[name][1]}" in shown
    assert "Exit codes: 0 done; 1 the answer is no" in shown
    assert COMMANDS[name][1].split()[0] == name


def test_examples_run_where_they_need_no_ticket(run, tmp_path):
    (tmp_path / "tasting.toml").write_text(DESIGN, encoding="utf-8")
    (tmp_path / "last-year.csv").write_text("segment,row,column,value\nnorth,Al,red,4\n")
    examples = [
        text.replace("--once", "--once --nice 0")
        for text in (each[1] for each in COMMANDS.values())
        if "0-17-1" not in text and "--file" not in text
    ]
    assert len(examples) > 12
    for example in sorted(examples, key=lambda text: text.startswith("finish")):
        result = run(*(part.strip("'") for part in re.findall(r"'[^']*'|\S+", example)))
        assert result.exit_code == 0, (example, result.output)


@pytest.mark.parametrize("code", ["import malocate.campaign", "from malocate import Campaign"])
def test_a_missing_sqlalchemy_is_a_sentence(code):
    hidden = f"import sys; sys.modules['sqlalchemy'] = None; {code}"
    found = subprocess.run(
        [sys.executable, "-c", hidden], check=False, capture_output=True, text=True
    )
    assert "MissingDependency: Campaigns need SQLAlchemy" in found.stderr
    assert "pip install 'malocate[campaign]'" in found.stderr


def test_a_missing_sqlalchemy_is_one_line_on_the_command_line(tmp_path):
    code = "import sys; sys.modules['sqlalchemy'] = None; from malocate.cli import app; app()"
    command = [sys.executable, "-c", code, "status", "x.db"]
    found = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path)
    assert found.returncode == 2
    assert found.stderr.startswith("Error: Campaigns need SQLAlchemy, which is not installed")
    assert found.stderr.count("\n") == 1


def test_a_campaign_of_python_is_one_of_the_command_line(run, tmp_path):
    with Campaign.create(tmp_path / "made.db", small_design()) as campaign:
        (ticket,) = campaign.ask(1, who="ann")
    assert asked(run, 1)[0]["ticket"] == ticket.id
