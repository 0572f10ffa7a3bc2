"""What past rounds found: read once, thinned where it is long, and never waited for too long."""

from __future__ import annotations

import json
import threading

import pytest

from malocate.campaign.history import MOST, RECENT, History
from malocate.errors import StoreError


class Rounds:
    """Stands in for a store that has only rounds."""

    def __init__(self, count: int) -> None:
        self.count, self.go_on, self.given = count, threading.Event(), 0
        self.go_on.set()

    def rounds(self, campaign: int, after: int):
        self.go_on.wait()
        for number in range(after + 1, self.count + 1):
            self.given += 1
            found = {"asked": 10 * number, "estimate": 1.0, "upper": 1 + 1 / number}
            told = {"found": {"north": found}, "spent": 10.0 * number, "bound": "inf"}
            told |= {"label": "certified", "why": f"round {number}", "batches": [["north", 0, 9]]}
            yield number, 1.0, json.dumps(told)


def test_rounds_are_read_once():
    store, history = Rounds(5), History()
    assert history.read(store, 1, patience=10)
    store.count = 7
    assert history.read(store, 1, patience=10)
    assert store.given == 7
    assert [each.round for each in history.losses] == list(range(2, 8))


def test_a_long_history_is_thinned_and_keeps_its_ends():
    history = History()
    assert history.read(Rounds(5_000), 1, patience=60)
    looks = history.looks["north"]
    assert MOST <= len(looks) < 2 * MOST + 1
    assert (looks[0].asked, looks[-1].asked) == (10, 50_000)
    assert [each.round for each in history.latest()] == list(range(5_000, 5_000 - RECENT, -1))


def test_nobody_waits_long_for_a_long_history():
    store, history = Rounds(5), History()
    store.go_on.clear()
    assert not history.read(store, 1, patience=0.01)
    assert history.latest() == []
    store.go_on.set()
    assert history.read(store, 1, patience=10)
    assert len(history.latest()) == 5


def test_what_goes_wrong_is_told_and_tried_again():
    class Broken(Rounds):
        def rounds(self, campaign: int, after: int):
            raise StoreError("The database does not answer.")

    history = History()
    with pytest.raises(StoreError, match="does not answer"):
        history.read(Broken(1), 1, patience=10)
    assert history.read(Rounds(3), 1, patience=10)
    assert history.last == 3
