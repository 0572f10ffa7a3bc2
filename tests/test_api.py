"""The HTTP API: who may do what, what it answers, and how it refuses."""

from __future__ import annotations

import pytest
from fastapi import Request
from fastapi.testclient import TestClient
from surveys import PEOPLE, WINES, small_design

from malocate import Campaign
from malocate.server import create_app
from malocate.server.access import EVERYWHERE, new_token, revoke_token
from malocate.server.protection import BURST, HEADERS, LARGEST_BODY, Rates, _refusal
from malocate.store import Tokens

BASE = "/api/v1/campaigns"


@pytest.fixture
def place(tmp_path):
    """A database with two campaigns, the first planned, and a token of each role for it."""
    url = tmp_path / "office.db"
    with Campaign.create(url, small_design(), name="wines") as campaign:
        campaign.plan()
        tokens = Tokens(campaign.store.database)
        made = {role: new_token(tokens, campaign.id, role, role) for role in ROLES}
        made["all"] = new_token(tokens, EVERYWHERE, "all", "viewer")
    with Campaign.create(url, small_design(), name="beers") as other:
        made["other"] = new_token(Tokens(other.store.database), other.id, "other", "owner")
    return url, made


ROLES = ("viewer", "asker", "owner")


@pytest.fixture
def client(place):
    with TestClient(create_app(place[0])) as client:
        yield client


@pytest.fixture
def as_(client, place):
    """Make a request with somebody's token."""

    def request(who, method, path, **more):
        headers = {"Authorization": f"Bearer {place[1][who]}"} if who in place[1] else {}
        return client.request(method, f"{BASE}{path}", headers=headers, **more)

    return request


ROUTES = [
    ("viewer", "GET", "", None),
    ("viewer", "GET", "/wines", None),
    ("viewer", "GET", "/wines/report", None),
    ("viewer", "GET", "/wines/bands", None),
    ("viewer", "GET", "/wines/history", None),
    ("viewer", "GET", "/wines/rounds/1", None),
    ("viewer", "GET", "/wines/audit", None),
    ("viewer", "GET", "/wines/export/decisions.csv", None),
    ("owner", "GET", "/wines/export/answers.csv", None),
    ("owner", "GET", "/wines/export/log.csv", None),
    ("asker", "POST", "/wines/ask", {"who": "tablet"}),
    ("asker", "POST", "/wines/tell", {"answers": [{"ticket": "0-0-1-x", "value": 3}]}),
    ("asker", "POST", "/wines/renew", {"ticket": "0-0-1-x"}),
    ("asker", "POST", "/wines/release", {"ticket": "0-0-1-x"}),
    ("asker", "POST", "/wines/decline", {"ticket": "0-0-1-x"}),
    ("asker", "POST", "/wines/correct", {"ticket": "0-0-1-x", "value": 1, "reason": "typing"}),
    ("owner", "POST", "/wines/pause", {"why": "holidays"}),
    ("owner", "POST", "/wines/resume", {}),
    ("owner", "POST", "/wines/give-up", {}),
    ("owner", "POST", "/wines/finish", {}),
]


@pytest.mark.parametrize(("least", "method", "path", "body"), ROUTES)
def test_each_role_may_do_what_it_may_and_no_more(as_, least, method, path, body):
    for who in (None, "other", *ROLES):
        answer = as_(who, method, path, json=body)
        if who is None:
            assert answer.status_code == 401
        elif who == "other":
            assert answer.status_code == (404 if path else 200)
            assert "wines" not in answer.text or "There is no campaign 'wines'" in answer.text
        elif ROLES.index(who) < ROLES.index(least):
            assert answer.status_code == 403
            assert f"needs the role {least}" in answer.json()["sentence"]
        else:
            assert answer.status_code in (200, 404)  # 404: there is no such ticket
            assert "token" not in answer.text


def test_every_route_is_in_the_table_of_roles(client):
    paths = client.get("/openapi.json").json()["paths"]
    known = {path for _, _, path, _ in ROUTES}
    for path in paths:
        if not path.startswith(BASE):
            assert path in ("/healthz", "/readyz", "/metrics")
            continue
        tail = path.removeprefix(BASE).replace("{name}", "wines").replace("{number}", "1")
        tail = tail.replace("{what}", "decisions").replace("{turn}", "pause")
        assert tail in known or tail.endswith("/matrix"), path


