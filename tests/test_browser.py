"""The pages in a real browser: answering, live updates, dropped connections, phones, the dark."""

from __future__ import annotations

import re

import pytest
from browsers import WAY_OUT, Server, chromium
from webs import tasting, token_of

from malocate import Campaign

if chromium() is None:
    pytest.skip(WAY_OUT, allow_module_level=True)
playwright = pytest.importorskip("playwright.sync_api", reason="install playwright, with pip")

ANSWER = "/c/tasting/answer?who=Ada"
PAGES = ("/", "/c/tasting", "/c/tasting/s/north", ANSWER, "/c/tasting/answer", "/enter")
SOON = 60_000
"""Milliseconds; pages look for news every three seconds."""


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def url(tmp_path) -> str:
    return tasting(tmp_path, rounds=1)


@pytest.fixture
def server(url):
    started = Server(url)
    yield started
    started.stop()


@pytest.fixture
def campaign(url):
    with Campaign.open(url) as found:
        yield found


@pytest.fixture
def context(browser, server):
    made = browser.new_context(base_url=server.address)
    made.set_default_timeout(SOON)
    yield made
    made.close()


@pytest.fixture
def page(context):
    """A page that fails its test when anything on it goes wrong, such as its content policy."""
    made, wrong = context.new_page(), []
    made.on("pageerror", lambda error: wrong.append(str(error)))
    made.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
    yield made
    assert [each for each in wrong if "ERR_" not in each] == []


def answered_by(campaign: Campaign, who: str) -> list[float]:
    frame = campaign.export("answers")
    return frame.loc[frame.who == who, "value"].tolist()


def click(page, value: int) -> None:
    page.get_by_role("button", name=str(value), exact=True).click()


def note(page, words: str) -> None:
    playwright.expect(page.locator("#note")).to_contain_text(words, timeout=SOON)


def test_people_answer_one_question_after_the_other(page, campaign):
    page.goto(ANSWER)
    for value in (4, 2, 5):
        assert page.locator("h1").inner_text().startswith("How much does ")
        ticket = page.locator("[name=ticket]").first.input_value()
        click(page, value)
        page.wait_for_function(
            "ticket => document.querySelector('[name=ticket]').value !== ticket", arg=ticket
        )
    assert sorted(answered_by(campaign, "Ada")) == [2.0, 4.0, 5.0]
    page.get_by_role("link", name="Undo").click()
    click(page, 1)
    note(page, "Your last answer is changed")
    assert sorted(answered_by(campaign, "Ada")) == [1.0, 2.0, 4.0]


def test_skip_and_refuse(page, campaign):
    page.goto(ANSWER)
    page.get_by_role("button", name="Skip for now").click()
    note(page, "Skipped")
    page.get_by_text("I will not answer this").click()
    page.get_by_label("Why").fill("too private")
    page.get_by_role("button", name="Refuse this question").click()
    note(page, "will not be asked again")
    assert sum(each.refused for each in campaign.status().segments) == 1


def test_an_answer_waits_for_the_connection_and_is_recorded_once(page, context, campaign):
    page.goto(ANSWER)
    context.set_offline(True)
    click(page, 4)
    note(page, "No connection")
    assert answered_by(campaign, "Ada") == []
    context.set_offline(False)
    note(page, "your answer is recorded")
    assert answered_by(campaign, "Ada") == [4.0]
    assert page.evaluate("localStorage.length") == 0


def test_an_answer_whose_receipt_is_lost_is_sent_again_and_counts_once(page, campaign):
    page.goto(ANSWER)
    lost = []

    def lose_the_first(route):
        if route.request.method == "POST" and not lost:
            lost.append(route.fetch(max_redirects=0).status)
            return route.abort()
        return route.continue_()

    page.route(re.compile(r"/answer"), lose_the_first)
    click(page, 3)
    note(page, "it counts once")
    assert lost == [303]
    assert answered_by(campaign, "Ada") == [3.0]


def test_an_answer_survives_that_its_page_is_closed(page, context, campaign):
    page.goto(ANSWER)
    page.route(re.compile(r"/answer$"), lambda route: route.abort())
    click(page, 5)
    note(page, "No connection")
    page.close()
    again = context.new_page()
    again.goto(ANSWER)
    note(again, "your answer is recorded")
    assert answered_by(campaign, "Ada") == [5.0]


def test_two_answerers_race_and_nothing_is_doubled(context, campaign):
    pages = {who: context.new_page() for who in ("Ada", "Ben")}
    before = campaign.status().answered
    for turn in range(4):
        for who, page in pages.items():
            page.goto(f"/c/tasting/answer?who={who}")
        for page in pages.values():
            page.locator(".scale-buttons button").nth(turn).click(no_wait_after=True)
        for page in pages.values():
            note(page, "your answer is recorded")
    assert [len(answered_by(campaign, who)) for who in pages] == [4, 4]
    assert campaign.status().answered == before + 8


