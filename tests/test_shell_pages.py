"""Every line of a shell on a page is run, or marked as not run, with a reason, and still read."""

from __future__ import annotations

from pathlib import Path

import pytest
from shells import blocks_of, files_of, matches, output_of, parse, words_of
from webs import tasting

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
TESTS = {p.name: p.read_text("utf-8") for p in (ROOT / "tests").glob("test_*.py")}


def own_test(page: Path) -> str | None:
    """Give the test that runs the commands of one page alone, with what they need, if any."""
    named = [name for name, text in TESTS.items() if f'"{page.name}"' in text and "```" in text]
    running = [name for name in named if "bash" in TESTS[name] and name != Path(__file__).name]
    return running[0] if running else None


WITH_SHELL = [p for p in PAGES if "\n```bash" in p.read_text("utf-8")]


def page_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


DESIGN = """
budget = 120
estimator = "SoftImpute"

[[segments]]
name = "north"
scale = [1, 5]
shape = [4, 3]
"""


@pytest.mark.parametrize("page", [p for p in WITH_SHELL if not own_test(p)], ids=page_name)
def test_the_commands_on_a_page_run_and_print_what_it_shows(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("MALOCATE_URL", raising=False)
    text = page.read_text(encoding="utf-8")
    for file, body in files_of(text).items():
        Path(file).write_text(body, encoding="utf-8")
    if "<!-- needs: tasting.db -->" in text:
        tasting(tmp_path)
    if "<!-- needs: tasting.toml -->" in text:
        Path("tasting.toml").write_text(DESIGN, encoding="utf-8")
    for block in blocks_of(text):
        if block.reason is None:
            printed = "".join(map(output_of, block.lines))
            assert not block.shown or matches(block.shown, printed), (block.shown, printed)


@pytest.mark.parametrize("page", WITH_SHELL, ids=page_name)
def test_every_command_of_ours_on_a_page_can_be_read(page):
    for block in blocks_of(page.read_text(encoding="utf-8")):
        assert block.reason is None or len(block.reason.split()) >= 3
        for words in filter(None, map(words_of, block.lines)):
            parse(words)


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_no_block_of_a_shell_hides_behind_another_name(page):
    text = page.read_text(encoding="utf-8")
    assert not [n for n in ("sh", "shell", "console", "zsh") if f"```{n}\n" in text]
    assert "\n$ " not in text


def test_pages_that_need_more_have_a_test_of_their_own():
    assert own_test(ROOT / "docs" / "http-api.md") == "test_http_page.py"
    assert own_test(ROOT / "docs" / "live-campaign.md") == "test_live_page.py"
    assert own_test(ROOT / "docs" / "report.md") is None


def test_a_command_that_is_none_is_noticed():
    with pytest.raises(Exception, match="No such command 'reprot'"):
        parse(["reprot", "tasting.db"])
    with pytest.raises(Exception, match="No such option"):
        parse(["report", "tasting.db", "--hmtl", "x.html"])


def test_what_a_page_shows_is_compared():
    assert matches("one\n…\nthree\n", "one\ntwo\nand more\nthree\n")
    assert not matches("one\n…\nthree\n", "one\ntwo\n")
    assert not matches("one\n", "one\ntwo\n")
