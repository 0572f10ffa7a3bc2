"""`malocate plan`: what a budget buys and a target costs, from a design in a file."""

from __future__ import annotations

import json
import re
from functools import partial

import pandas
import pytest
from typer.testing import CliRunner

from malocate import Synthetic
from malocate.cli import app

DESIGN = """
budget = 600

[estimator]
name = "SoftImpute"
centre = "mean"

[[segments]]
name = "north"
shape = [20, 14]
scale = [1, 5]

[[segments]]
name = "south"
shape = [12, 14]
scale = [1, 5]
"""


@pytest.fixture
def run(run, tmp_path):
    (tmp_path / "tasting.toml").write_text(DESIGN, encoding="utf-8")
    return partial(run, "plan", "tasting.toml", "--runs", 2, "--jobs", 1)


@pytest.fixture
def pilot(tmp_path):
    frames = []
    for name, shape in (("north", (20, 14)), ("south", (12, 14))):
        seen = Synthetic.ratings(shape, rank=1, rng=1).observe(60, rng=2)
        columns = {"segment": name, "row": seen.rows, "column": seen.cols, "value": seen.values}
        frames.append(pandas.DataFrame(columns))
    path = tmp_path / "pilot.csv"
    pandas.concat(frames).to_csv(path, index=False)
    return path


def test_a_table_and_sentences_in_80_columns(run):
    result = run("--target", "rmse<=0.6", "--rank", "north=3")
    assert result.exit_code == 0, result.output
    table = [line for line in result.stdout.splitlines() if line[:1] in "┏┃┡│├└"]
    assert len(table) > 10
    assert max(map(len, table)) <= 80
    assert not [
        line for line in table if re.search(r"│ +\(", line)
    ]  # no range on a line of its own
    assert re.search(r"For an RMSE of 0.6 or less in every segment you need about [\d,]+ answers", (
        result.stdout
    ))  # fmt: skip
    assert "Seen in simulation, no promise" in result.stdout


def test_a_pilot_from_a_file_and_a_folder(run, pilot, tmp_path):
    result = run("--pilot", pilot, "--out", "plan", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout, parse_constant=pytest.fail)
    assert found["from_pilot"] is True
    assert found["label"] == "seen in simulation"
    assert set(found["strategies"]) == {"MALocate", "uniform", "good allocation"}
    assert {each.name for each in (tmp_path / "plan").iterdir()} == {
        "plan.png",
        "plan.json",
        "curves.csv",
    }
    assert json.loads((tmp_path / "plan" / "plan.json").read_text(encoding="utf-8")) == found


def test_another_budget_and_a_picture(run, tmp_path):
    result = run("--budget", 500, "--out", "plan.svg")
    assert result.exit_code == 0, result.output
    assert "With 500 answers the worst segment's RMSE" in result.stdout
    assert (tmp_path / "plan.svg").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target", "good"], "The target 'good' cannot be read; write it as rmse<=0.15"),
        (["--out", "plan.doc"], "--out plan.doc must end in .pdf, .png or .svg, or be a folder."),
        (["--out", "no/plan.png"], "does not exist; make it first."),
        (["--pilot", "no.csv"], "no.csv"),
        (["--rank", "99"], "rank of 'north' is 99; for shape (20, 14) it is 14 at most."),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(run, arguments, message):
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("north,0,0,9", "line 122: value is 9"),
        ("north,77,0,3", "line 122: segment 'north' has no row '77'"),
        ("nroth,0,0,3", "line 122: there is no segment 'nroth'; is 'north' meant?"),
    ],
)
def test_a_pilot_that_does_not_fit_is_told_by_line(run, pilot, line, message):
    pilot.write_text(pilot.read_text(encoding="utf-8") + line + "\n", encoding="utf-8")
    result = run("--pilot", pilot)
    assert result.exit_code == 2
    assert message in result.stderr


def test_the_example_in_its_help_runs(run):
    shown = CliRunner().invoke(app, ["plan", "--help"]).stdout
    example = re.search(r"Example:\s+malocate plan tasting.toml (.*\S)", shown)
    assert run(*example[1].replace('"', "").split()).exit_code == 0
