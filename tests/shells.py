"""Commands on pages and in helps: run as a shell would, or at least read as malocate reads them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import typer
from typer.testing import CliRunner

from malocate.cli import app

BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<reason>.*?) -->\n)?"
    r"^```bash[^\n]*\n(?P<code>.*?)^```\n"
    r"(?:\n```text\n(?P<shown>.*?)^```)?",
    re.DOTALL | re.MULTILINE,
)
FILE = re.compile(r'^```\w+ title="([\w.-]+)"\n(.*?)^```', re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    """Lines of a shell on a page: why they are not run, if so, and what is shown to come out."""

    reason: str | None
    lines: list[str]
    shown: str


def blocks_of(text: str) -> list[Block]:
    """Give the blocks of a page; a line that ends in a backslash goes on in the next."""
    return [
        Block(
            found["reason"], found["code"].replace("\\\n", " ").splitlines(), found["shown"] or ""
        )
        for found in BLOCK.finditer(text)
    ]


def files_of(text: str) -> dict[str, str]:
    """Give the files that a page shows by their names: blocks with a title."""
    return dict(FILE.findall(text))


def words_of(line: str) -> list[str]:
    """Give the words of a command of ours, up to where its output goes; none for another's."""
    words = shlex.split(os.path.expandvars(line), comments=True)
    if words[:1] != ["malocate"] or words[1].startswith("--"):
        return []
    ends = [place for place, word in enumerate(words) if word in (">", "|", "&&", "<")]
    return words[1 : ends[0] if ends else None]


def parse(words: list[str]) -> None:
    """Read the words of a command as malocate does, without doing anything; raise if it cannot."""
    command = typer.main.get_command(app)
    context = command.make_context("malocate", [], resilient_parsing=True)
    while hasattr(command, "commands"):
        context.resilient_parsing = False
        name, command, words = command.resolve_command(context, words)
        if hasattr(command, "commands"):
            context = command.make_context(name, [], parent=context, resilient_parsing=True)
    command.make_context(name, list(words), parent=context)


def output_of(line: str) -> str:
    """Run one line: malocate in this process, which saves its start, anything else in a shell."""
    if not line.startswith("malocate ") or " | " in line:
        program = f'malocate() {{ "{sys.executable}" -m malocate "$@"; }}\n{line}'
        done = subprocess.run(["bash", "-c", program], check=True, capture_output=True, text=True)
        return done.stdout
    words = shlex.split(os.path.expandvars(line), comments=True)
    out = Path(words[words.index(">") + 1]) if ">" in words else None
    result = CliRunner().invoke(app, words[1 : words.index(">") if out else None])
    assert result.exit_code == 0, (line, result.output)
    if out is None:
        return result.stdout
    out.write_text(result.stdout, encoding="utf-8")
    return ""


def matches(shown: str, printed: str) -> bool:
    """Whether a page shows what was printed; a line of … stands for any lines.

    Spaces at the ends of lines do not count.
    """
    plain = "".join(f"{line.rstrip()}\n" for line in printed.strip("\n").splitlines())
    lines = shown.strip("\n").splitlines()
    pattern = ["(?:.*\n)*?" if line == "…" else re.escape(f"{line.rstrip()}\n") for line in lines]
    return re.fullmatch("".join(pattern), plain) is not None
