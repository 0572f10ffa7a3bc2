"""The commands on the page docs/plan.md run in turn, with few twins and a quick estimator."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

from typer.testing import CliRunner

from malocate.cli import app

PAGE = (Path(__file__).parents[1] / "docs" / "plan.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(toml|python|bash)\n(.*?)^```", re.DOTALL | re.MULTILINE)
QUICK = 'estimator = "SoftImpute"\n'


def run(line: str) -> None:
    words = shlex.split(line)
    out = Path(words[words.index(">") + 1]) if ">" in words else None
    given = words[1 : words.index(">") if out else None]
    result = CliRunner().invoke(app, [*given, "--runs", "2", "--jobs", "1"])
    assert result.exit_code == 0, (line, result.output)
    if out is not None:
        out.write_text(result.stdout, encoding="utf-8")


def test_the_commands_on_the_page_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    commands = 0
    for kind, text in BLOCK.findall(PAGE):
        if kind == "toml":
            Path("tasting.toml").write_text(QUICK + text, encoding="utf-8")
        elif kind == "python":
            exec(text, {"__name__": "plan"})
        else:
            for line in text.splitlines():
                run(line)
                commands += 1
    assert commands >= 4
    assert json.loads(Path("plan.json").read_text(encoding="utf-8"))["budget"] == 2000
    saved = {each.name for each in Path("plan").iterdir()}
    assert saved == {"plan.png", "plan.json", "curves.csv"}
