"""How `malocate --help` groups the commands: by what one wants to do, in the order of doing it."""

from __future__ import annotations

from typing import Any

import typer

PANELS = {
    "One table, without a campaign": ("complete", "compare"),
    "Before anybody is asked": ("demo", "simulate", "plan", "reproduce"),
    "Run a campaign": (
        "new", "ask", "tell", "correct", "decline", "release", "renew", "import", "worker",
    ),
    "Look at a campaign": ("status", "report", "export", "verify"),
    "Change or end a campaign": ("amend", "pause", "resume", "give-up", "erase", "finish"),
    "Over the web": ("serve", "token"),
}  # fmt: skip
PLACES = {name: (panel, place) for panel in PANELS for place, name in enumerate(PANELS[panel])}
OTHERS = "More"


def grouped(app: typer.Typer) -> None:
    """Put the commands of an application into their panels, in order."""
    order = [*PANELS, OTHERS]
    every: list[Any] = [*app.registered_commands, *app.registered_groups]
    for each in every:
        each.rich_help_panel = panel_of(each)[0]
    app.registered_commands.sort(
        key=lambda each: (order.index(panel_of(each)[0]), panel_of(each)[1])
    )


def panel_of(each: Any) -> tuple[str, int]:
    """Give the panel of a command, and its place in it."""
    name = each.name or each.callback.__name__
    return PLACES.get(name, (OTHERS, 0))
