"""The commands on the page "Run a live campaign" run in turn, and print what it shows."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from databases import database
from shells import output_of

PAGE = (Path(__file__).parents[1] / "docs" / "live-campaign.md").read_text(encoding="utf-8")
DESIGN = re.search(r"^```toml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)[1]
BLOCK = re.compile(r"^```bash\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", re.DOTALL | re.MULTILINE)
SERVER = "postgresql://survey@db.example/survey"


@pytest.fixture
def server(postgresql):
    with database(postgresql) as url:
        yield url


def test_the_commands_on_the_page_run_and_print_what_it_shows(tmp_path, monkeypatch, server):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("MALOCATE_URL", raising=False)
    Path("tasting.toml").write_text(DESIGN, encoding="utf-8")
    compared = 0
    for block, printed in BLOCK.findall(PAGE):
        shown = ""
        for line in block.splitlines():
            if setting := re.fullmatch(r"export (\w+)=(\S+)", line):
                monkeypatch.setenv(setting[1], setting[2].replace(SERVER, server))
            else:
                shown += output_of(line)
        assert not printed or shown == printed
        compared += bool(printed)
    assert compared >= 3
    assert Path("completions.csv").read_text(encoding="utf-8").count("\n") == 22
    found = json.loads(Path("status.json").read_text(encoding="utf-8"))
    assert sum(segment["lent"] for segment in found["segments"]) == 5
