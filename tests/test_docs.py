"""Undocumented means failing: docstrings, pages and the README keep up with the code."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import tomllib
from pathlib import Path

import pytest

import malocate
import malocate.examples
import malocate.files
import malocate.plots
import malocate.sklearn
import malocate.testing

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
HOMES = (
    malocate,
    malocate.examples,
    malocate.files,
    malocate.plots,
    malocate.sklearn,
    malocate.testing,
)
PUBLIC = [(home.__name__, name) for home in HOMES for name in home.__all__]


def page_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize(("home", "name"), PUBLIC)
def test_a_public_name_has_a_docstring_with_an_example(home, name):
    text = inspect.getdoc(getattr(sys.modules[home], name))
    assert text
    assert ">>> " in text


@pytest.mark.parametrize(("home", "name"), PUBLIC)
def test_a_public_name_is_on_a_page(home, name):
    told = [page.read_text(encoding="utf-8") for page in PAGES if page.name != "CHANGELOG.md"]
    assert any(re.search(rf"\b{name}\b", text) for text in told)


EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.md"))


@pytest.mark.parametrize(
    "page",
    [p for p in PAGES if BLOCK.search(p.read_text(encoding="utf-8")) and p not in EXAMPLES],
    ids=page_name,
)
def test_python_on_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": page.stem}
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        exec(compile(block, page_name(page), "exec", dont_inherit=True), names)


NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


@pytest.mark.parametrize("page", EXAMPLES, ids=page_name)
def test_a_page_on_real_data_says_what_its_code_prints(page, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    monkeypatch.chdir(tmp_path)
    told = importlib.import_module("example_pages").told
    texts = []
    for printed, shown in told(page.read_text(encoding="utf-8"), page_name(page)):
        assert NUMBER.sub("#", printed) == NUMBER.sub("#", shown)
        numbers = [
            [float(each.replace(",", "")) for each in NUMBER.findall(text)]
            for text in (printed, shown)
        ]
        assert numbers[0] == pytest.approx(numbers[1], rel=0.3, abs=0.1)  # processors differ
        texts.append(shown)
    assert sum(map(bool, texts)) >= 4
    assert list(tmp_path.glob("*.png")) == [tmp_path / f"{page.stem}.png"]
    assert (page.parent / f"{page.stem}.png").exists()


def test_the_readme_has_python_to_run():
    assert BLOCK.search((ROOT / "README.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_make_targets_on_a_page_exist(page):
    targets = set(
        re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert set(re.findall(r"`make ([a-z-]+)", page.read_text(encoding="utf-8"))) <= targets


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_links_between_pages_lead_somewhere(page):
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


MEASURED = [f"estimators/{name}.md" for name in ("online", "projected", "square_root_lasso")]
MEASURED += [f"examples/{name}.md" for name in ("french-fries", "polls", "spending")]


@pytest.mark.parametrize("page", [*MEASURED, "plan.md", "reproduce.md"])
def test_measured_tables_on_a_page_are_those_of_the_committed_rows(page, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    written = importlib.import_module("pages")
    shown = (ROOT / "docs" / page).read_text(encoding="utf-8")
    paragraphs = written.measured(ROOT / "benchmarks" / "results")[page]
    assert shown == written.replaced(shown, paragraphs)
    assert any(paragraph.startswith("| ") for paragraph in paragraphs)


def test_a_claim_without_a_number_is_a_dash(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    row = {
        "number": "5",
        "recipe": "best",
        "measure": "a share",
        "value": "",
        "low": "",
        "high": "",
    }
    shown = importlib.import_module("pages")._claim(row | {"verdict": "not reached in 1 of 2 runs"})
    assert (shown["mean"], shown["95 % interval"]) == ("–", "–")


def test_the_coverage_report_is_that_of_the_committed_rows(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    written, tables = (importlib.import_module(name) for name in ("bands_page", "tables"))
    assert (ROOT / "docs" / "coverage.md").read_text(encoding="utf-8") == written.page()
    rows = tables.read(tables.RESULTS / "coverage.csv")
    assert {row["bound"] for row in rows} == set(written.ORDER)


def test_the_version_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == malocate.__version__
    assert f"## {malocate.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
