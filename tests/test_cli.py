"""The command line, as people meet it."""

from __future__ import annotations

import re
import sys

import pytest
from typer.testing import CliRunner

import malocate
from malocate.cli import app


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("NO_COLOR", "1")
    return lambda *arguments: CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_version(run):
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, f"malocate {malocate.__version__}\n")


def test_help_lists_the_commands(run):
    result = run("--help")
    assert result.exit_code == 0
    assert "demo" in result.stdout


def test_help_of_the_demo_has_an_example_that_parses(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    example = re.search(r"Example:\s+malocate (.*\S)", run("demo", "--help").stdout)
    assert run(*example[1].split()).exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["seven.png"]


def test_the_demo_beats_the_column_means_and_saves_a_picture(run, tmp_path):
    result = run("demo", "--output", tmp_path / "picture.png")
    assert result.exit_code == 0, result.output
    errors = dict(re.findall(r"│ (\w[\w ]*?) +│ +\d+ │ (\d\.\d+) │", result.stdout))
    assert set(errors) == {"column means", "SoftImpute", "LowRankLeastSquares"}
    assert float(errors["LowRankLeastSquares"]) < float(errors["column means"]) / 2
    assert float(errors["SoftImpute"]) < float(errors["column means"])
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")
    assert str(tmp_path / "picture.png") in result.stdout
    found = re.search(
        r"at most ([\d.]+); the estimate is ([\d.]+\d)", " ".join(result.stdout.split())
    )
    assert "(certified)" in result.stdout
    assert float(found[2]) < float(found[1]) < 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rank", 0], "Error: `rank` is 0; for shape (150, 100) it must be 1 to 100.\n"),
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


def test_without_matplotlib_the_demo_names_the_extra(run, tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "malocate.plots", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib.axes", None)
    result = run("demo", "--output", tmp_path / "picture.png")
    message = (
        "Error: Pictures need matplotlib, which is not installed: pip install 'malocate[plots]'\n"
    )
    assert (result.exit_code, result.stderr) == (2, message)
