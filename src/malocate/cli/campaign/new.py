"""`malocate new`: a campaign from a design file, or from answers to a few questions."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from malocate.cli.campaign.finding import AsJson
from malocate.cli.campaign.tables import print_json
from malocate.cli.showing import say
from malocate.errors import Conflict
from malocate.problem.counting import counted

if TYPE_CHECKING:
    from malocate.campaign import Campaign


def new(
    design: Annotated[
        Path | None,
        typer.Argument(
            metavar="DESIGN",
            show_default=False,
            help="A .toml or .json file; without one, you are asked, and it is written.",
        ),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(help="The database; by default an SQLite file beside the design."),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="The campaign's name; by default that of the design's file.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Begin a campaign: `tasting.toml` makes `tasting.db` beside it. No server is needed.

    A design says what can be asked and what it may cost. The smallest one:

    ```toml
    budget = 2000

    [[segments]]
    name = "north"
    shape = [60, 40]
    scale = [1, 5]
    ```

    Labels go into the segment as `labels = { rows = ["Al", "Bo"], columns = ["red", "white"] }`.
    """
    from malocate.campaign import Campaign
    from malocate.cli.campaign.interview import interview
    from malocate.design import Design

    path = interview() if design is None else design
    chosen = Design.load(path)
    where = url or str(path.with_suffix(".db"))
    if url is None and Path(where).exists() and name is None:
        raise Conflict(
            f"{where} exists already; `malocate status {where}` says how it stands. For another "
            "campaign, give another --name or --url."
        )
    with Campaign.create(where, chosen, name=name or path.stem) as campaign:
        _tell(campaign, where, as_json)


def _tell(campaign: Campaign, where: str, as_json: bool) -> None:
    segments = campaign.design.segments
    cells = sum(segment.n_askable for segment in segments)
    if as_json:
        names = [segment.name for segment in segments]
        print_json({"database": str(campaign.store), "name": campaign.name, "segments": names})
        return
    count = counted(len(segments), "segment")
    say(
        f"{campaign.store} holds the campaign {campaign.name!r}: {count}, {cells:,} cells, "
        f"budget {campaign.design.budget:,g}."
    )
    if "://" not in where:
        which = f" --name {shlex.quote(campaign.name)}" if len(campaign.store.names()) > 1 else ""
        say(f"Next:  malocate ask {shlex.quote(where)}{which} -n 20 --who NAME")