def test_asking_and_telling_over_the_web(as_):
    asked = as_("asker", "POST", "/wines/ask", json={"n": 3, "who": "tablet"}).json()["questions"]
    assert {each["row"] for each in asked} <= set(PEOPLE)
    assert {each["column"] for each in asked} <= set(WINES)
    answers = [{"ticket": each["ticket"], "value": 3} for each in asked]
    for words in (["answered"] * 3, ["same"] * 3):
        told = as_("asker", "POST", "/wines/tell", json={"answers": answers})
        assert told.json()["outcomes"] == words
    other = [{"ticket": asked[0]["ticket"], "value": 4}]
    answer = as_("asker", "POST", "/wines/tell", json={"answers": other})
    assert (answer.status_code, answer.json()["kind"]) == (409, "Conflict")
    assert as_("viewer", "GET", "/wines").json()["answered"] == 3
    body = {"ticket": asked[0]["ticket"], "value": 4, "reason": "typing"}
    corrected = as_("asker", "POST", "/wines/correct", json=body)
    assert corrected.json()["words"] == "changed from 3 to 4"


def test_who_is_present_and_one_segment_can_be_asked(as_):
    wanted = {"n": 4, "who": "lab", "rows": ["p1"], "segment": "south"}
    asked = as_("asker", "POST", "/wines/ask", json=wanted).json()["questions"]
    assert {(each["segment"], each["row"]) for each in asked} == {("south", "p1")}


def test_planning_never_runs_in_a_request(as_, monkeypatch):
    monkeypatch.setattr("malocate.campaign.planner.advance", lambda *_: pytest.fail("a fit"))
    while asked := as_("asker", "POST", "/wines/ask", json={"n": 500, "who": "t"}).json():
        if not asked["questions"]:
            break
        answers = [{"ticket": each["ticket"], "value": 3} for each in asked["questions"]]
        as_("asker", "POST", "/wines/tell", json={"answers": answers})
    assert "is answered" in asked["words"]


def test_a_completed_matrix_comes_in_pages_with_labels(as_, place):
    path = "/wines/segments/north/matrix"
    assert as_("viewer", "GET", path).status_code == 404
    with Campaign.open(place[0], "wines") as campaign:
        tickets = campaign.ask(500, who="t")
        campaign.tell_many([(each, 3) for each in tickets])
        campaign.plan()
    found = as_("viewer", "GET", f"{path}?offset=8&limit=5").json()
    assert found["rows"] == PEOPLE[8:]
    assert found["columns"] == WINES
    assert len(found["values"]) == 2
    assert as_("viewer", "GET", "/wines/segments/west/matrix").status_code == 404


def test_a_revoked_token_opens_nothing(client, place):
    url, made = place
    with Campaign.open(url, "wines") as campaign:
        revoke_token(Tokens(campaign.store.database), campaign.id, "owner")
    headers = {"Authorization": f"Bearer {made['owner']}"}
    answer = client.get(f"{BASE}/wines", headers=headers)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == "Bearer"


def test_tokens_are_kept_as_digests_alone(place):
    url, made = place
    bytes_ = (
        url.read_bytes() + url.with_name(f"{url.name}-wal").read_bytes()
        if (url.with_name(f"{url.name}-wal").exists())
        else url.read_bytes()
    )
    assert all(token.encode() not in bytes_ for token in made.values())


def test_a_token_for_all_campaigns_sees_them_all(as_):
    assert as_("all", "GET", "").json() == ["wines", "beers"]
    assert as_("viewer", "GET", "").json() == ["wines"]


@pytest.mark.parametrize(
    ("path", "body", "words"),
    [
        ("/wines/ask", {"who": ""}, "body.who"),
        ("/wines/ask", {"who": "t", "n": 0}, "body.n"),
        ("/wines/ask", {"who": "t", "segment": "west"}, "no segment 'west'"),
        ("/wines/tell", {"answers": []}, "body.answers"),
        ("/wines/tell", {"answers": [{"ticket": "x", "value": "NaN"}]}, "body.answers.0.value"),
        ("/wines/tell", {"answers": [{"ticket": "x", "value": 3}]}, "no ticket 'x'"),
    ],
)
def test_errors_have_one_form_and_the_library_s_sentence(as_, path, body, words):
    answer = as_("owner", "POST", path, json=body)
    told = answer.json()
    assert set(told) == {"status", "kind", "sentence"}
    assert told["status"] == answer.status_code
    assert answer.status_code in (404, 422)
    assert words in told["sentence"]


def test_a_body_that_is_no_text_is_refused(client, place):
    headers = {"Authorization": f"Bearer {place[1]['asker']}", "Content-Type": "application/json"}
    answer = client.post(f"{BASE}/wines/renew", content=b'{"ticket": "\xff"}', headers=headers)
    assert answer.status_code == 422
    assert answer.json()["sentence"] == "The body cannot be read; send JSON in UTF-8."


