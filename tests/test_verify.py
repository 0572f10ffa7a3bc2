"""Verification: whatever is tampered with is found, and where."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import replace

import pytest
from surveys import live, small_design

from malocate import Campaign
from malocate.campaign import memory


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    path = tmp_path_factory.mktemp("whole") / "tasting.db"
    with Campaign.create(path, small_design()) as campaign:
        (ticket,) = campaign.ask(1, who="a")
        campaign.tell(ticket, 2)
        campaign.correct(ticket, 3, reason="typing")
        campaign.decline(campaign.ask(1, who="a")[0], "rather not")
        live(campaign)
    return path


@pytest.fixture
def copy(whole, tmp_path):
    path = tmp_path / "copy.db"
    with sqlite3.connect(whole) as source, sqlite3.connect(path) as target:
        source.backup(target)
    source.close()
    target.close()
    return path


def tampered(path, *statements) -> str:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(*statement if isinstance(statement, tuple) else (statement,))
    connection.commit()
    connection.close()
    with Campaign.open(path) as campaign:
        found = campaign.verify()
    assert not found.ok
    return found.broken


def body(path, kind: str) -> tuple[int, dict]:
    connection = sqlite3.connect(path)
    number, text = connection.execute(
        "SELECT id, body FROM log WHERE kind = ? ORDER BY id DESC LIMIT 1", (kind,)
    ).fetchone()
    connection.close()
    return number, json.loads(text)


def test_a_campaign_that_nobody_touched_verifies(copy):
    calls = []
    with Campaign.open(copy) as campaign:
        found = campaign.verify(lambda done, of: calls.append((done, of)))
    assert found.ok
    assert (found.answers, found.unproven) == (259, 0)
    assert found.rounds > 3
    assert calls[-1][0] == calls[-1][1] == found.events
    assert json.loads(json.dumps(found.to_plain()))["ok"] is True


def test_an_answer_changed_in_the_tables_is_found(copy):
    words = tampered(copy, "UPDATE draws SET value = 5 - value WHERE id = 7")
    assert "draw 7 has value" in words


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE campaigns SET design = replace(design, '260', '250')", "the design in the tables"),
        ("UPDATE campaigns SET standing = replace(standing, 'upper\": ', 'upper\": 1')",
         "the standing in the tables"),
        ("UPDATE campaigns SET why = 'all is well'", "the campaign's reason is 'all is well'"),
        ("UPDATE rounds SET body = replace(body, 'why\": \"', 'why\": \"not ') WHERE number = 2",
         "round 2 in the tables, why"),
        ("UPDATE campaigns SET round = round - 1", "rounds"),
    ],
)  # fmt: skip
def test_what_a_report_reads_is_compared_with_the_log(copy, statement, words):
    assert words in tampered(copy, statement)


def doubled(completion):
    return replace(completion, left=2 * completion.left)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda found: {"band": replace(found.band, upper=found.band.upper / 2)}, "upper is"),
        (lambda found: {"completion": doubled(found.completion)}, "another completion"),
    ],
)
def test_a_band_or_completion_changed_in_the_tables_is_found(copy, change, words):
    with Campaign.open(copy) as campaign:
        found = campaign.findings()[1]
        changed = memory.pack(replace(found, **change(found)))
    words_found = tampered(copy, ("UPDATE memories SET body = ? WHERE segment = 1", (changed,)))
    assert words in words_found


def test_an_answer_dropped_from_the_tables_is_found(copy):
    words = tampered(copy, "DELETE FROM draws WHERE id = 7")
    assert "draws and the log tells of" in words


def test_a_changed_event_is_found(copy):
    number, told = body(copy, "told")
    change = json.dumps(told | {"value": 1.0 + told["value"] % 5})
    words = tampered(copy, ("UPDATE log SET body = ? WHERE id = ?", (change, number)))
    assert "not what block" in words


def test_a_dropped_event_is_found(copy):
    number, _ = body(copy, "told")
    assert "holds" in tampered(copy, ("DELETE FROM log WHERE id = ?", (number,)))


def test_a_rewritten_event_that_no_erasure_tells_of_is_found(copy):
    from malocate.store.log import Event, body_digest

    number, told = body(copy, "corrected")
    connection = sqlite3.connect(copy)
    text = connection.execute("SELECT body FROM log WHERE id = ?", (number,)).fetchone()[0]
    connection.close()
    left = body_digest(Event(number, 0.0, "corrected", text))
    change = json.dumps(told | {"reason": "none of your business"})
    statement = "UPDATE log SET body = ?, digest = ? WHERE id = ?"
    words = tampered(copy, (statement, (change, left, number)))
    assert "no erasure tells of it" in words


def reseal(path) -> None:
    """Compute the whole chain anew, as somebody would who knows how."""
    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM blocks")
    connection.commit()
    connection.close()
    with Campaign.open(path) as campaign:
        campaign.store.seal(campaign.id)


def test_a_decision_that_does_not_follow_is_found_behind_a_chain_made_anew(copy):
    number, told = body(copy, "planned")
    told["batches"][0][2] += 1
    connection = sqlite3.connect(copy)
    connection.execute("UPDATE log SET body = ? WHERE id = ?", (json.dumps(told), number))
    connection.commit()
    connection.close()
    reseal(copy)
    with Campaign.open(copy) as campaign:
        words = campaign.verify().broken
    assert f"round {told['round']}, batches[0][2] is recorded as" in words


def test_a_band_that_does_not_follow_is_found_behind_a_chain_made_anew(copy):
    number, told = body(copy, "planned")
    (name,) = list(told["found"])[:1]
    told["found"][name]["upper"] = 0.9 * float(told["found"][name]["upper"])
    connection = sqlite3.connect(copy)
    connection.execute("UPDATE log SET body = ? WHERE id = ?", (json.dumps(told), number))
    connection.commit()
    connection.close()
    reseal(copy)
    with Campaign.open(copy) as campaign:
        words = campaign.verify().broken
    assert "upper is recorded as" in words


def test_an_answer_told_twice_is_found(copy):
    statement = (
        "INSERT INTO log (campaign, at, kind, body) SELECT campaign, at, kind, body FROM log"
        " WHERE kind = 'told' ORDER BY id LIMIT 1"
    )
    assert "answered twice" in tampered(copy, statement)


def test_a_campaign_reopened_by_hand_is_found(copy):
    assert "by the log" in tampered(copy, "UPDATE campaigns SET state = 'open'")
