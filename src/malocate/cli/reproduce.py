"""`malocate reproduce`: the paper's figures, rows and claims."""

from __future__ import annotations

import math
from dataclasses import replace
from enum import StrEnum
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from malocate.cli.computing import Dask, Jobs, computing
from malocate.cli.showing import check_out, progress, say

if TYPE_CHECKING:
    from malocate.experiments.claims import Claim

HEADINGS = {
    1: "1. MALocate(p) beats the others on its own loss",
    2: "2. MALocate(∞) is only slightly worse than the oracle",
    3: "3. Uniform catches up only when the budget is large",
    4: "4. The maximum loss flattens at the hardest matrix's cap",
    5: "Beyond the paper",
}


NOISE = 0.1
"""The standard deviation of an answer's noise in the paper's experiments."""


class Recipes(StrEnum):
    """Which recipes to run."""

    paper = "paper"
    conservative = "conservative"
    best = "best"
    both = "both"
    every = "all"


def reproduce(
    experiment: Annotated[int, typer.Argument(min=1, max=2, help="The paper's experiment.")],
    runs: Annotated[int, typer.Option(min=1, help="Runs, each with answers of its own.")] = 15,
    jobs: Jobs = None,
    dask: Dask = None,
    seed: Annotated[int, typer.Option(min=0, help="Decides the problem and the answers.")] = 0,
    recipe: Annotated[
        Recipes,
        typer.Option(metavar="RECIPE", help="paper, conservative, best, both (paper, best), all."),
    ] = Recipes.both,
    noise: Annotated[
        float,
        typer.Option(min=0, help="Standard deviation of an answer; 0.316 reads 0.1 as variance."),
    ] = NOISE,
    out: Annotated[Path, typer.Option(help="The folder for rows, figures and claims.")] = Path(
        "figures"
    ),
) -> None:
    """Run an experiment of the paper: its figure, its rows, and its four claims with verdicts.

    Recipe `paper` is what the paper's experiments say, and our reading where they are silent;
    `conservative` is the same with a bound of 16 instead of 2 standard errors; `best` is malocate's
    defaults in the same sub-samples. Finished runs are kept in the folder's `parts`: a
    reproduction that was killed goes on from there.
    """
    from malocate.experiments.paper import RECIPES
    from malocate.experiments.paper import experiment as the_experiment
    from malocate.experiments.reproduce import reproduce as run_all
    from malocate.experiments.results import write

    together: Any = {Recipes.both: ("paper", "best"), Recipes.every: RECIPES}
    recipes = together.get(recipe, (recipe.value,))
    check_out(out)
    compute = computing(jobs, dask)
    say(f"Experiment {experiment}, {runs} runs, recipe {', '.join(recipes)}, seed {seed}")
    if noise != NOISE:
        say(f"Noise {noise:g}: the rows are not those of the paper's experiment as we read it.")
    finished = count(1)
    with progress(runs * len(recipes), f"of {runs * len(recipes)} runs") as show:
        show(f"Experiment {experiment}", 0)
        rows = run_all(
            experiment,
            recipes=recipes,
            runs=runs,
            compute=compute,
            seed=seed,
            folder=out,
            problem=replace(the_experiment(experiment), noise=noise),
            done=lambda _: show(f"Experiment {experiment}", next(finished)),
        )
    Console().print(_table(write(experiment, rows, out)), highlight=False)
    stem = out / f"experiment-{experiment}"
    say(f"Rows in {stem}.csv, figure in {stem}.png and {stem}.svg")


def _table(claims: list[Claim]) -> Table:
    table = Table(title="What the runs say: mean over runs, 95 % interval", title_justify="left")
    for name in ("recipe", "what", "value", "interval", "verdict"):
        table.add_column(name, justify="right" if name in ("value", "interval") else "left")
    for number, heading in HEADINGS.items():
        own = [claim for claim in claims if claim.number == number]
        if own:
            table.add_section()
            table.add_row("", f"[bold]{heading}[/bold]", "", "", "")
        for claim in own:
            ends = f"{claim.low:.4g} – {claim.high:.4g}" if math.isfinite(claim.low) else "–"
            value = f"{claim.value:.4g}" if math.isfinite(claim.value) else "–"
            table.add_row(claim.recipe, claim.measure, value, ends, claim.verdict)
    return table
