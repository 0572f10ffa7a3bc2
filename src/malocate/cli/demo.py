"""`malocate demo`: a made-up market, asked where it teaches most and asked alike everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from malocate.cli.computing import Dask, Jobs, computing
from malocate.cli.showing import check_picture, losses, progress, results, say

if TYPE_CHECKING:
    from malocate.design import Design
    from malocate.sources import Synthetic

MARKET = {
    "Paris": ((150, 100), 2),
    "Lyon": ((90, 80), 8),
    "Nice": ((80, 60), 3),
    "Brest": ((50, 40), 1),
    "Metz": ((40, 30), 2),
}
"""Towns: people × wines, and the rank of the tastes, which nobody is told."""

BUDGET, BATCH = 8_000, 500


def demo(
    output: Annotated[Path, typer.Option(help="The picture: .png, .svg or .pdf.")] = Path(
        "demo.png"
    ),
    seed: Annotated[int, typer.Option(min=0, help="Each seed makes another market.")] = 0,
    jobs: Jobs = None,
    dask: Dask = None,
    serve: Annotated[
        bool, typer.Option("--serve", help="Show a living campaign in the browser instead.")
    ] = False,
    port: Annotated[int, typer.Option(min=1, max=65_535, help="With --serve.")] = 8000,
) -> None:
    """Spend a budget on five towns where it teaches most, and compare with asking all alike.

    People in five towns rate wines from 1 to 5. Towns differ in size and in how complex their
    tastes are, and nobody knows that before. MALocate looks at each town's answers and asks on
    where its completed ratings are worst; uniform asks the same number everywhere. The ratings are
    made up, so the table can hold the bounds, which come from the answers alone, against the truth.
    """
    if serve:
        from malocate.cli.living import live_here

        live_here(port)
        return
    from malocate.experiments.compare import compare

    check_picture(output)
    design, sources = market(seed)
    compute = computing(jobs, dask)
    with progress(design.budget) as show:
        found = compare(design, sources, names=("MALocate", "uniform"), compute=compute, show=show)
    runs = {found.names[0]: found.run, found.names[1]: found.rival}
    ranks = {name: rank for name, (_, rank) in MARKET.items()}
    Console().print(results(runs, ranks))
    say(f"{losses(runs)} The loss is the worst town's mean squared error.")
    say(found.words(), style="bold")
    title = f"{len(MARKET)} towns, {design.budget:,.0f} answers"
    found.plot(title).savefig(output, dpi=150)
    say(f"Picture: {output}")
    say("To see a campaign live in the browser: malocate demo --serve")


def market(seed: int) -> tuple[Design, dict[str, Synthetic]]:
    """Make the towns, and the design of a survey among them."""
    import numpy as np

    from malocate import Batches, Design, Loss, Synthetic

    seeds = np.random.default_rng(seed).integers(2**32, size=len(MARKET))
    sources = {
        name: Synthetic.ratings(shape, rank, rng=int(own))
        for (name, (shape, rank)), own in zip(MARKET.items(), seeds, strict=True)
    }
    design = Design(
        tuple(source.segment(name) for name, source in sources.items()),
        budget=BUDGET,
        loss=Loss(weights="per_entry"),
        schedule=Batches(size=BATCH, first=BATCH),
        seed=seed,
    )
    return design, sources
