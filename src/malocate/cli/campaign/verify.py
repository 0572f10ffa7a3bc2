"""`malocate verify`: whether everything follows from the answers."""

from __future__ import annotations

import typer

from malocate.cli.campaign.finding import AsJson, Name, Where, opened
from malocate.cli.campaign.tables import print_json
from malocate.cli.computing import Dask, Jobs, computing
from malocate.cli.showing import progress, say

EVERY = 1_000
"""Events between two steps of the bar."""


def verify(
    where: Where = None,
    jobs: Jobs = None,
    dask: Dask = None,
    as_json: AsJson = False,
    name: Name = None,
) -> None:
    """Replay a campaign, and say whether every decision and band follows from the answers.

    The chain of hashes is computed anew, the log is lived through again, and the tables are held
    against it. Exit code 1: something differs, and a line says where first.
    """
    compute = computing(jobs, dask)
    with opened(where, name, compute=compute) as campaign, progress(100.0, "%") as show:

        def seen(count: int, total: int) -> None:
            if count % EVERY == 0 or count == total:
                show("Replaying", 100 * count / max(1, total))

        found = campaign.verify(progress=seen)
    if as_json:
        print_json(found.to_plain())
    else:
        say(str(found))
    if not found.ok:
        raise typer.Exit(1)
