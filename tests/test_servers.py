"""Several servers on one PostgreSQL behave as one."""

from __future__ import annotations

import signal
import time
import urllib.error
from concurrent.futures import ThreadPoolExecutor

import pytest
from databases import database
from surveys import small_design
from test_serve import Served, free_port, planners_of

from malocate import Campaign
from malocate.server.access import REMEMBERED, new_token, revoke_token
from malocate.store import Tokens

PATH = "/api/v1/campaigns/wines"


@pytest.fixture(scope="module")
def url(postgresql):
    with database(postgresql) as found:
        with Campaign.create(found, small_design(), name="wines") as campaign:
            campaign.plan()
        yield found


@pytest.fixture(scope="module")
def servers(url):
    with ThreadPoolExecutor(2) as both:
        running = list(both.map(lambda _: Served(url, free_port()), range(2)))
    yield running
    for each in running:
        if each.process.poll() is None:
            each.stop(signal.SIGKILL)
        each.process.stdout.close()


@pytest.fixture
def token(url, request):
    with Campaign.open(url) as campaign:
        return new_token(Tokens(campaign.store.database), campaign.id, request.node.name, "asker")


def told_of(server, token, ticket, value: float = 3) -> list[str]:
    body = {"answers": [{"ticket": ticket, "value": value}]}
    return server.get(f"{PATH}/tell", token, body)["outcomes"]


def test_what_one_lends_the_other_takes_and_nothing_is_doubled(servers, url, token):
    def one(number: int) -> list[str]:
        ask, tell = servers[number % 2], servers[1 - number % 2]
        tickets = []
        for _ in range(12):
            asked = ask.get(f"{PATH}/ask", token, {"who": f"tablet-{number}"})["questions"]
            tickets += [each["ticket"] for each in asked]
            for each in asked:
                assert told_of(tell, token, each["ticket"]) == ["answered"]
                assert told_of(ask, token, each["ticket"]) == ["same"]
        return tickets

    with ThreadPoolExecutor(6) as crowd:
        found = [ticket for tickets in crowd.map(one, range(6)) for ticket in tickets]
    assert len(found) == len(set(found)) == 6 * 12
    for server in servers:
        assert server.get(PATH, token)["answered"] == len(found)
    with pytest.raises(urllib.error.HTTPError, match="409"):
        told_of(servers[1], token, found[0], 4)
    assert not any(url in words for words in planners_of(url))  # it may hold a password
    with Campaign.open(url) as campaign:
        assert campaign.verify().ok


def test_one_stops_and_the_other_goes_on(servers, url, token, request):
    asked = servers[0].get(f"{PATH}/ask", token, {"who": "tablet", "n": 500})["questions"]
    began = servers[0].get(PATH, token)["round"]
    assert servers[0].stop() == 0
    for each in asked:
        assert told_of(servers[1], token, each["ticket"]) == ["answered"]
    for _ in range(600):  # its planner plans the next round
        if servers[1].get(PATH, token)["round"] > began:
            break
        time.sleep(0.1)
    assert servers[1].get(PATH, token)["round"] > began
    with Campaign.open(url) as campaign:
        revoke_token(Tokens(campaign.store.database), campaign.id, request.node.name)
    time.sleep(REMEMBERED + 0.5)
    with pytest.raises(urllib.error.HTTPError, match="401"):
        servers[1].get(PATH, token)
