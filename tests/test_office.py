"""The office under a crowd: what many want at once is fetched once."""

from __future__ import annotations

import gc
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from fastapi.testclient import TestClient
from surveys import small_design

from malocate import Campaign
from malocate.cli.serve import COLLECT_AFTER, _settle
from malocate.server import access, create_app, office
from malocate.server.access import Gate, NotAllowed, new_token, revoke_token
from malocate.store import Store, Tokens


@pytest.fixture
def store(tmp_path):
    Campaign.create(tmp_path / "wines.db", small_design(), name="wines").close()
    found = Store.open(str(tmp_path / "wines.db"))
    yield found
    found.close()


def slowly(work, calls):
    """Do the work so slowly that others come meanwhile; count how often it is done."""

    def worked(*arguments):
        calls.append(arguments)
        time.sleep(0.1)
        return work(*arguments)

    return worked


def test_of_many_who_come_at_once_one_opens_the_campaign(store, monkeypatch):
    opened = []
    monkeypatch.setattr(office, "Campaign", slowly(Campaign, opened))
    client = TestClient(create_app(store, open_to_all=True))
    with ThreadPoolExecutor(8) as crowd:
        found = list(crowd.map(lambda _: client.get("/api/v1/campaigns/wines"), range(8)))
    assert [each.status_code for each in found] == [200] * 8
    assert len(opened) == 1


def test_campaigns_are_open_before_the_first_request(store, monkeypatch):
    opened = []
    monkeypatch.setattr(office, "Campaign", slowly(Campaign, opened))
    with TestClient(create_app(store, open_to_all=True)) as client:
        assert len(opened) == 1
        assert client.get("/api/v1/campaigns/wines").status_code == 200
    assert len(opened) == 1


def test_a_campaign_that_cannot_be_opened_keeps_no_server_from_its_start(store, monkeypatch):
    def broken(*_):
        raise office.MalocateError("This design is from the future.")

    monkeypatch.setattr(office, "Campaign", broken)
    with TestClient(create_app(store, open_to_all=True)) as client:
        told = client.get("/api/v1/campaigns/wines")
    assert (told.status_code, told.json()["sentence"]) == (400, "This design is from the future.")


def test_of_many_who_bring_a_token_at_once_one_looks_it_up(store, monkeypatch):
    tokens = Tokens(store.database)
    token = new_token(tokens, 1, "tablet", "asker")
    gate, looked = Gate(tokens), []
    monkeypatch.setattr(tokens, "find", slowly(tokens.find, looked))
    monkeypatch.setattr(access, "REMEMBERED", 0.3)
    with ThreadPoolExecutor(8) as crowd:
        found = list(crowd.map(lambda _: gate.visitor(token).name, range(8)))
        assert (found, len(looked)) == (["tablet"] * 8, 1)
        revoke_token(tokens, 1, "tablet")
        time.sleep(0.35)
        first = crowd.submit(gate.visitor, token)
        time.sleep(0.03)
        assert gate.visitor(token).name == "tablet"  # known a moment longer, while one looks
        with pytest.raises(NotAllowed, match="revoked"):
            first.result()
    assert len(looked) == 2
    with pytest.raises(NotAllowed, match="revoked"):
        gate.visitor(token)


def test_what_is_loaded_is_left_out_of_collections():
    before = gc.get_threshold()
    try:
        _settle()
        assert gc.get_freeze_count() > 10_000
        assert gc.get_threshold()[0] == COLLECT_AFTER
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
