"""The built site: no warnings, and every link in it leads to a page, a place on it, or a file."""

from __future__ import annotations

import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

ROOT = Path(__file__).parents[1]


class Page(HTMLParser):
    """Reads what a page links to, and the places on it that can be linked to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.links += [found[name] for name in ("href", "src") if found.get(name)]
        self.places |= {found[name] for name in ("id", "name") if found.get(name)}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mkdocstrings", reason="install the group docs")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    settings = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=settings, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


def broken(site: Path) -> list[tuple[str, str]]:
    """Give the links inside a site that lead nowhere, by page."""
    pages = {path: Page(path) for path in site.rglob("*.html")}
    found = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or path.name == "404.html":
                continue
            goal = path if not parts.path else (path.parent / unquote(parts.path)).resolve()
            goal = goal / "index.html" if goal.is_dir() else goal
            place = unquote(parts.fragment)
            if not goal.exists() or (place and place not in pages[goal].places):
                found.append((str(path.relative_to(site)), link))
    return found


@pytest.mark.slow
def test_every_link_inside_the_site_leads_somewhere(site):
    assert len(list(site.rglob("*.html"))) > 30
    assert broken(site) == []


@pytest.mark.slow
def test_examples_of_docstrings_are_code_in_the_reference(site):
    text = (site / "reference" / "answers" / "index.html").read_text(encoding="utf-8")
    assert '<span class="gp">&gt;&gt;&gt; </span>' in text
    assert "Observations" in text


def test_a_link_that_leads_nowhere_is_noticed(tmp_path):
    (tmp_path / "a.html").write_text('<a href="b.html#there">b</a><a href="c.html">c</a><p id="x">')
    (tmp_path / "b.html").write_text('<p id="here"><a href="a.html#x">a</a>')
    assert broken(tmp_path) == [("a.html", "b.html#there"), ("a.html", "c.html")]
