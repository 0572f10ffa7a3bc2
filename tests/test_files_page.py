"""The commands on the page "Files people have" run in turn, and print what it shows."""

from __future__ import annotations

import re
from pathlib import Path

from test_live_page import BLOCK, output_of

PAGE = (Path(__file__).parents[1] / "docs" / "files.md").read_text(encoding="utf-8")
FILE = re.compile(r'^```\w+ title="([\w.-]+)"\n(.*?)^```', re.DOTALL | re.MULTILINE)


def test_the_commands_on_the_page_run_and_print_what_it_shows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("MALOCATE_URL", raising=False)
    for name, text in FILE.findall(PAGE):
        Path(name).write_text(text, encoding="utf-8")
    compared = 0
    for block, shown in BLOCK.findall(PAGE):
        printed = "".join(output_of(line) for line in block.splitlines())
        assert not shown or printed == shown
        compared += bool(shown)
    assert compared >= 5
    assert Path("answers-wide.csv").read_text(encoding="utf-8").startswith("segment,row,")
