"""`malocate simulate`: a design of one's own, tried on made-up matrices."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from malocate.cli.computing import Dask, Jobs, computing
from malocate.cli.showing import check_out, losses, progress, results, say
from malocate.cli.trial import Rival, names_of, ranks_of, run_trial


def simulate(
    design: Annotated[Path, typer.Argument(help="The design: a .toml or .json file.")],
    rank: Annotated[
        list[str] | None,
        typer.Option(help="Rank of the matrices: N for all, NAME=N for one; 3 by default."),
    ] = None,
    noise: Annotated[
        float | None,
        typer.Option(min=0, help="Standard deviation of an answer; by default 1/8 of its scale."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Of matrices and draws; by default the design's.")
    ] = None,
    against: Annotated[
        Rival,
        typer.Option(help="What to compare with: all alike, by size, or knowing the true errors."),
    ] = Rival.UNIFORM,
    out: Annotated[
        Path | None, typer.Option(help="A folder for the runs, a summary and a picture.")
    ] = None,
    jobs: Jobs = None,
    dask: Dask = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")] = False,
) -> None:
    """Try a design on made-up matrices before the field: whom it asks, how sure it gets, what for.

    A segment with a scale gets ratings, one without a matrix of low rank. The smallest design:

    ```toml
    budget = 2000

    [[segments]]
    name = "north"
    shape = [60, 40]
    scale = [1, 5]

    [[segments]]
    name = "south"
    shape = [30, 40]
    ```
    """
    from malocate.design import Design

    chosen = Design.load(design)
    chosen = chosen if seed is None else replace(chosen, seed=seed)
    if out is not None:
        check_out(out, names_of(chosen, against))
    ranks = ranks_of(chosen, rank or [])
    compute = computing(jobs, dask, chosen.compute)
    with progress(chosen.budget) as show:
        trial = run_trial(chosen, ranks, noise, against, compute, show)
    if out is not None:
        trial.save(out)
    if as_json:
        typer.echo(json.dumps(trial.plain(), indent=2, ensure_ascii=False, allow_nan=False))
        return
    Console().print(results(trial.runs, trial.ranks))
    for words in (losses(trial.runs), *trial.words()):
        say(words)
    if out is not None:
        say(f"Runs, summary and picture: {out}")
