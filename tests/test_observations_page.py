"""The page docs/observations.md runs, and shows what its code gives."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "observations.md"


def test_the_code_on_the_page_gives_what_it_shows():
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    shown = 0
    for block in blocks:
        exec(block, names)
        for line, result in re.findall(r"^(.+?)  # → (.+)$", block, re.MULTILINE):
            assert repr(eval(line, names)) == result
            shown += 1
    assert len(blocks) >= 9
    assert shown >= 12
