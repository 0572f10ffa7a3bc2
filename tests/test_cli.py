"""The command line, as people meet it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import malocate
from malocate.cli import app
from malocate.cli.demo import MARKET, market
from malocate.cli.showing import check_picture

demo_module = sys.modules["malocate.cli.demo"]


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("NO_COLOR", "1")
    return lambda *arguments: CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def hamlet(monkeypatch):
    """A market small enough for a test."""
    monkeypatch.setattr(demo_module, "MARKET", {"Up": ((16, 12), 4), "Down": ((12, 10), 1)})
    monkeypatch.setattr(demo_module, "BUDGET", 600)
    monkeypatch.setattr(demo_module, "BATCH", 100)


def test_version(run):
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, f"malocate {malocate.__version__}\n")


def test_help_lists_the_commands(run):
    result = run("--help")
    assert result.exit_code == 0
    assert {"demo", "simulate"} <= set(result.stdout.split())


def test_help_loads_no_compiler():
    code = "import malocate.cli, sys; print('numba' in sys.modules, 'pandas' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout.split() == ["False", "False"]


@pytest.mark.slow
def test_help_of_the_demo_has_an_example_that_runs(run, hamlet, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    example = re.search(r"Example:\s+malocate (.*\S)", run("demo", "--help").stdout)
    assert run(*example[1].split(), "--jobs", 1).exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["seven.png"]


def test_the_demo_compares_and_saves_a_picture(run, hamlet, tmp_path):
    result = run("demo", "--output", tmp_path / "picture.png", "--jobs", 1)
    assert result.exit_code == 0, result.output
    lines = re.findall(
        r"│ (MALocate|uniform) +│ +([\d,]+) │ +([\d.]+) │ +([\d.]+) │", result.stdout
    )
    assert [line[0] for line in lines] == ["MALocate", "uniform"] * 2
    answers = [int(line[1]) for line in lines]
    assert answers[0] + answers[2] == answers[1] + answers[3] == 600
    assert answers[0] > answers[1]  # the harder town
    assert all(float(line[2]) < float(line[3]) for line in lines)  # the error is below its bound
    assert "≈" not in result.stdout  # every bound is certified
    assert "certified: with certainty 0.95 all hold, at all looks together" in result.stdout
    words = " ".join(result.stdout.split())
    assert re.search(r"uniform (would have needed [\d,]+ answers more|does as well here)", words)
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    assert str(tmp_path / "picture.png") in result.stdout


def test_a_seed_makes_a_market():
    (one, first), (two, same), (other, another) = (market(seed) for seed in (3, 3, 4))
    assert one == two != other
    assert all((first[town].truth == same[town].truth).all() for town in MARKET)
    assert all((first[town].truth != another[town].truth).any() for town in MARKET)


@pytest.mark.slow
def test_the_whole_demo_saves_answers_and_certifies(run, tmp_path):
    result = run("demo", "--output", tmp_path / "picture.png")
    assert result.exit_code == 0, result.output
    assert all(town in result.stdout for town in MARKET)
    assert "≈" not in result.stdout
    found = re.search(r"needed ([\d,]+) answers more", " ".join(result.stdout.split()))
    assert int(found[1].replace(",", "")) > 2_000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--output", "nowhere/demo.png"],
            "Error: The folder of --output nowhere/demo.png does not exist; make it first.\n",
        ),
        (
            ["--output", "demo.xyz"],
            "Error: --output demo.xyz must end in .pdf, .png or .svg.\n",
        ),
    ],
)
def test_an_error_is_one_line_and_exit_code_2(run, arguments, message):
    result = run("demo", *arguments)
    assert (result.exit_code, result.stderr) == (2, message)


def test_a_picture_that_cannot_be_written_is_told_of_at_once(run, tmp_path):
    (tmp_path / "folder.png").mkdir()
    result = run("demo", "--output", tmp_path / "folder.png")
    assert result.exit_code == 2
    assert "cannot be written: Is a directory; choose another place." in result.stderr


@pytest.mark.parametrize(
    ("command", "long_job"),
    [
        (["demo", "--output", "new.png"], "malocate.experiments.compare.compare"),
        (["simulate", "design.toml"], "malocate.experiments.compare.compare"),
        (["reproduce", "1", "--out", "."], "malocate.experiments.reproduce.reproduce"),
    ],
)
def test_control_c_is_one_line_and_leaves_no_picture(run, tmp_path, monkeypatch, command, long_job):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.chdir(tmp_path)
    Path("design.toml").write_text('budget = 100\n[[segments]]\nname = "north"\nshape = [9, 8]\n')
    monkeypatch.setattr(long_job, stopped)
    result = run(*command)
    assert (result.exit_code, result.stderr) == (130, "Stopped.\n")
    assert [path.name for path in tmp_path.iterdir()] == ["design.toml"]


def test_an_earlier_picture_is_kept_until_there_is_a_new_one(tmp_path):
    (tmp_path / "old.png").write_text("precious")
    check_picture(tmp_path / "old.png")
    assert (tmp_path / "old.png").read_text() == "precious"


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("file", "--out file is a file; give a folder."),
        ("file/deeper", "--out file/deeper cannot be written to: Not a directory; choose another"),
        ("/proc/self", "--out /proc/self cannot be written to: "),
    ],
)
def test_a_reproduction_needs_a_folder_it_can_write_to(run, tmp_path, monkeypatch, out, message):
    monkeypatch.chdir(tmp_path)
    Path("file").write_text("precious")
    monkeypatch.setattr("malocate.experiments.reproduce.reproduce", pytest.fail)
    result = run("reproduce", 1, "--out", out)
    assert result.exit_code == 2
    assert f"Error: {message}" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["demo", "simulate"])
def test_without_matplotlib_the_extra_is_named(run, tmp_path, monkeypatch, command):
    for name in [name for name in sys.modules if name.startswith("malocate.plots")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib.axes", None)
    design = tmp_path / "design.toml"
    design.write_text('budget = 100\n[[segments]]\nname = "north"\nshape = [9, 8]\n')
    places = {"demo": ["--output", tmp_path / "a.png"], "simulate": [design, "--out", tmp_path]}
    result = run(command, *places[command])
    message = (
        "Error: Pictures need matplotlib, which is not installed: pip install 'malocate[plots]'\n"
    )
    assert (result.exit_code, result.stderr) == (2, message)
