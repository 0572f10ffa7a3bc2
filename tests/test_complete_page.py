"""The page "From a file of ratings to completed tables" runs, and shows what it prints."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from test_how_sure import words_and_numbers
from typer.testing import CliRunner

from malocate.cli import app

PAGE = (Path(__file__).parents[1] / "docs" / "complete.md").read_text(encoding="utf-8")
MAKE = re.search(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)[1]
BLOCK = re.compile(r"^```bash\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", re.DOTALL | re.MULTILINE)


def output_of(line: str) -> str:
    program, *words = shlex.split(line)
    if program == "head":
        lines = Path(words[1]).read_text(encoding="utf-8").splitlines(keepends=True)
        return "".join(lines[: -int(words[0])])
    assert program == "malocate"
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, (line, result.output)
    return result.stdout


def test_three_commands_lead_from_ratings_to_completed_tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    exec(compile(MAKE, "complete.md", "exec", dont_inherit=True), {"__name__": "page"})
    (first, _), *blocks = BLOCK.findall(PAGE)
    install, *commands = first.splitlines()
    assert install.startswith("pip install")
    assert len(commands) == 2
    told = {line for block, _ in blocks for line in block.splitlines()}
    assert set(commands) <= told
    for block, shown in blocks:
        assert shown
        words, numbers = words_and_numbers("".join(map(output_of, block.splitlines())))
        expected_words, expected = words_and_numbers(shown)
        assert words == expected_words
        assert numbers == pytest.approx(expected, rel=0.03, abs=0.011)
    completed = Path("completed.csv").read_text(encoding="utf-8")
    assert completed.count("\n") == 1 + (80 + 60) * 8
    assert Path("completed.png").read_bytes().startswith(b"\x89PNG")
