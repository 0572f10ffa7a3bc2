"""The pages on losses and strategies show what their code prints, and what they recommend works."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import pytest

from malocate.testing import StrategyChecks

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", re.DOTALL | re.MULTILINE)


def run(page, monkeypatch, capsys):
    """Run a page's code as a module; give what is shown and what is printed, and its names."""
    module = types.ModuleType("a_page")
    monkeypatch.setitem(sys.modules, "a_page", module)  # its classes can be pickled
    told = []
    for code, shown in BLOCK.findall((DOCS / page).read_text(encoding="utf-8")):
        exec(compile(code, page, "exec", dont_inherit=True), module.__dict__)
        told.append((shown, capsys.readouterr().out))
    return told, vars(module)


@pytest.mark.parametrize("page", ["choose-a-loss.md", "write-your-own-strategy.md"])
def test_the_code_on_the_page_prints_what_it_shows(page, monkeypatch, capsys):
    told, _ = run(page, monkeypatch, capsys)
    assert [shown for shown, _ in told] == [printed for _, printed in told]
    assert sum(1 for shown, _ in told if shown) >= 3


def test_the_strategies_of_the_page_pass_all_checks_but_the_bad_one(monkeypatch, capsys):
    _, names = run("write-your-own-strategy.md", monkeypatch, capsys)
    checked = [name for name in dir(StrategyChecks) if name.startswith("test_")]
    for kind in ("TestLeastSure", "TestTeams"):
        for check in checked:
            getattr(names[kind](), check)()
    with pytest.raises(AssertionError, match="nothing is ever known"):
        names["TestPlainMaximum"]().test_no_segment_is_starved()
