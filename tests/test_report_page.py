"""The report as a page: whole, safe with any name, honest about what it leaves out, printable."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from browsers import WAY_OUT, chromium
from hypothesis import given
from hypothesis import strategies as st
from surveys import live, small_design
from typer.testing import CliRunner
from webs import tasting

from malocate import Campaign, Design, Segment, SoftImpute
from malocate.campaign.report_parts import LARGEST, MOST_SEGMENTS, in_few_lines, written_out
from malocate.cli import app

HOSTILE = "<script>alert('x')</script> & \"quoted\" {{ 'xy' * 3 }} \u202e"


class Balanced(HTMLParser):
    """Reads a page, and finds what was opened and not closed, and what it would load or run."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[tuple[str, str]] = []
        self.words: list[str] = []

    def handle_starttag(self, tag, attrs):
        active = {"src", "href", "srcset", "style", "onload", "onclick", "action", "data"}
        self.loads += [(tag, name) for name, _ in attrs if name in active]
        if tag in ("script", "link", "iframe", "img", "object", "base"):
            self.loads.append((tag, ""))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and not {"style", "svg"} & set(self.open):
            self.words.append(data)


def read(page: str) -> str:
    """Give the words of a page that is well-formed and loads nothing."""
    parser = Balanced()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    assert parser.loads == []
    assert not re.search(r"https?:|url\(|@import|\bjavascript:", page)
    return re.sub(r"\s+", " ", " ".join(parser.words))


