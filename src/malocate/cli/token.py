"""`malocate token`: who may come in over the web."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from malocate.cli.campaign.finding import Name, Where, opened

app = typer.Typer(
    help="Make, list and revoke the tokens by which people and programs come in over the web.",
    no_args_is_help=True,
)
Called = Annotated[str, typer.Option("--for", help="Whose token it is: a person or a tablet.")]


@app.command(epilog="Example:  malocate token new tasting.db --for tablet-3 --role asker")
def new(
    where: Where = None,
    called: Called = ...,  # type: ignore[assignment]  # typer's way to say that it is needed
    role: Annotated[str, typer.Option(help="viewer looks, asker asks, owner changes.")] = "asker",
    name: Name = None,
) -> None:
    """Make a token for one campaign and print it: this is the only time that it can be seen."""
    from malocate.server.access import new_token
    from malocate.store import Tokens

    with opened(where, name) as campaign:
        typer.echo(new_token(Tokens(campaign.store.database), campaign.id, called, role))


@app.command("list", epilog="Example:  malocate token list tasting.db")
def listed(where: Where = None, name: Name = None) -> None:
    """List the tokens of a campaign, without what opens the door."""
    from malocate.store import Tokens

    table = Table("for", "role", "made", "revoked")
    with opened(where, name) as campaign:
        for each in Tokens(campaign.store.database).listed(campaign.id):
            revoked = _day(each.revoked) if each.revoked is not None else ""
            table.add_row(each.name, each.role, _day(each.created), revoked)
    Console().print(table)


@app.command(epilog="Example:  malocate token revoke tasting.db --for tablet-3")
def revoke(
    where: Where = None,
    called: Called = ...,  # type: ignore[assignment]
    name: Name = None,
) -> None:
    """Let a token open nothing any more."""
    from malocate.server.access import revoke_token
    from malocate.store import Tokens

    with opened(where, name) as campaign:
        revoke_token(Tokens(campaign.store.database), campaign.id, called)
    typer.echo(f"The token of {called} opens nothing any more.")


def _day(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M}"
