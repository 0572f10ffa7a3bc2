"""The answer page, by its forms alone: answering, skipping, refusing, undoing, sending twice."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import fields

import pytest
from starlette.testclient import TestClient
from test_pages_web import ANSWER, form_of, question, shown
from webs import tasting

from malocate import Campaign, Design, Segment
from malocate.campaign.tickets import AGAIN
from malocate.errors import StoreError
from malocate.server import answering, create_app, languages
from malocate.server.answering import Scale, next_question
from malocate.server.desk import Desk


@pytest.fixture
def url(tmp_path) -> str:
    return tasting(tmp_path, rounds=1)


@pytest.fixture
def web(url):
    with TestClient(create_app(url, open_to_all=True)) as client:
        yield client


@pytest.fixture
def campaign(url):
    with Campaign.open(url) as found:
        yield found


def ask(web, who: str = "Ada") -> str:
    answer = web.get(ANSWER, params={"who": who})
    assert answer.status_code == 200
    return answer.text


def send(web, page: str, does: str = "tell", **fields: str):
    return web.post(ANSWER, data=form_of(page, does) | fields)


def values(campaign) -> list[float]:
    frame = campaign.export("answers")
    return frame.loc[frame.who == "Ada", "value"].tolist()


def test_one_question_at_a_time_in_plain_words(web, campaign):
    page = ask(web)
    assert question(page).startswith("How much does ")
    assert page.count('<button name="value"') == 5
    assert question(ask(web)) == question(page)  # who comes back goes on
    assert sum(each.lent for each in campaign.status().segments) == 1


def test_an_answer_is_recorded_and_the_next_question_comes(web, campaign):
    first = ask(web)
    after = send(web, first, value="4")
    assert after.url.path == ANSWER
    assert "Thank you, your answer is recorded." in shown(after.text)
    assert form_of(after.text)["ticket"] != form_of(first)["ticket"]
    assert values(campaign) == [4.0]


def test_an_answer_that_is_sent_twice_counts_once(web, campaign):
    page = ask(web)
    send(web, page, value="4")
    again = send(web, page, value="4")
    assert "it counts once" in shown(again.text)
    assert values(campaign) == [4.0]


def test_another_answer_to_the_same_ticket_is_a_conflict(web, campaign):
    page = ask(web)
    send(web, page, value="4")
    again = send(web, page, value="5")
    assert again.status_code == 409
    assert "has been answered otherwise" in shown(again.text)
    assert values(campaign) == [4.0]


def test_undo_is_a_logged_correction(web, campaign):
    after = send(web, ask(web), value="4")
    assert "Undo" in after.text
    undo = web.get(ANSWER, params={"who": "Ada", "change": "true"}).text
    assert "You answered 4." in shown(undo)
    changed = send(web, undo, "correct", value="2")
    assert "Your last answer is changed" in shown(changed.text)
    assert values(campaign) == [2.0]
    log = campaign.export("log")
    (body,) = log.loc[log.kind == "corrected", "body"]
    assert "undone by Ada on the answer page" in body
    assert "You answered 2." in shown(web.get(ANSWER, params={"who": "Ada", "change": "true"}).text)


def test_the_undo_of_one_is_not_offered_to_another(web):
    send(web, ask(web), value="4")
    assert "Undo" not in ask(web, "Ben")


def test_skipped_questions_go_back_and_come_last(web, campaign):
    seen, page = [], ask(web)
    for _ in range(4):
        seen.append(question(page) + form_of(page)["ticket"].rsplit("-", 2)[0])
        page = send(web, page, "skip").text
    assert len(set(seen)) == 4
    assert "Skipped" in shown(page)
    status = campaign.status()
    assert sum(each.lent for each in status.segments) == 1
    assert sum(each.refused for each in status.segments) == 0


def test_skipping_twice_is_harmless(web):
    page = ask(web)
    send(web, page, "skip")
    again = send(web, page, "skip")
    assert again.status_code == 200
    assert "no longer out" in shown(again.text)


def test_a_skipped_question_comes_when_there_is_no_other(tmp_path):
    segment = Segment("a", (2, 2), scale=(1, 5))
    url = f"sqlite:///{tmp_path}/small.db"
    with Campaign.create(url, Design([segment], budget=20), name="small") as campaign:
        campaign.plan()
        everything = campaign.ask(1_000, who="other")
        campaign.release(everything[0])
        draw = "-".join(everything[0].id.split("-")[:2])
        found = next_question(campaign, "Ada", (draw,))
        assert found is not None
        assert found.draw == everything[0].draw


def test_a_refusal_is_kept_with_its_reason(web, campaign):
    page = ask(web)
    after = send(web, page, "refuse", reason="too private")
    assert "will not be asked again" in shown(after.text)
    assert "will not be asked again" in shown(send(web, page, "refuse").text)  # sent twice
    assert sum(each.refused for each in campaign.status().segments) == 1
    assert campaign.export("log").body.str.contains("too private").any()


@pytest.mark.parametrize(
    ("fields", "status", "words"),
    [
        ({"value": "9"}, 422, "go from 1 to 5"),
        ({"value": "nan"}, 422, "must be a number"),
        ({"value": "much"}, 422, "must be a number"),
        ({"value": "9", "lang": "de"}, 422, "Answers go"),  # the design speaks no German
        ({"value": "3", "ticket": "0-1-1-made-up"}, 404, "not there any more"),
        ({"value": "3", "who": " "}, 422, "does not say who"),
        ({"value": "3", "reason": "x" * 30_000}, 422, "bytes"),
    ],
)
def test_what_cannot_be_recorded_is_told_and_nothing_is_lost(web, campaign, fields, status, words):
    answer = send(web, ask(web), **fields)
    assert answer.status_code == status
    assert words in shown(answer.text)
    assert values(campaign) == []


def test_a_question_that_comes_again_says_why(web, campaign):
    for _ in range(200):
        page = ask(web)
        if "Asked again on purpose" in page:
            break
        page = send(web, page, value="3").text
    ticket = form_of(page)["ticket"]
    (mine,) = campaign.ask(1, who="Ada", plan=False)
    assert (mine.id, mine.note) == (ticket, AGAIN)


def test_a_long_scale_takes_a_number(tmp_path):
    url = f"sqlite:///{tmp_path}/wide.db"
    with Campaign.create(url, Design([Segment("a", (5, 4), scale=(0, 100))], budget=60)) as made:
        made.plan()
    with TestClient(create_app(url, open_to_all=True)) as client:
        page = client.get("/c/wide/answer?who=Ada").text
        assert "from 0 to 100" in shown(page)
        assert re.fullmatch(r"How much does row \d like column \d\?", question(page))
        client.post("/c/wide/answer", data=form_of(page) | {"value": "66,5"})
    with Campaign.open(url) as campaign:
        assert campaign.export("answers").value.tolist() == [66.5]


@pytest.mark.parametrize(
    ("limits", "buttons"),
    [((1, 5), 5), ((0, 10), 11), ((0, 11), 0), ((0.5, 4.5), 0), (None, 0), ((-2, 2), 5)],
)
def test_short_scales_of_whole_numbers_have_buttons(limits, buttons):
    assert len(Scale.of(limits).buttons) == buttons


ODD = {"campaign": "tasting", "who": "Ada", "last": {"ticket": 1, "value": []}, "skipped": []}
NESTED = base64.urlsafe_b64encode(b"[" * 2_000).decode()


@pytest.mark.parametrize(
    "cookie",
    [
        "",
        "nonsense",
        "e30=",
        "eyJjYW1wYWlnbiI6MX0=",
        base64.urlsafe_b64encode(json.dumps(ODD).encode()).decode(),
        NESTED,
    ],
)
def test_a_broken_cookie_is_as_none(web, cookie):
    web.cookies.set(answering.COOKIE, cookie)
    assert "Undo" not in ask(web)


def test_the_end_is_told(web, campaign):
    campaign.finish("enough")
    text = ask(web)
    assert "Thank you, that was all." in shown(text)
    assert "data-wait" not in text


def test_a_pause_is_told_and_waited_for(web, campaign):
    campaign.pause("holidays")
    text = ask(web)
    assert "The survey is paused" in shown(text)
    assert "data-wait" in text


@pytest.fixture
def spoken(tmp_path):
    """A server over a survey in three languages, of which the page knows two."""
    questions = {
        "fr": {"text": "{row} aime {column} ?", "low": "pas du tout", "high": "beaucoup"},
        "en": "Does {row} of {segment} like {column}?",
        "nl": "Houdt {row} van {column}?",
    }
    url = tasting(tmp_path, rounds=0, questions=questions)
    with TestClient(create_app(url, open_to_all=True)) as client:
        yield client


def test_the_design_says_how_people_are_asked(spoken):
    page = ask(spoken)
    assert re.fullmatch(r"\w+ aime [\w <>]+ \?", question(page))
    assert '<html lang="fr">' in page
    assert "pas du tout" in page
    assert "Passer pour l&#39;instant" in page
    assert "English" in page


@pytest.mark.parametrize(
    ("params", "accept", "words", "skip"),
    [
        ({}, "en-GB, fr;q=0.5", " of ", "Skip for now"),
        ({"lang": "nl"}, "en", "Houdt ", "Skip for now"),  # the page itself is in English
        ({"lang": "en"}, "fr", " of ", "Skip for now"),
        ({"lang": "<b>"}, "xx;q=odd,,;", " aime ", "Passer pour l'instant"),
    ],
)
def test_a_language_is_wanted_or_what_the_browser_likes(spoken, params, accept, words, skip):
    headers = {"Accept-Language": accept}
    page = spoken.get(ANSWER, params={"who": "Ada"} | params, headers=headers).text
    assert words in question(page)
    assert skip in shown(page)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"value": "beaucoup"}, "La réponse doit être un nombre."),
        ({"value": "9"}, "Les réponses vont de 1 à 5 ; donnez-en une autre."),
        ({"value": "3", "ticket": "0-1-1-made-up"}, "Cette question n'existe plus"),
    ],
)
def test_what_is_wrong_is_said_in_the_answerer_s_language(spoken, fields, words):
    answer = send(spoken, spoken.get(ANSWER, params={"who": "Ada", "lang": "fr"}).text, **fields)
    assert answer.status_code in (404, 422)
    assert '<html lang="fr">' in answer.text
    assert words in shown(answer.text)
    assert "Cela n'a pas marché." in shown(answer.text)
    assert "lang=fr" in answer.text.partition('class="button"')[2]  # the way back keeps it


def test_a_contradiction_and_a_database_that_is_away_are_said_so_too(spoken, monkeypatch):
    page = spoken.get(ANSWER, params={"who": "Ada", "lang": "fr"}).text
    send(spoken, page, value="4")
    answer = send(spoken, page, value="2")
    assert (answer.status_code, "la première reste" in shown(answer.text)) == (409, True)

    async def away(*_):
        raise StoreError("postgresql://cellar: The server cannot be reached.")

    monkeypatch.setattr(Desk, "tell", away)
    answer = send(spoken, page, value="4")
    assert (answer.status_code, "pas pour le moment" in shown(answer.text)) == (503, True)
    assert "postgresql" not in answer.text


def test_the_language_stays_from_question_to_question(spoken):
    page = spoken.get(ANSWER, params={"who": "Ada", "lang": "en"}).text
    after = send(spoken, page, value="4")
    assert " of " in question(after.text)
    assert "Thank you, your answer is recorded." in shown(after.text)


def test_every_language_fills_the_same_places():
    places = {
        each.name: set(re.findall(r"{\w+}", getattr(languages.ENGLISH, each.name)))
        for each in fields(languages.Phrases)
    }
    for known in languages.KNOWN.values():
        for name, wanted in places.items():
            assert set(re.findall(r"{\w+}", getattr(known, name))) == wanted
            assert getattr(known, name).strip()
