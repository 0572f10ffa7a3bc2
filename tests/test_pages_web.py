"""The pages: what they show, who may see them, and what their forms do."""

from __future__ import annotations

import html
import re
import time
from html.parser import HTMLParser
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from webs import tasting, token_of

import malocate.server
from malocate import Campaign, Design, Segment
from malocate.drawing.charts import Point, band_chart
from malocate.server import create_app
from malocate.server.office import COOKIE
from malocate.server.rendering import ASSETS

SERVER = Path(malocate.server.__file__).parent
PAGES = ("/", "/c/tasting", "/c/tasting/s/north", "/c/tasting/s/south%20%26%20sea")
ANSWER = "/c/tasting/answer"


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> str:
    return tasting(tmp_path_factory.mktemp("web"))


@pytest.fixture
def url(tmp_path) -> str:
    return tasting(tmp_path, rounds=1)


@pytest.fixture
def web(made):
    with TestClient(create_app(made, open_to_all=True)) as client:
        yield client


@pytest.fixture
def fresh(url):
    """A server over a campaign of its own, whose answers may be given."""
    with TestClient(create_app(url, open_to_all=True)) as client:
        yield client


def shown(text: str) -> str:
    """Give the words of a page, without those of its charts."""
    text = re.sub(r"<svg.*?</svg>", " ", text, flags=re.DOTALL)
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", text)))


def form_of(text: str, does: str = "tell") -> dict[str, str]:
    """Give the hidden fields of the first form, which answers."""
    form = re.search(r"<form[^>]*data-form.*?</form>", text, re.DOTALL)[0]
    fields = re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form)
    return {name: html.unescape(value) for name, value in fields} | {"does": does}


def question(text: str) -> str:
    return shown(re.search(r"<h1.*?</h1>", text, re.DOTALL)[0]).strip()


class Tags(HTMLParser):
    """Collects the attributes of a page, and checks that tags are closed in turn."""

    VOID = ("meta", "link", "input", "br")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.names.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.names.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize("page", [*PAGES, "/enter", ANSWER, f"{ANSWER}?who=Ada"])
def test_a_page_keeps_to_the_content_policy_and_has_landmarks(fresh, page):
    answer = fresh.get(page)
    assert answer.status_code == 200
    tags = Tags(answer.text)
    assert tags.open == []
    names = [name for name, _ in tags.attributes]
    assert "style" not in names
    assert not [name for name in names if name.startswith("on")]
    assert "style" not in tags.names
    sources = [value for name, value in tags.attributes if name in ("src", "href", "action")]
    assert all(value.startswith(("/", "#")) for value in sources)
    assert {"main", "header", "nav", "h1", "title"} <= set(tags.names)
    assert re.search(r"<script(?![^>]*src=)", answer.text) is None
    assert "default-src 'self'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("page", [*PAGES, "/c/tasting/live", ANSWER, "/c/nowhere"])
def test_nothing_is_shown_without_a_token(made, page):
    with TestClient(create_app(made), follow_redirects=False) as client:
        answer = client.get(page)
        assert answer.status_code == 303
        assert answer.headers["location"].startswith("/enter?next=%2F")
        client.cookies.set(COOKIE, "mlc-owner-made-up")
        assert client.get(page).status_code == 303


def test_a_first_use_link_leaves_the_token_in_a_cookie_and_not_in_the_address(url):
    token = token_of(url, "viewer")
    with TestClient(create_app(url), follow_redirects=False) as client:
        answer = client.get("/enter", params={"token": token, "next": "/c/tasting"})
        assert answer.status_code == 303
        assert answer.headers["location"] == "/welcome?next=%2Fc%2Ftasting"
        cookie = answer.headers["set-cookie"].lower()
        assert {"httponly", "samesite=strict", "path=/"} <= {
            each.strip() for each in cookie.split(";")
        }
        assert "secure" not in cookie
        assert 'content="0; url=/c/tasting"' in client.get(answer.headers["location"]).text
        assert "tasting" in client.get("/c/tasting").text
        assert client.post("/leave").headers["location"] == "/enter"
        assert client.get("/c/tasting").status_code == 303


def test_over_tls_the_cookie_is_for_tls_alone(url):
    token = token_of(url, "viewer")
    with TestClient(
        create_app(url), base_url="https://testserver", follow_redirects=False
    ) as client:
        assert "secure" in client.get(f"/enter?token={token}").headers["set-cookie"].lower()


def test_the_form_lets_in_who_has_a_token(url):
    token = token_of(url, "asker")
    with TestClient(create_app(url)) as client:
        refused = client.post("/enter", data={"token": "wrong", "next": "/c/tasting"})
        assert refused.status_code == 401
        assert "not known" in shown(refused.text)
        let_in = client.post("/enter", data={"token": f" {token} ", "next": "/c/tasting"})
        assert let_in.url.path == "/c/tasting"
        assert "the asker (asker)" in shown(let_in.text)


@pytest.mark.parametrize("next_", ["//evil.example", "https://evil.example", "/\\evil", "x"])
def test_nobody_is_led_to_another_site(made, next_):
    with TestClient(create_app(made)) as client:
        assert "evil" not in client.get("/welcome", params={"next": next_}).text
        assert 'name="next" value="/"' in client.get("/enter", params={"next": next_}).text


def test_a_viewer_may_look_and_not_answer(url):
    token = token_of(url, "viewer")
    with TestClient(create_app(url)) as client:
        client.cookies.set(COOKIE, token)
        assert "Answer questions" not in client.get("/c/tasting").text
        for answer in (client.get(f"{ANSWER}?who=Ada"), client.post(ANSWER, data={"who": "Ada"})):
            assert answer.status_code == 403
            assert "This needs the role asker" in shown(answer.text)


