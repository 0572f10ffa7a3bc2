"""Commands on campaigns: each is a module of its own, or shares one with its siblings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand

from malocate.cli.campaign.amend import amend
from malocate.cli.campaign.ask import ask
from malocate.cli.campaign.erase import erase
from malocate.cli.campaign.export import export
from malocate.cli.campaign.imports import import_
from malocate.cli.campaign.new import new
from malocate.cli.campaign.state import finish, give_up, pause, resume
from malocate.cli.campaign.status import report, status
from malocate.cli.campaign.tell import correct, tell
from malocate.cli.campaign.tickets import decline, release, renew
from malocate.cli.campaign.verify import verify
from malocate.cli.campaign.worker import worker

__all__ = ["CODES", "add_to"]

CODES = (
    "Exit codes:  0 done; 1 the answer is no (nothing to ask, answers that contradict, verify "
    "found a break); 2 refused, nothing was changed; 3 trouble with the database; 130 stopped."
)
TICKET = "0-17-1-9f86d081884c7d65"
COMMANDS: dict[str, tuple[Callable[..., None], str]] = {
    "new": (new, "new tasting.toml"),
    "ask": (ask, "ask tasting.db -n 20 --who tablet-3 --lease 2h"),
    "tell": (tell, "tell tasting.db --file answers.csv"),
    "correct": (correct, f"correct tasting.db {TICKET} 3 --reason typo"),
    "decline": (decline, f"decline tasting.db {TICKET} --reason allergy"),
    "release": (release, f"release tasting.db {TICKET}"),
    "renew": (renew, f"renew tasting.db {TICKET} --lease 30m"),
    "import": (import_, "import tasting.db last-year.csv --who Ann"),
    "export": (export, "export tasting.db completions --out completions.csv"),
    "status": (status, "status tasting.db"),
    "report": (report, "report tasting.db --html report.html"),
    "amend": (amend, "amend tasting.db --budget 2500 --why 'a second grant'"),
    "pause": (pause, "pause tasting.db --why 'a holiday'"),
    "resume": (resume, "resume tasting.db"),
    "finish": (finish, "finish tasting.db --why 'good enough'"),
    "give-up": (give_up, "give-up tasting.db"),
    "erase": (erase, "erase tasting.db --segment north --row Al --yes"),
    "verify": (verify, "verify tasting.db"),
    "worker": (worker, "worker tasting.db --once"),
}
"""Every command on campaigns, and an example to paste."""


class PlainUsage(TyperCommand):
    """A command whose usage reads `[CAMPAIGN] TICKET`, though both come as one list of words."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Give the parts of the line of usage."""
        pieces = super().collect_usage_pieces(ctx)
        return [piece[1 : -len("]...")] if "[CAMPAIGN] " in piece else piece for piece in pieces]


def add_to(app: typer.Typer) -> None:
    """Add the commands to the others."""
    for name, (command, example) in COMMANDS.items():
        app.command(
            name,
            cls=PlainUsage,
            epilog=f"Example:  malocate {example}\n\n{CODES}",
            context_settings={"ignore_unknown_options": name in ("tell", "correct")},
        )(command)
