"""The desk: what waits together is written together, and each hears of its own."""

from __future__ import annotations

import asyncio
import threading

import pytest
from surveys import small_design

from malocate import Campaign
from malocate.errors import StoreError
from malocate.server.desk import Desk


@pytest.fixture
def campaign(url):
    """A campaign on SQLite, then on PostgreSQL."""
    with Campaign.create(url, small_design(), name="wines") as found:
        found.plan()
        yield found


@pytest.fixture
def desk():
    found = Desk()
    yield found
    found.close()


async def held_back(desk, work):
    """Keep the writer busy until all of `work` waits, then let it go on."""
    go = threading.Event()
    busy = asyncio.ensure_future(desk.write(go.wait))
    tasks = [asyncio.ensure_future(each) for each in work]
    await asyncio.sleep(0.05)
    go.set()
    await busy
    return await asyncio.gather(*tasks, return_exceptions=True)


def test_asks_and_answers_that_wait_go_in_together(campaign, desk, monkeypatch):
    counts = {"lend_each": 0, "tell_each": 0}
    for name in counts:
        real = getattr(campaign.store, name)

        def counted(*args, real=real, name=name, **more):
            counts[name] += 1
            return real(*args, **more)

        monkeypatch.setattr(campaign.store, name, counted)

    async def work():
        asks = [desk.ask(campaign, campaign.wanted(1, who=f"tablet {k}")) for k in range(9)]
        tickets = [ticket for (ticket,) in await held_back(desk, asks)]
        assert len({each.id for each in tickets}) == 9
        assert [each.who for each in tickets] == [f"tablet {k}" for k in range(9)]
        tells = [desk.tell(campaign, campaign.read([(each, 3)])) for each in tickets]
        assert await held_back(desk, tells) == [["answered"]] * 9

    asyncio.run(work())
    assert counts == {"lend_each": 1, "tell_each": 1}
    assert campaign.status().answered == 9
    assert campaign.verify().ok


def test_unusual_cases_in_a_bundle_come_out_as_they_would_alone(campaign, desk):
    async def work():
        again = [desk.ask(campaign, campaign.wanted(2, who="Ada")) for _ in range(2)]
        first, second = await held_back(desk, again)
        assert [each.id for each in first] == [each.id for each in second]
        values = [(first[0], 3), (first[0], 3), (first[0], 4), (first[1], 2)]
        tells = [desk.tell(campaign, campaign.read([each])) for each in values]
        found = await held_back(desk, tells)
        assert found == [["answered"], ["same"], ["conflict"], ["answered"]]

    asyncio.run(work())
    assert campaign.status().answered == 2


def test_each_who_waits_hears_of_its_own_trouble(campaign, desk, monkeypatch):
    real = Campaign.record_each

    def choosy(self, answers):
        if any(each.value == 5 for each in answers):
            raise StoreError("no fives")
        return real(self, answers)

    desk._answers._work = choosy

    async def work():
        tickets = campaign.ask(3, who="Ada")
        pairs = zip(tickets, (3, 5, 4), strict=True)
        tells = [desk.tell(campaign, campaign.read([pair])) for pair in pairs]
        one, two, three = await held_back(desk, tells)
        assert (one, three) == (["answered"], ["answered"])
        assert isinstance(two, StoreError)

    asyncio.run(work())
    assert campaign.status().answered == 2


def test_who_goes_away_takes_nobody_along(campaign, desk):
    async def work():
        tickets = campaign.ask(2, who="Ada")
        gone = asyncio.ensure_future(desk.tell(campaign, campaign.read([(tickets[0], 3)])))
        stays = desk.tell(campaign, campaign.read([(tickets[1], 3)]))

        async def leave():
            await asyncio.sleep(0.01)
            gone.cancel()

        _, found = await held_back(desk, [leave(), stays])
        assert found == ["answered"]

    asyncio.run(work())