@pytest.mark.parametrize("path", [ANSWER, "/leave", "/enter"])
@pytest.mark.parametrize(
    "headers", [{"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}]
)
def test_a_form_from_another_site_is_refused_even_where_all_is_open(fresh, path, headers):
    answer = fresh.post(path, data={"who": "Ada"}, headers=headers)
    assert answer.status_code == 403
    assert "another site" in shown(answer.text)


def test_the_page_of_a_campaign_says_how_it_stands(web):
    text = shown(web.get("/c/tasting").text)
    for words in (
        "Why this segment now",
        "The loss against the budget",
        "Questions so far and next",
        "How sure each segment is",
        "no goal, or nothing to foretell it by yet",
        "Audit:",
        "south & sea",
    ):
        assert words in text
    with Campaign.open(str(web.app.state.office.store.database.url)) as campaign:
        status = campaign.status()
    assert status.words in text
    assert f"Answers {status.answered:,}" in text
    for segment in status.segments:
        asked = segment.planned - segment.open
        assert f"{segment.name} {segment.open + segment.lent} {asked} {segment.answered}" in text


def test_certified_and_approximate_are_told_apart_by_shape_line_and_word(web):
    page = web.get("/c/tasting").text
    labels = set(re.findall(r'class="mark (\w+)"', page.split("How sure each segment is")[1]))
    assert labels
    for label, mark, dashes in (("certified", "<circle", 0), ("approximate", "<path", 1)):
        points = [Point(1, 2.0, 1.0, label, "a"), Point(2, 1.0, 0.5, label, "b")]
        chart = band_chart(points, title="t", across="x")
        assert chart.count(mark) == 2
        assert chart.count("stroke-dasharray") == dashes


def test_live_parts_come_with_a_tag_and_again_only_when_they_changed(fresh):
    first = fresh.get("/c/tasting/live")
    told = first.json()
    assert {"look", "words", "parts"} == set(told)
    assert 'class="tiles"' in told["parts"]["standing"]
    same = fresh.get("/c/tasting/live", headers={"if-none-match": first.headers["etag"]})
    assert same.status_code == 304
    assert same.content == b""
    page = fresh.get(f"{ANSWER}?who=Ada").text
    fresh.post(ANSWER, data=form_of(page) | {"value": "3"})
    time.sleep(1.1)  # a status is shared for a second
    after = fresh.get("/c/tasting/live", headers={"if-none-match": first.headers["etag"]})
    assert after.status_code == 200


def test_the_list_of_campaigns_is_kept_up_to_date(fresh):
    page = fresh.get("/").text
    assert 'data-live="/live"' in page
    first = fresh.get("/live")
    cards = first.json()["parts"]["campaigns"]
    assert cards.strip() in page
    headers = {"if-none-match": first.headers["etag"]}
    assert fresh.get("/live", headers=headers).status_code == 304
    fresh.post(ANSWER, data=form_of(fresh.get(f"{ANSWER}?who=Ada").text) | {"value": "3"})
    time.sleep(1.1)  # a status is shared for a second
    after = fresh.get("/live", headers=headers)
    assert after.status_code == 200
    assert after.json()["parts"]["campaigns"] != cards


@pytest.mark.parametrize("path", ["/c/tasting/s/west", "/c/nowhere", "/c/tasting?p=x", "/static/x"])
def test_what_is_not_there_is_told_on_a_page(web, path):
    answer = web.get(path)
    assert answer.status_code == 404
    assert "There is no" in shown(answer.text)
    assert "text/html" in answer.headers["content-type"]


@pytest.mark.parametrize("name", sorted(ASSETS))
def test_styles_and_scripts_are_ours_and_kept_by_browsers(web, name):
    answer = web.get(f"/static/{name}")
    assert answer.content == (SERVER / "static" / name).read_bytes()
    assert "immutable" in answer.headers["cache-control"]
    outside = re.findall(r"https?://(?!www\.w3\.org)", answer.text)
    assert outside == []


def test_the_heat_map_is_sorted_as_asked(web):
    def rows(order: str) -> list[float]:
        page = web.get(f"/c/tasting/s/north?rows={order}&columns=low").text
        return [float(each) for each in re.findall(r'<td class="mean">([\d.]+)<', page)]

    assert rows("high") == sorted(rows("given"), reverse=True)
    assert rows("low") == sorted(rows("given"))
    assert rows("nonsense") == rows("given")
    page = web.get("/c/tasting/s/north?columns=high").text
    means = [float(each) for each in re.findall(r"<small>([\d.]+)</small>", page)]
    assert means == sorted(means, reverse=True)
    assert "Ada, Syrah <old>: " in html.unescape(page)
    assert "<old>" not in page


def test_a_segment_without_a_look_says_so(tmp_path):
    url = f"sqlite:///{tmp_path}/new.db"
    Campaign.create(url, Design([Segment("a", (5, 4))], budget=50), name="tasting").close()
    with TestClient(create_app(url, open_to_all=True)) as client:
        assert "has not been looked at yet" in client.get("/c/tasting/s/a").text
        assert "There is no bound yet" in client.get("/c/tasting").text
        text = shown(client.get(f"{ANSWER}?who=Ada").text)
        assert "No question just now" in text  # nothing is planned in a request


def test_pages_are_no_part_of_the_api_document(web):
    paths = web.get("/openapi.json").json()["paths"]
    assert not [path for path in paths if path.startswith(("/c/", "/enter", "/static"))]
