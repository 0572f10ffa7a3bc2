"""The contract of the store on both databases, and stores that must fail it."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from databases import database
from sqlalchemy import false, select

from malocate.store import Store, Tokens
from malocate.testing import StoreChecks


class TestStore(StoreChecks):
    @pytest.fixture(autouse=True)
    def empty(self, url):
        self.url = url


# checks that cannot fail are no checks: each loss below breaks the check that stands beside it

BROKEN = {
    "deadlines": ("draws.reclaim", [], "what_ran_out_is_lent_to_others"),
    "who has what": ("draws.pending", [], "who_asks_again_gets_the_same_tickets"),
    "second answers": ("telling.keep_extra", None, "the_first_of_two_tickets_of_a_draw_wins"),
    "corrections": ("draws.correct", None, "an_answer_can_be_corrected"),
    "releases": ("draws.reopen", False, "a_released_draw_is_lent_again_on_another_ticket"),
    "events": ("log.append", None, "every_change_is_an_event"),
    "bodies in the chain": ("log.body_digest", b"", "a_changed_event_is_found"),
    "memories": ("planning._remember", None, "a_campaign_ends_once"),
    "answers": ("telling.write_answers", None, "the_first_answer_counts"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_store_that_loses_something_fails(what, tmp_path, monkeypatch):
    name, instead, check = BROKEN[what]
    monkeypatch.setattr(f"malocate.store.{name}", lambda *_: instead)
    checks = StoreChecks()
    checks.url = f"sqlite:///{tmp_path}/campaign.db"
    with pytest.raises((AssertionError, ValueError)):
        getattr(checks, f"test_{check}")()


def test_a_server_that_lets_events_overtake_a_look_fails(postgresql, monkeypatch):
    monkeypatch.setattr("malocate.store.locks.nobody_writing", lambda *_: nullcontext())
    checks = StoreChecks()
    checks.patience = 300.0  # the look is not held back: this is how long it may take to come
    with database(postgresql) as checks.url, pytest.raises(AssertionError):
        checks.test_a_look_is_not_overtaken_by_events_on_their_way()


def test_a_token_s_name_that_another_process_takes_meanwhile_is_taken(url, monkeypatch):
    """As two servers do that start at once: both see that the name is free, and one is first."""
    store = Store.open(url, create=True)
    tokens = Tokens(store.database)
    assert tokens.add(0, "owner", "owner", b"1" * 32, now=1.0)
    monkeypatch.setattr("malocate.store.tokens._named", select(1).where(false()))
    assert not tokens.add(0, "owner", "owner", b"2" * 32, now=2.0)
    assert [each.digest for each in tokens.listed(0)] == [b"1" * 32]
    store.close()
