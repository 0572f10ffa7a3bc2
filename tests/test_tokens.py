"""`malocate token`: made, listed and revoked on the command line."""

from __future__ import annotations

import json

import pytest
from surveys import small_design
from typer.testing import CliRunner

from malocate import Campaign, Conflict
from malocate.cli import app
from malocate.cli.serve import OWNER, _greet
from malocate.server.access import EVERYWHERE, Gate, NotAllowed
from malocate.store import Store, Tokens


@pytest.fixture
def url(tmp_path):
    Campaign.create(tmp_path / "wines.db", small_design()).close()
    return str(tmp_path / "wines.db")


@pytest.fixture
def token(url):
    def run(verb: str, *options: str):
        return CliRunner().invoke(app, ["token", verb, url, *options])

    return run


@pytest.fixture
def store(url):
    found = Store.open(url)
    yield found
    found.close()


def test_a_token_is_shown_once_and_listed_without_itself(token, store):
    made = token("new", "--for", "tablet-3").stdout.strip()
    visitor = Gate(Tokens(store.database)).visitor(made)
    assert (visitor.role, visitor.name, visitor.campaign) == ("asker", "tablet-3", 1)
    assert made not in token("list").stdout
    (told,) = json.loads(token("list", "--json").stdout)
    assert set(told) == {"for", "role", "created", "revoked"}
    assert (told["for"], told["role"], told["revoked"]) == ("tablet-3", "asker", None)


@pytest.mark.parametrize("options", [(), ("--all",)])
def test_a_revoked_token_opens_nothing_and_its_name_is_not_used_again(token, store, options):
    made = token("new", "--for", "Ada", "--role", "owner", *options).stdout.strip()
    assert "opens nothing any more" in token("revoke", "--for", "Ada", *options).stdout
    with pytest.raises(NotAllowed):
        Gate(Tokens(store.database)).visitor(made)
    again = token("new", "--for", "Ada", *options)
    assert again.exit_code == 2
    assert "such as 'Ada 2'" in again.stderr


def test_a_token_for_all_campaigns_is_kept_apart(token, store):
    made = token("new", "--for", "Ada", "--role", "viewer", "--all").stdout.strip()
    assert Gate(Tokens(store.database)).visitor(made).campaign == EVERYWHERE
    assert json.loads(token("list", "--json").stdout) == []
    assert [each["for"] for each in json.loads(token("list", "--all", "--json").stdout)] == ["Ada"]
    assert token("revoke", "--for", "Ada").exit_code == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--for", "Ada", "--role", "king"), "role is 'king'; choose from viewer, asker, owner"),
        (("--for", "", "--role", "asker"), "has no name"),
        (("--for", "Ada", "--all", "--name", "wines"), "give one"),
    ],
)
def test_what_makes_no_token_is_told_in_a_line(token, options, words):
    answer = token("new", *options)
    assert answer.exit_code == 2
    assert words in answer.stderr
    assert answer.stderr.count("\n") == 1


def test_the_first_link_can_be_revoked_and_the_next_start_gives_another(token, store, capsys):
    for number in (1, 2, 2):
        _greet(store, "http://here")
        assert len(Tokens(store.database).listed(EVERYWHERE)) == number
        if number == 1:
            assert token("revoke", "--all", "--for", OWNER).exit_code == 0
    assert capsys.readouterr().out.count("/enter?token=") == 2


def test_a_server_that_starts_second_shows_no_link(store, monkeypatch, capsys):
    _greet(store, "http://here")
    assert "token=" in capsys.readouterr().out
    listed, looks = Tokens.listed, iter([[]])  # it looked before the first had made one
    monkeypatch.setattr(Tokens, "listed", lambda *told: next(looks, listed(*told)))
    _greet(store, "http://here")
    assert capsys.readouterr().out == ""


def test_a_name_taken_while_nobody_is_the_owner_is_told(token, store):
    assert token("new", "--all", "--for", f"{OWNER} 2", "--role", "viewer").exit_code == 0
    with pytest.raises(Conflict, match="take another name"):
        _greet(store, "http://here")
