"""Which campaign a command is about, and what all commands on campaigns share."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from malocate.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from malocate.campaign import Campaign

VARIABLE = "MALOCATE_URL"
UNITS = {"s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}

Where = Annotated[
    str | None,
    typer.Argument(
        metavar="CAMPAIGN",
        show_default=False,
        help="A database's path or URL; by default MALOCATE_URL, or the only .db file here.",
    ),
]
Name = Annotated[str | None, typer.Option(help="Which campaign, where the database holds several.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")]
Who = Annotated[str, typer.Option(help="Who does this; it is logged.")]


@contextmanager
def opened(where: str | None, name: str | None, **settings: Any) -> Iterator[Campaign]:
    """Open the campaign that a command is about, and close it at the end."""
    from malocate.campaign import Campaign

    with Campaign.open(address(where), name, **settings) as campaign:
        yield campaign


def address(where: str | None) -> str:
    """Give the path or URL of the database: as given, as set, or the only one in this folder."""
    if chosen := where or os.environ.get(VARIABLE):
        return chosen
    here = sorted(path.name for path in Path.cwd().glob("*.db"))
    if len(here) == 1:
        return here[0]
    words = f"several .db files ({', '.join(here)})" if here else "no .db file"
    raise NotFound(
        f"No campaign is named, and this folder holds {words}; give its path or URL as the first "
        f"argument, or set {VARIABLE}."
    )


def parted(words: Sequence[str] | None, *names: str) -> tuple[str | None, list[str]]:
    """Part the campaign, which may be left out, from the words that must follow it."""
    given = list(words or [])
    if len(given) == len(names):
        return None, given
    if len(given) == len(names) + 1:
        return given[0], given[1:]
    needed = " and ".join(names) or "nothing"
    raise InvalidInput(
        f"Give {needed}, after the campaign or without it; there came "
        f"{' '.join(given) or 'nothing'!r}."
    )


def seconds(text: str, option: str) -> float:
    """Read a time such as 90s, 45m, 2h or 7d; a plain number is in seconds."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smhd]?)", text.strip())
    if found is None or float(found[1]) <= 0:
        raise InvalidInput(f"{option} is {text!r}; write a time such as 90s, 45m, 2h or 7d.")
    return float(found[1]) * UNITS[found[2] or "s"]
