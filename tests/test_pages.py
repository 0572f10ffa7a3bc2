"""Pages whose code is exact show what it gives: after an arrow, or in a block of text below it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGES = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", re.DOTALL | re.MULTILINE)
SHOWN = re.compile(r"^(.+?)  +# → (.+)$", re.MULTILINE)


EXACT = {"observations": 12, "sources": 3, "theory": 8}
"""Pages, and how many results they show at least."""


@pytest.mark.parametrize(("page", "shown"), EXACT.items())
def test_the_code_on_a_page_gives_what_it_shows(page, shown, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": page}
    for block, printed in BLOCK.findall((PAGES / f"{page}.md").read_text(encoding="utf-8")):
        exec(block, names)
        assert not printed or capsys.readouterr().out == printed
        for line, result in SHOWN.findall(block):
            assert repr(eval(line, names)) == result
            shown -= 1
    assert shown <= 0