def test_what_nobody_foresaw_has_the_same_form_and_tells_nothing(place, monkeypatch):
    def broken(*_):
        raise ZeroDivisionError("the secret")

    monkeypatch.setattr(Campaign, "status", broken)
    with TestClient(create_app(place[0], open_to_all=True), raise_server_exceptions=False) as web:
        answer = web.get(f"{BASE}/wines")
    assert answer.status_code == 500
    assert set(answer.json()) == {"status", "kind", "sentence"}
    assert "secret" not in answer.text


def test_unknown_paths_and_methods_have_the_same_form(client):
    for method, path in (("GET", "/nowhere"), ("DELETE", BASE)):
        assert set(client.request(method, path).json()) == {"status", "kind", "sentence"}


def test_every_answer_carries_the_headers_that_protect(client):
    for path in ("/healthz", "/nowhere", BASE):
        answer = client.get(path)
        for name, value in HEADERS.items():
            assert answer.headers[name] == value


def test_a_cookie_works_only_from_our_own_pages(client, place):
    client.cookies.set("malocate", place[1]["owner"])
    path = f"{BASE}/wines/pause"
    assert client.post(path, json={}, headers={"Origin": "https://evil.test"}).status_code == 403
    assert client.post(path, json={}, headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert client.get(f"{BASE}/wines").json()["state"] == "open"
    assert client.post(path, json={}, headers={"Origin": "http://testserver"}).status_code == 200


def test_what_is_too_large_is_refused_unread(as_):
    answer = as_("asker", "POST", "/wines/tell", content=b"x" * (LARGEST_BODY + 1))
    assert answer.status_code == 413


def test_too_many_requests_are_refused(place):
    with TestClient(create_app(place[0], rates=Rates(per_second=0.001, burst=5))) as client:
        found = [client.get("/healthz").status_code for _ in range(7)]
    assert found == [200] * 5 + [429] * 2
    assert BURST > 100


def test_where_all_is_open_only_this_machine_may_come(place):
    with TestClient(create_app(place[0], open_to_all=True)) as client:
        assert client.get(f"{BASE}/wines").status_code == 200
        there = client.get(f"{BASE}/wines", headers={"Host": "malocate.example"})
        assert there.status_code == 403


def test_numbers_for_monitoring_need_a_token(client, place):
    assert client.get("/metrics").status_code == 401
    headers = {"Authorization": f"Bearer {place[1]['viewer']}"}
    text = client.get("/metrics", headers=headers).text
    assert 'malocate_draws{campaign="wines",segment="north",state="open"}' in text
    assert 'malocate_requests_total{method="GET",status="401"} 1.0' in text
    assert "beers" not in text


def test_one_visitor_s_numbers_are_not_shown_to_another(client, place):
    def numbers(who):
        return client.get("/metrics", headers={"Authorization": f"Bearer {place[1][who]}"}).text

    assert 'campaign="beers"' in numbers("all")
    assert 'campaign="beers"' not in numbers("viewer")


def test_methods_that_nobody_knows_are_counted_together(client, place):
    for number in range(3):
        client.request(f"ODD{number}", "/healthz")
    text = client.get("/metrics", headers={"Authorization": f"Bearer {place[1]['all']}"}).text
    assert 'malocate_requests_total{method="other",status="405"} 3.0' in text
    assert "ODD" not in text


@pytest.mark.parametrize("size", ["9" * 5_000, "-1", "1e3", "0x10", "٣"])
def test_a_size_that_is_none_is_refused(place, size):
    scope = {"type": "http", "method": "POST", "headers": [(b"content-length", size.encode())]}
    refused = _refusal(Request(scope | {"client": None}), Rates(), loopback_only=False)
    assert refused is not None
    assert refused.status_code == 413


def test_rounds_come_in_pages(as_):
    assert [each["round"] for each in as_("viewer", "GET", "/wines/history?limit=1").json()] == [1]
    assert as_("viewer", "GET", "/wines/history?after=1").json() == []
    assert as_("viewer", "GET", "/wines/rounds/2").status_code == 404


def test_where_all_is_open_no_other_site_may_send_a_change(place):
    with TestClient(create_app(place[0], open_to_all=True)) as client:
        path = f"{BASE}/wines/pause"
        there = client.post(path, json={}, headers={"Origin": "https://evil.test"})
        assert there.status_code == 403
        assert client.get(f"{BASE}/wines").json()["state"] == "open"


def test_health_and_readiness(client):
    assert client.get("/healthz").json() == {"words": "alive"}
    assert client.get("/readyz").json() == {"words": "ready"}
