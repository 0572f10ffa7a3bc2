"""Undocumented means failing: docstrings, pages and the README keep up with the code."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
import sys
import tomllib
from pathlib import Path

import pytest
import typer
from test_pages import EXACT
from webs import tasting

import malocate
import malocate.examples
import malocate.files
import malocate.plots
import malocate.sklearn
import malocate.testing
from malocate.cli import app

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
RUN_ELSEWHERE = {*EXAMPLES, *(ROOT / "docs" / f"{name}.md" for name in EXACT)}


@pytest.mark.parametrize(
    "page",
    [p for p in PAGES if BLOCK.search(p.read_text(encoding="utf-8")) and p not in RUN_ELSEWHERE],
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


@pytest.mark.parametrize("name", malocate.__all__)
def test_a_public_name_is_in_the_reference(name):
    thing = getattr(malocate, name)
    text = "".join(page.read_text("utf-8") for page in (ROOT / "docs" / "reference").glob("*.md"))
    assert f"::: {thing.__module__}.{thing.__qualname__}\n" in text


def documented_settings(heading: str) -> set[str]:
    text = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    section = text.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    return set(re.findall(r"^\| `(\w+)`", section, re.MULTILINE))


@pytest.mark.parametrize(("heading", "kind"), [("The design", "Design"), ("A segment", "Segment")])
def test_every_setting_of_a_design_is_on_its_page(heading, kind):
    settings = {each.name for each in dataclasses.fields(getattr(malocate, kind)) if each.init}
    assert documented_settings(heading) == settings


def commands(group, before: str = "malocate") -> dict[str, str]:
    """Give the examples of all commands."""
    found = {}
    for name, command in group.commands.items():
        words = f"{before} {name}"
        if hasattr(command, "commands"):
            found |= commands(command, words)
        else:
            found[words] = re.search(r"Example:\s+(malocate .*)", command.epilog)[1].strip()
    return found


COMMANDS = commands(typer.main.get_command(app))


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_on_its_page_with_its_example(command):
    text = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    row = re.search(rf"^\| `{command}` \|.*$", text, re.MULTILINE)
    assert row, f"docs/commands.md has no line for {command}"
    assert f"`{COMMANDS[command]}`" in row[0].replace("\\|", "|")


def test_every_route_of_the_api_is_on_its_page(tmp_path):
    from malocate.server import create_app

    text = (ROOT / "docs" / "http-api.md").read_text(encoding="utf-8")
    paths = create_app(tasting(tmp_path, rounds=0), open_to_all=True).openapi()["paths"]
    told = [(way.upper(), path) for path, ways in paths.items() for way in ways]
    assert len(told) > 15
    assert [each for each in told if not route_is_told(*each, text)] == []


def route_is_told(way: str, path: str, text: str) -> bool:
    """Whether a line tells of the path: whole, or by its last words in the table of its method."""
    if f"`{way} {path}`" in text or f"`{path}`" in text:
        return True
    last = path.removeprefix("/api/v1/campaigns/{name}").strip("/")
    said = " ".join(re.findall(rf"^\| `{way} .*$", text, re.MULTILINE))
    if last.startswith("{"):  # such as {turn}: the schema lists what it may be
        return all(f"`{each}`" in said or f"{way} {each}`" in said for each in ("pause", "finish"))
    pattern = re.sub(r"\\{\w+\\}", r"[\\w.]+", re.escape(last))
    return re.search(rf"(?:`|{way} ){pattern}`", said) is not None or not last


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
