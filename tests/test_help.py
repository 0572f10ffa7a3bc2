"""Every command's help at 80 columns, its example, colours, and completion in the shell."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys

import pytest
import typer
from shells import parse
from typer.testing import CliRunner

from malocate.cli import app
from malocate.cli.panels import OTHERS, PANELS, PLACES


def leaves(group, before: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Give every command by its words."""
    found = []
    for name, command in group.commands.items():
        words = (*before, name)
        found += leaves(command, words) if hasattr(command, "commands") else [words]
    return found


GROUP = typer.main.get_command(app)
LEAVES = leaves(GROUP)


@pytest.fixture
def run(monkeypatch, tmp_path):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("MALOCATE_URL", raising=False)
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(app, list(words))


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_help_has_an_example_of_one_line_that_can_be_pasted(run, words):
    shown = run(*words, "--help").stdout
    examples = re.findall(r"Example:\s+malocate (.*\S)", shown)
    assert examples
    assert all(len(line) <= 80 for line in shown.splitlines())
    for example in examples:
        pasted = shlex.split(example)
        assert tuple(pasted[: len(words)]) == words
        parse(pasted)


@pytest.mark.parametrize("words", LEAVES, ids=" ".join)
def test_every_option_and_command_says_what_it_is(words):
    command = GROUP
    for word in words:
        command = command.commands[word]
    assert command.help
    shown = [each for each in command.params if not getattr(each, "hidden", False)]
    assert [each.name for each in shown if not getattr(each, "help", "")] == []


def test_commands_are_grouped_by_what_one_wants_to_do(run):
    shown = run("--help").stdout
    panels = [panel for panel in [*PANELS, OTHERS] if f"─ {panel} ─" in shown]
    assert [shown.index(f"─ {panel} ─") for panel in panels] == sorted(
        shown.index(f"─ {panel} ─") for panel in panels
    )
    assert OTHERS not in panels
    assert {words[0] for words in LEAVES} <= set(PLACES)
    assert all(len(line) <= 80 for line in shown.splitlines())


@pytest.mark.parametrize("wrong", [["reprot"], ["report", "--hmtl"], ["ask", "-n", "many"]])
def test_a_slip_of_the_keys_is_refused_within_80_columns(run, wrong):
    result = run(*wrong)
    assert result.exit_code == 2
    assert all(len(line) <= 80 for line in result.stderr.splitlines())


def test_no_colours_where_none_are_wanted():
    def shown(**settings) -> str:
        command = [sys.executable, "-m", "malocate", "--help"]
        usual = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
        everything = usual | {"TERM": "xterm-256color", "FORCE_COLOR": "1"} | settings
        return subprocess.run(
            command, env=everything, capture_output=True, text=True, check=True
        ).stdout

    colour = re.compile(r"\x1b\[(?:\d;)?3\d")
    assert colour.search(shown())
    assert not colour.search(shown(NO_COLOR="1"))


@pytest.mark.parametrize(("typed", "wanted"), [("rep", "report"), ("report --h", "--html")])
def test_the_shell_completes(typed, wanted):
    program = "from malocate.cli import app; app(prog_name='malocate')"
    line = f"malocate {typed}"
    settings = {"_MALOCATE_COMPLETE": "complete_bash", "COMP_WORDS": line}
    settings["COMP_CWORD"] = str(len(line.split()) - 1)
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PATH": "", "PYTHONPATH": ":".join(sys.path)} | settings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert wanted in done.stdout.split()
