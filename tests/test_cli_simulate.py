"""`malocate simulate`: a design of one's own on made-up matrices."""

from __future__ import annotations

import json
import re
from functools import partial

import pytest
from typer.testing import CliRunner

from malocate import Design, InvalidInput, Run, Segment
from malocate.cli import app
from malocate.experiments.twins import twins

DESIGN = """
budget = 700
estimator = "SoftImpute"

[[segments]]
name = "north"
shape = [20, 16]
scale = [1, 5]

[[segments]]
name = "south"
shape = [14, 12]
"""


@pytest.fixture
def design(tmp_path):
    path = tmp_path / "tasting.toml"
    path.write_text(DESIGN, encoding="utf-8")
    return path


@pytest.fixture
def run(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    return partial(run, "simulate", "--jobs", 1)


def test_it_shows_answers_errors_bounds_and_what_it_was_worth(run, design):
    result = run(design, "--rank", 1, "--rank", "north=4")
    assert result.exit_code == 0, result.output
    line = r"│ (\w*) +│ [\d× ]+│ +(\d*) │ (\w+) +│ +([\d,]+) │ +([\d.]+) │ +(.+?) │"
    rows = re.findall(line, result.stdout)
    assert [row[0] for row in rows] == ["north", "south"] or len(rows) == 4
    assert ["4", "1"] == [row[1] for row in rows if row[1]]
    assert "MALocate stopped: the budget is spent." in result.stdout
    assert re.search(r"uniform (would have needed|does as well)", result.stdout)


def test_names_are_shown_as_they_are(run, design, tmp_path):
    name = "[/x] [b]$_{$ :heart:"
    design.write_text(DESIGN.replace("north", name), encoding="utf-8")
    result = run(design, "--out", tmp_path / "trial")
    assert result.exit_code == 0, result.output
    assert name in result.stdout


def test_approximate_bounds_are_marked_and_promise_nothing(run, design):
    design.write_text(DESIGN.replace("scale = [1, 5]", ""), encoding="utf-8")
    shown = run(design, "--against", "none").stdout
    assert "≈: approximate, which promises nothing" in shown
    assert "certainty" not in shown
    assert shown.count("≈ ") == 2


def test_a_budget_that_pays_for_nothing(run, design, tmp_path):
    design.write_text(DESIGN.replace("700", "0.5"), encoding="utf-8")
    result = run(design, "--out", tmp_path / "trial")
    assert result.exit_code == 0, result.output
    assert "Nobody was asked" in result.stdout


def test_a_strategy_against_itself_has_a_folder_of_its_own(run, design, tmp_path):
    design.write_text('strategy = "Uniform"\n' + DESIGN.replace("700", "0.5"), encoding="utf-8")
    assert run(design, "--out", tmp_path / "trial").exit_code == 0
    folders = {path.name for path in (tmp_path / "trial").iterdir() if path.is_dir()}
    assert folders == {"Uniform", "rival-uniform"}


def test_the_example_in_its_help_runs(run, design, tmp_path):
    found = CliRunner().invoke(app, ["simulate", "--help"]).stdout
    example = re.search(r"Example:\s+malocate simulate (.*\S)", found)
    assert run(*example[1].split()).exit_code == 0
    assert (tmp_path / "trial" / "picture.png").exists()


def test_the_design_in_its_help_is_one(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    shown = CliRunner().invoke(app, ["simulate", "--help"]).stdout
    text = "\n".join(line.strip() for line in shown.splitlines())
    found = re.search(r"budget = .*?(?=\n\n\n|\n╭)", text, re.DOTALL)
    assert [each.name for each in Design.from_toml(found[0]).segments] == ["north", "south"]


def test_out_holds_runs_that_load_a_summary_and_a_picture(run, design, tmp_path):
    result = run(design, "--out", tmp_path / "new" / "trial", "--json")
    assert result.exit_code == 0, result.output
    out = tmp_path / "new" / "trial"
    assert sorted(file.name for file in out.iterdir()) == [
        "MALocate",
        "picture.png",
        "summary.json",
        "uniform",
    ]
    assert json.loads((out / "summary.json").read_text()) == json.loads(result.stdout)
    spent = [Run.load(out / name).records[-1].spent for name in ("MALocate", "uniform")]
    assert spent == [700, 700]
    assert run(design, "--out", out, "--against", "none").exit_code == 0  # replaced


def test_json_is_for_machines(run, design):
    result = run(design, "--json", "--seed", 5, "--noise", 0.3)
    found = json.loads(result.stdout, parse_constant=pytest.fail)
    assert found["ranks"] == {"north": 3, "south": 3}
    assert set(found["runs"]) == {"MALocate", "uniform"}
    north = found["runs"]["MALocate"]["segments"]["north"]
    assert set(north) == {"answers", "true_rmse", "rmse_bound", "label"}
    total = sum(each["answers"] for each in found["runs"]["uniform"]["segments"].values())
    assert total == found["runs"]["uniform"]["spent"] == 700
    assert found["comparison"]["reached"] in (True, False)


@pytest.mark.parametrize("rival", ["proportional", "oracle", "none"])
def test_rivals(run, design, rival):
    found = json.loads(run(design, "--against", rival, "--json").stdout)
    alone = rival == "none"
    assert list(found["runs"]) == (["MALocate"] if alone else ["MALocate", rival])
    assert (found["comparison"] is None) == alone


def test_a_seed_decides_everything(run, design):
    one, two, other = (run(design, "--seed", seed, "--json").stdout for seed in (1, 1, 2))
    assert one == two != other


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rank", "many"], "--rank many is no rank; write a number, or a segment's name, ="),
        (["--rank", "noth=3"], "given for a segment 'noth', which is none; did you mean 'north'?"),
        (["--rank", "99"], "rank of 'north' is 99; for shape (20, 16) it is 16 at most."),
        (["--rank", "0"], "rank of 'north' is 0"),
        (["--out", "tasting.toml"], "--out tasting.toml is a file; give a folder."),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(run, design, arguments, message):
    result = run(design, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_folder_with_something_else_is_refused_before_the_work(run, design, tmp_path):
    (tmp_path / "trial" / "uniform").mkdir(parents=True)
    (tmp_path / "trial" / "uniform" / "thesis.tex").write_text("precious")
    result = run(design, "--out", tmp_path / "trial")
    assert result.exit_code == 2
    assert "holds something other than a saved run" in result.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("budget = ", "tasting.toml: The design is not TOML"),
        ("budget = 10", "tasting.toml: The design has no segments; give it."),
    ],
)
def test_a_design_that_is_wrong_is_named(run, design, text, message):
    design.write_text(text)
    result = run(design)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_design_that_is_not_there(run, tmp_path):
    result = run(tmp_path / "nowhere.toml")
    assert result.exit_code == 2
    assert "nowhere.toml cannot be read: No such file or directory." in result.stderr


def test_twins_answer_on_the_segments_scale():
    segments = [Segment("a", (9, 8), scale=(0, 10)), Segment("b", (9, 2))]
    made = twins(Design(segments, budget=100), 2, noise=None, seed=1)
    assert made["a"].scale == (0, 10)
    assert made["a"].noise == 1.25
    assert made["b"].noise == 0.1
    assert (made["a"].truth != twins(Design(segments, budget=100), 2, seed=2)["a"].truth).any()


def test_a_scale_without_whole_ends_has_no_twin():
    design = Design([Segment("a", (9, 8), scale=(0, 2.5))], budget=100)
    with pytest.raises(InvalidInput, match=r"Segment 'a' has the scale \(0.0, 2.5\); a twin"):
        twins(design)


def test_a_goal_that_was_not_reached_is_foretold(run, design):
    design.write_text(f"rmse = 0.5{DESIGN}scale = [1, 5]\n", encoding="utf-8")
    result = run(design, "--rank", 1, "--against", "none")
    assert result.exit_code == 0, result.output
    assert re.search(r"Its goal would take about [\d,]+ answers more \(north ", result.stdout)
    said = json.loads(run(design, "--rank", 1, "--against", "none", "--json").stdout)
    left = said["runs"]["MALocate"]["answers_left"]
    assert set(left) == {"north", "south"}
    assert sum(left.values()) > 0


def test_without_a_goal_nothing_is_foretold(run, design):
    assert "Its goal" not in run(design, "--rank", 1, "--against", "none").stdout
