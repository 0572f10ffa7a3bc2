"""The HTTP API against whatever may come: made-up requests by its own document, and strangers."""

from __future__ import annotations

import json
import shutil
import string

import hypothesis
import pytest
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from surveys import small_design

from malocate import Campaign
from malocate.server import create_app
from malocate.server.access import new_token, revoke_token
from malocate.store import Tokens

BASE = "/api/v1/campaigns"
FORM = {"status", "kind", "sentence"}
KNOWN = {"name": "wines", "segment": "north", "what": "bands", "turn": "pause", "number": 1}


def bounded(most: int) -> settings:
    odd = list(HealthCheck)
    return settings(
        max_examples=most, deadline=None, derandomize=True, database=None, suppress_health_check=odd
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A campaign that has been looked at, with questions to ask, and its tokens."""
    url = tmp_path_factory.mktemp("fuzz") / "wines.db"
    with Campaign.create(url, small_design()) as campaign:
        campaign.plan()
        campaign.tell_many([(each, 3) for each in campaign.ask(500, who="field", plan=False)])
        campaign.plan()
        tokens = Tokens(campaign.store.database)
        made = {role: new_token(tokens, campaign.id, role, role) for role in ("viewer", "asker")}
        made["revoked"] = new_token(tokens, campaign.id, "gone", "owner")
        revoke_token(tokens, campaign.id, "gone")
    return url, made


@pytest.fixture
def anybody(made, tmp_path):
    """A client of a server that is open, so that requests reach all of it, on data of its own."""
    url = shutil.copy(made[0], tmp_path / "wines.db")
    with TestClient(create_app(url, open_to_all=True), raise_server_exceptions=False) as web:
        yield web


@pytest.fixture
def stranger(made):
    """A client of a server that asks for tokens."""
    with TestClient(create_app(made[0]), raise_server_exceptions=False) as web:
        yield web


def operations(web):
    document = web.get("/openapi.json").json()
    found = schemathesis.openapi.from_dict(document).get_all_operations()
    return document, [each.ok() for each in found]


@pytest.mark.parametrize("most", [5, pytest.param(30, marks=pytest.mark.slow)])
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
def test_no_request_that_the_document_can_think_of_breaks_the_server(anybody, mode, most):
    document, found = operations(anybody)
    assert len(found) >= 19
    for operation in found:
        said = document["paths"][operation.path][operation.method]["responses"]
        made = operation.as_strategy(generation_mode=mode)
        try:
            bounded(most)(given(made, st.booleans())(checked(anybody, said)))()
        except hypothesis.errors.Unsatisfiable:
            assert mode is GenerationMode.NEGATIVE  # nothing can be wrong with this one


def checked(web, said):
    """Give a check of one made-up request."""

    def goes_well(case, here):
        if here:  # else nearly every request is about a campaign that is not there
            names = [each for each in KNOWN if each in (case.path_parameters or {})]
            case.path_parameters |= {each: KNOWN[each] for each in names}
        answer = web.request(**sent(case))
        assert answer.status_code < 500, (case.operation.label, answer.text)
        if answer.status_code >= 400:
            assert set(answer.json()) == FORM
        known = {*map(int, said), 404, 405, 411}  # of the address, not of the route
        assert answer.status_code in known, (case.operation.label, answer.text)

    return goes_well


def sent(case) -> dict:
    """Give a made-up request as the test client takes it."""
    told = case.as_transport_kwargs(base_url="http://testserver")
    if isinstance(told.get("data"), str | bytes):
        told["content"] = told.pop("data")
    names = ("method", "url", "params", "headers", "json", "data", "content")
    return {name: told[name] for name in names if told.get(name) is not None}


PATHS = [
    ("GET", "", None),
    ("GET", "/wines", None),
    ("GET", "/wines/report", None),
    ("GET", "/wines/segments/north/matrix", None),
    ("GET", "/wines/export/log.csv", None),
    ("POST", "/wines/ask", {"who": "t"}),
    ("POST", "/wines/tell", {"answers": [{"ticket": "0-0-1-x", "value": 3}]}),
    ("POST", "/wines/finish", {}),
]
PAGES = ("/", "/c/wines", "/c/wines/live", "/c/wines/s/north", "/c/wines/answer?who=Eve")
headers = st.text(string.ascii_letters + string.digits + "-_ .,=;:\"'%/\\", max_size=60)


@bounded(25)
@given(st.data())
def test_no_made_up_token_lets_anybody_in(made, stranger, data):
    tokens = made[1]
    near = st.sampled_from(sorted(tokens.values())).flatmap(_changed)
    token = data.draw(st.one_of(headers, near, st.just(tokens["revoked"])), label="token")
    kind = data.draw(st.sampled_from(["Bearer ", "bearer  ", "Basic ", "", "Bearer"]), label="kind")
    method, path, body = data.draw(st.sampled_from(PATHS), label="path")
    for given_ in ({"Authorization": f"{kind}{token}"}, {"Cookie": f"malocate={token}"}):
        answer = stranger.request(method, BASE + path, json=body, headers=given_)
        assert answer.status_code == 401
        assert set(answer.json()) == FORM
        page = data.draw(st.sampled_from(PAGES), label="page")
        shown = stranger.get(page, headers=given_, follow_redirects=False)
        assert (shown.status_code, shown.headers["location"].split("?")[0]) == (303, "/enter")


def _changed(token: str):
    """Give tokens that are nearly this one."""
    place = st.integers(0, len(token) - 1)
    other = place.map(lambda k: token[:k] + ("x" if token[k] != "x" else "y") + token[k + 1 :])
    role = st.just(token.replace("viewer", "owner").replace("asker", "owner"))
    return st.one_of(other, role, place.map(lambda k: token[:k]), st.just(token + "x"))


parts = st.sampled_from(["..", ".", "%2e%2e", "%2F", "%00", "c", "s", "api", "v1", "campaigns",
                         "wines", "wines ", "WINES", "answer", "live", "static", "app.css", "é",
                         "export", "log.csv", "'", "%ff", "\\", ";", "enter"])  # fmt: skip
DOORS = ("/enter", "/static/", "/welcome", "/healthz", "/readyz", "/openapi.json")


@bounded(25)
@given(st.lists(parts, max_size=7))
def test_no_path_leads_around_the_door(stranger, path):
    address = "/" + "/".join(path)
    answer = stranger.get(address, follow_redirects=False)
    assert answer.status_code < 500, answer.text
    if answer.status_code == 200:
        assert any(map(str(answer.url.path).startswith, DOORS)), address
    assert "north" not in answer.text


junk = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)


@bounded(25)
@given(st.data())
def test_no_body_breaks_the_server_or_changes_what_was_answered(anybody, data):
    ticket = anybody.post(f"{BASE}/wines/ask", json={"who": "Eve"}).json()["questions"][0]["ticket"]
    before = anybody.get(f"{BASE}/wines").json()["answered"]
    bodies = {
        "ask": {"n": 1, "who": "Eve", "lease": 60, "segment": "north", "rows": ["p1"]},
        "renew": {"ticket": ticket, "lease": 60},
        "decline": {"ticket": ticket, "reason": ""},
        "correct": {"ticket": ticket, "value": 3, "reason": "typing"},
        "tell": {"answers": [{"ticket": ticket, "value": 3}]},
    }
    verb = data.draw(st.sampled_from(sorted(bodies)), label="verb")
    body = dict(bodies[verb])
    key = data.draw(st.sampled_from(sorted(body)), label="key")
    body[key] = data.draw(junk, label="value")
    text = data.draw(st.sampled_from([json.dumps(body), json.dumps(body)[:-2], "[" * 5_000, ""]))
    sent = text.encode("utf-8", "surrogatepass")
    answer = anybody.post(
        f"{BASE}/wines/{verb}", content=sent, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code < 500, answer.text
    if answer.status_code >= 400:
        assert set(answer.json()) == FORM
    assert anybody.get(f"{BASE}/wines").json()["answered"] == before
