"""The command line, as people meet it."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from typer.testing import CliRunner

import malocate
from malocate.cli import app
from malocate.cli.demo import MARKET, market

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
