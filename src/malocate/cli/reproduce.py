"""`malocate reproduce`: the paper's figures, rows and claims."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

if TYPE_CHECKING:
    from malocate.experiments.claims import Claim

HEADINGS = {
    1: "1. MALocate(p) beats the others on its own loss",
    2: "2. MALocate(∞) is only slightly worse than the oracle",
    3: "3. Uniform catches up only when the budget is large",
    4: "4. The maximum loss flattens at the hardest matrix's cap",
    5: "Beyond the paper",
}


class Recipes(StrEnum):
    """Which recipes to run."""

    paper = "paper"
    best = "best"
    both = "both"


def reproduce(
    experiment: Annotated[int, typer.Argument(min=1, max=2, help="The paper's experiment.")],
    runs: Annotated[int, typer.Option(min=1, help="Runs, each with answers of its own.")] = 15,
    jobs: Annotated[int, typer.Option(min=1, help="Runs at a time.")] = os.cpu_count() or 1,
    seed: Annotated[int, typer.Option(min=0, help="Decides the problem and the answers.")] = 0,
    recipe: Annotated[Recipes, typer.Option(help="How matrices are completed and judged.")] = (
        Recipes.both
    ),
    out: Annotated[Path, typer.Option(help="The folder for rows, figures and claims.")] = Path(
        "figures"
    ),
) -> None:
    """Run an experiment of the paper: its figure, its rows, and its four claims with verdicts.

    Recipe `paper` is what the paper's experiments say, and our reading where they are silent;
    recipe `best` is malocate's defaults in the same sub-samples. Finished runs are kept in the
    folder's `parts`: a reproduction that was killed goes on from there.
    """
    from malocate.experiments.reproduce import reproduce as run_all
    from malocate.experiments.results import write

    recipes: Any = ("paper", "best") if recipe is Recipes.both else (recipe.value,)
    console = Console()
    console.print(
        f"Experiment {experiment}, {runs} runs, recipe {' and '.join(recipes)}, seed {seed}",
        highlight=False,
    )
    with _bar(runs * len(recipes)) as step:
        rows = run_all(
            experiment, recipes=recipes, runs=runs, jobs=jobs, seed=seed, folder=out, done=step
        )
    console.print(_table(write(experiment, rows, out)), highlight=False)
    stem = out / f"experiment-{experiment}"
    console.print(f"Rows in {stem}.csv, figure in {stem}.png and {stem}.svg", highlight=False)


@contextmanager
def _bar(total: int) -> Iterator[Callable[[object], None]]:
    columns = (TextColumn("runs"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as bars:
        task = bars.add_task("runs", total=total)
        yield lambda _: bars.advance(task)


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
            table.add_row(claim.recipe, claim.measure, f"{claim.value:.4g}", ends, claim.verdict)
    return table
