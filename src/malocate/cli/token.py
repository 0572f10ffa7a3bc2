"""`malocate token`: who may come in over the web."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from malocate.cli.campaign.finding import AsJson, Name, Where, address, opened
from malocate.errors import InvalidInput

if TYPE_CHECKING:
    from malocate.store import Token, Tokens

app = typer.Typer(
    help="Make, list and revoke the tokens by which people and programs come in over the web.",
    no_args_is_help=True,
)
Called = Annotated[str, typer.Option("--for", help="Whose token it is: a person or a tablet.")]
OfAll = Annotated[
    bool, typer.Option("--all", help="A token that opens all campaigns of the database.")
]


@app.command(epilog="Example:  malocate token new tasting.db --for tablet-3 --role asker")
def new(
    where: Where = None,
    called: Called = ...,  # type: ignore[assignment]  # typer's way to say that it is needed
    role: Annotated[str, typer.Option(help="viewer looks, asker asks, owner changes.")] = "asker",
    name: Name = None,
    of_all: OfAll = False,
) -> None:
    """Make a token for one campaign and print it: this is the only time that it can be seen."""
    from malocate.server.access import new_token

    with _tokens(where, name, of_all) as (tokens, campaign):
        typer.echo(new_token(tokens, campaign, called, role))


@app.command("list", epilog="Example:  malocate token list tasting.db --json")
def listed(
    where: Where = None, name: Name = None, of_all: OfAll = False, as_json: AsJson = False
) -> None:
    """List the tokens of a campaign, without what opens the door."""
    with _tokens(where, name, of_all) as (tokens, campaign):
        found = tokens.listed(campaign)
    if as_json:
        typer.echo(json.dumps([_plain(each) for each in found], indent=2, ensure_ascii=False))
        return
    table = Table("for", "role", "made", "revoked")
    for each in found:
        table.add_row(each.name, each.role, _day(each.created), _day(each.revoked))
    Console().print(table)


@app.command(epilog="Example:  malocate token revoke tasting.db --for tablet-3")
def revoke(
    where: Where = None,
    called: Called = ...,  # type: ignore[assignment]
    name: Name = None,
    of_all: OfAll = False,
) -> None:
    """Let a token open nothing any more."""
    from malocate.server.access import revoke_token

    with _tokens(where, name, of_all) as (tokens, campaign):
        revoke_token(tokens, campaign, called)
    typer.echo(f"The token of {called} opens nothing any more.")


@contextmanager
def _tokens(where: str | None, name: str | None, of_all: bool) -> Iterator[tuple[Tokens, int]]:
    """Give the tokens, and the number of the campaign that they are for."""
    from malocate.server.access import EVERYWHERE
    from malocate.store import Store, Tokens

    if not of_all:
        with opened(where, name) as campaign:
            yield Tokens(campaign.store.database), campaign.id
        return
    if name is not None:
        raise InvalidInput(f"--all is for all campaigns and --name for {name!r} alone; give one.")
    store = Store.open(address(where))
    try:
        yield Tokens(store.database), EVERYWHERE
    finally:
        store.close()


def _plain(each: Token) -> dict[str, str | float | None]:
    told = {"for": each.name, "role": each.role}
    return told | {"created": each.created, "revoked": each.revoked}


def _day(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M}"