@pytest.fixture(scope="module")
def lived(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "tasting.db"
    with Campaign.create(path, small_design(rmse=0.4), clock=lambda: 1_000_000.0) as campaign:
        live(campaign, most=6)
        ticket, other, *_ = campaign.ask(5, who="w")
        campaign.decline(ticket, "no")
        campaign.tell(other, 3)
        yield campaign


def test_the_page_tells_what_the_report_and_the_status_tell(lived):
    words, status = read(lived.report_page()), lived.status()
    assert "Report of 1970-01-12 13:46 UTC" in words
    for each in status.segments:
        asked = each.planned - each.open
        row = f"{each.name} 10 × 8 {asked:,} {each.answered:,} {each.late:,} {each.expired:,}"
        assert row in words
        assert f"by at most {each.rmse_upper:.3g}" in words
        assert each.audit in words
        assert f"{each.name} {each.answered:,} {each.rmse:.3g} {each.rmse_upper:.3g}" in words
    assert f"The loss is at most {status.bound:.4g} {status.label}" in words
    assert lived.report().digest in words
    assert lived.report().why in words
    assert sum(each.refused for each in status.segments) == 1


def test_most_and_least_liked_are_those_of_the_completion(lived):
    page = lived.report_page()
    for liking in (lived.report().likings["north"][0], lived.report().likings["north"][-1]):
        row = rf"<th scope=\"row\">{liking.column}</th><td class=\"bar-cell\">.*?{liking.mean:.2f}<"
        assert re.search(row, page)


def test_every_cell_of_a_small_table_is_there(lived):
    done = lived.findings()[0].completion.dense()
    page = lived.report_page()
    heat = page[page.index('aria-label="north: completed values"') :]
    rows = re.findall(r"<th scope=\"row\">p\d</th>(.*?)</tr>", heat)[:10]
    shown = [[float(v) for v in re.findall(r'class="h\d">([\d.-]+)<', row)] for row in rows]
    np.testing.assert_allclose(shown, done, atol=0.0501)


def test_the_design_on_the_page_is_the_campaigns_own(lived):
    page = lived.report_page()
    written = re.search(r"<pre>(.*?)</pre>", page, re.DOTALL)[1]
    assert Design.from_toml(html.unescape(written)) == lived.design


def test_the_page_is_the_same_for_the_same_campaign(lived):
    assert lived.report_page() == lived.report_page()


def test_hostile_names_are_words(tmp_path):
    labels = ([HOSTILE, "Bo", "Cy"], ["<b>red</b>", HOSTILE])
    design = Design(
        [Segment(HOSTILE, labels=labels, scale=(1, 5))], budget=80, estimator=SoftImpute(1.0)
    )
    with Campaign.create(tmp_path / "h.db", design, name=HOSTILE) as campaign:
        campaign.tell_many([(ticket, 3) for ticket in campaign.ask(50, who=HOSTILE)])
        campaign.plan()
        campaign.pause(HOSTILE)
        words = read(campaign.report_page())
    assert words.count(re.sub(r"\s+", " ", HOSTILE)) >= 6
    assert "xyxyxy" not in words


def test_a_campaign_that_has_not_begun(tmp_path):
    with Campaign.create(tmp_path / "new.db", small_design()) as campaign:
        words = read(campaign.report_page())
    assert "There is no bound yet" in words
    assert "north : nothing bounds the error yet" in words
    assert "No round has been planned yet." in words
    assert "Nothing has been audited yet." in words


def test_a_campaign_that_has_ended_asks_nothing(tmp_path):
    url = tasting(tmp_path, rounds=1)
    with Campaign.open(url) as campaign:
        campaign.finish("good enough")
        assert "Nothing: it is finished: good enough." in read(campaign.report_page())


def test_large_tables_and_many_segments_are_left_out_in_a_sentence(tmp_path):
    wide = (LARGEST[0], LARGEST[1] + 1)
    segments = [Segment(f"s{place}", (2, 2), scale=(1, 5)) for place in range(MOST_SEGMENTS)]
    segments = [Segment("wide", wide, scale=(1, 5)), *segments]
    design = Design(segments, budget=9_999, estimator=SoftImpute(1.0))
    with Campaign.create(tmp_path / "many.db", design) as campaign:
        campaign.tell_many([(t, 3) for t in campaign.ask(10**6, who="w")])
        campaign.plan()
        words = read(campaign.report_page())
    assert "this one is larger" in words
    assert f"Shown are the first {MOST_SEGMENTS} of {MOST_SEGMENTS + 1} segments." in words


def test_the_design_of_many_labels_is_shown_without_them():
    people = [f"person {number}" for number in range(9_000)]
    design = Design([Segment("north", labels=(people, ["a", "b"]))], budget=10)
    text, cut = written_out(design)
    assert cut
    assert "person" not in text
    table = tomllib.loads(text)
    assert table["segments"][0]["shape"] == [9_000, 2]


@given(st.lists(st.text(), min_size=2, max_size=4, unique=True), st.booleans())
def test_a_design_in_few_lines_is_the_same_design(names, masked):
    names = [name.encode("utf-8", "ignore").decode() for name in names]
    names = list(dict.fromkeys(names))
    mask = np.zeros((len(names), 3), dtype=bool)
    mask[0, 0] = masked
    segment = Segment("a", labels=(names, ["x", "y", "[1,"]))
    whole = Design([replace(segment, mask=mask) if masked else segment], budget=99).to_toml()
    assert tomllib.loads(in_few_lines(whole)) == tomllib.loads(whole)
    assert in_few_lines(whole).count("\n") < 60


def test_the_server_is_not_needed(lived):
    code = (
        "import sys; from malocate import Campaign\n"
        f"page = Campaign.open({str(lived.store)!r}).report_page()\n"
        "print(len(page) > 9_000, 'fastapi' in sys.modules, 'malocate.server' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False", "False"]


def test_the_command_writes_the_page(lived, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*words):
        return CliRunner().invoke(app, ["report", str(lived.store), *words])

    done = run("--html", "report.html")
    assert done.exit_code == 0
    assert "report.html: open it in a browser" in done.stdout
    assert "tasting" in read((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]
    for words, sentence in (
        (("--html", "a.txt"), "--html a.txt must end in .html."),
        (("--html", "no/a.html"), "The folder of --html no/a.html does not exist; make it first."),
        (("--html", "a.html", "--json"), "--html and --json are two reports"),
    ):
        wrong = run(*words)
        assert (wrong.exit_code, sentence in wrong.stderr) == (2, True)
    assert json.loads(run("--json").stdout)["seed"] == 0


@pytest.mark.skipif(chromium() is None, reason=WAY_OUT)
def test_it_fits_a_phone_and_paper(lived):
    playwright = pytest.importorskip("playwright.sync_api", reason="install playwright, with pip")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 360, "height": 740}, color_scheme="dark")
        wrong = []
        page.on("console", lambda said: wrong.append(said.text))
        page.on("request", lambda made: wrong.append(made.url))
        page.set_content(lived.report_page())
        width = "document.documentElement.scrollWidth"
        assert page.evaluate(width) == 360
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.emulate_media(media="print")
        page.set_viewport_size({"width": 695, "height": 1000})  # A4 between its margins
        assert page.evaluate(width) == 695
        clipped = (
            "[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > 695).length"
        )
        assert page.evaluate(clipped) == 0
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark
        assert page.pdf(format="A4").count(b"/Type /Page\n") >= 2
        assert wrong == []
        browser.close()