def test_two_windows_of_one_answerer_give_one_answer(context, campaign):
    first, second = context.new_page(), context.new_page()
    for page in (first, second):
        page.goto(ANSWER)
    click(first, 4)
    note(first, "your answer is recorded")
    click(second, 2)
    note(second, "has been answered otherwise")
    assert answered_by(campaign, "Ada") == [4.0]


@pytest.mark.slow
def test_the_dashboard_follows_and_outlives_a_restart(page, campaign, server):
    page.goto("/c/tasting")
    page.evaluate("window.here = true")
    tickets = campaign.ask(3, who="field")
    before = campaign.status().answered
    tile = page.locator(".tiles div", has_text="Answers").locator("dd").first
    campaign.tell(tickets[0], 3)
    playwright.expect(tile).to_have_text(str(before + 1), timeout=SOON)
    server.stop()
    playwright.expect(page.locator("#live")).to_contain_text("does not answer", timeout=SOON)
    campaign.tell(tickets[1], 3)
    server.start()
    playwright.expect(tile).to_have_text(str(before + 2), timeout=SOON)
    playwright.expect(page.locator("#live")).not_to_contain_text("does not answer")
    assert page.evaluate("window.here") is True


def test_the_list_of_campaigns_follows(page, campaign):
    page.goto("/")
    page.evaluate("window.here = true")
    (ticket,) = campaign.ask(1, who="field")
    before = campaign.status().answered
    count = page.locator(".facts div", has_text="answers").locator("dd").first
    playwright.expect(count).to_have_text(str(before))
    campaign.tell(ticket, 3)
    playwright.expect(count).to_have_text(str(before + 1), timeout=SOON)
    assert page.evaluate("window.here") is True


def test_a_new_round_is_shown_without_reloading_and_keeps_what_is_open(page, campaign):
    page.goto("/c/tasting")
    page.evaluate("window.here = true")
    page.get_by_text("The rounds before").click()
    looks = page.locator(".charts .mark").count()
    campaign.tell_many((each, 3) for each in campaign.ask(1_000, who="field"))
    campaign.plan()
    number = campaign.status().round
    playwright.expect(page.locator("main")).to_contain_text(f"Round {number} asks", timeout=SOON)
    assert page.locator(".charts .mark").count() > looks
    assert page.locator("details[open]").count() == 1
    assert page.evaluate("window.here") is True


def test_the_heat_map_tells_values_by_mouse_and_by_keyboard(page):
    page.goto("/c/tasting/s/north")
    cells = page.locator("[data-grid] td[title]")
    cells.nth(5).hover()
    assert page.locator("#cell").inner_text() == cells.nth(5).get_attribute("title")
    cells.first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    assert page.locator("#cell").inner_text() == cells.nth(5).get_attribute("title")
    page.get_by_label("Rows").select_option("high")
    page.get_by_role("button", name="Sort").click()
    means = page.locator("tbody td.mean").all_inner_texts()
    assert means == sorted(means, reverse=True)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_a_phone_in_the_light_and_in_the_dark(browser, server, scheme):
    size = {"width": 360, "height": 740}
    context = browser.new_context(base_url=server.address, viewport=size, color_scheme=scheme)
    page = context.new_page()
    for path in PAGES:
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, path
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        bright = sum(map(int, re.findall(r"\d+", colour)[:3])) / 3
        assert bright > 200 if scheme == "light" else bright < 60
    context.close()


def test_answering_needs_no_script(browser, server, campaign):
    context = browser.new_context(base_url=server.address, java_script_enabled=False)
    page = context.new_page()
    page.goto(ANSWER)
    click(page, 4)
    note(page, "your answer is recorded")
    assert answered_by(campaign, "Ada") == [4.0]
    context.close()


def test_a_first_use_link_in_a_letter_lets_one_in(browser, url):
    server = Server(url, open_to_all=False)
    context = browser.new_context()
    page = context.new_page()
    link = f"{server.address}/enter?next=/c/tasting/answer%3Fwho%3DAda&amp;token="
    letter = f'<a href="{link}{token_of(url, "asker")}">Please answer</a>'
    page.route(
        "http://letters.example/",
        lambda route: route.fulfill(body=letter, content_type="text/html"),
    )
    page.goto("http://letters.example/")
    page.get_by_role("link").click()
    page.wait_for_url(re.compile("/c/tasting/answer"))
    assert "token" not in page.url
    click(page, 4)
    note(page, "your answer is recorded")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url(re.compile("/enter"))
    page.goto(f"{server.address}/c/tasting")
    assert page.get_by_label("Your token").is_visible()
    context.close()
    server.stop()


def test_a_double_tap_answers_one_question(page, campaign):
    page.goto(ANSWER)
    page.get_by_role("button", name="4", exact=True).dblclick()
    note(page, "your answer is recorded")
    page.wait_for_timeout(1_000)
    assert answered_by(campaign, "Ada") == [4.0]
    assert page.locator(".scale-buttons [aria-pressed]").count() == 0
