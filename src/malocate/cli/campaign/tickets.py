"""`malocate decline`, `release` and `renew`: what else can become of a ticket."""

from __future__ import annotations

from typing import Annotated

import typer

from malocate.cli.campaign.finding import Name, opened, parted, seconds
from malocate.cli.showing import say

Words = Annotated[
    list[str],
    typer.Argument(
        metavar="[CAMPAIGN] TICKET", show_default=False, help="The ticket as `ask` gave it."
    ),
]


def decline(
    words: Words,
    reason: Annotated[str, typer.Option(help="Why, in their words; it is logged.")] = "",
    name: Name = None,
) -> None:
    """Record that a question was refused; it is not asked again."""
    where, (ticket,) = parted(words, "TICKET")
    with opened(where, name) as campaign:
        campaign.decline(ticket, reason)
    say("Declined; it is not asked again.")


def release(words: Words, name: Name = None) -> None:
    """Give a question back, so that somebody else can be asked."""
    where, (ticket,) = parted(words, "TICKET")
    with opened(where, name) as campaign:
        campaign.release(ticket)
    say("Released; somebody else can be asked.")


def renew(
    words: Words,
    lease: Annotated[
        str, typer.Option(help="For how long from now: 90s, 45m, 2h, 7d.", metavar="TIME")
    ] = "1h",
    name: Name = None,
) -> None:
    """Keep a question for longer."""
    where, (ticket,) = parted(words, "TICKET")
    with opened(where, name) as campaign:
        campaign.renew(ticket, seconds(lease, "--lease"))
    say(f"Renewed for {lease} from now.")
