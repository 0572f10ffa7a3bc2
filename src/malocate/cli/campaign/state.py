"""`malocate pause`, `resume`, `finish` and `give-up`: turns that somebody decides."""

from __future__ import annotations

from typing import Annotated

import typer

from malocate.cli.campaign.finding import Name, Where, Who, opened
from malocate.cli.showing import say
from malocate.problem.counting import counted

Why = Annotated[str, typer.Option(help="The reason; it is logged and shown.")]


def pause(where: Where = None, why: Why = "", who: Who = "", name: Name = None) -> None:
    """Lend nothing until `malocate resume`; answers are still taken."""
    with opened(where, name) as campaign:
        campaign.pause(why, who=who)
        say(f"{campaign.name} is paused; answers are still taken.")


def resume(where: Where = None, why: Why = "", who: Who = "", name: Name = None) -> None:
    """Go on after a pause."""
    with opened(where, name) as campaign:
        campaign.resume(why, who=who)
        say(f"{campaign.name} goes on.")


def finish(where: Where = None, why: Why = "", who: Who = "", name: Name = None) -> None:
    """End a campaign for good; answers that are on their way are still taken."""
    with opened(where, name) as campaign:
        campaign.finish(why, who=who)
        say(f"{campaign.name} is finished; answers that are on their way are still taken.")


def give_up(where: Where = None, name: Name = None) -> None:
    """Give up the questions of this round that nobody has, so that the next can be planned.

    A round is over when all its questions are answered, refused or given up. What is out stays
    out until it is answered or overdue.
    """
    with opened(where, name) as campaign:
        count = campaign.give_up()
    say(f"{counted(count, 'question')} given up.")
