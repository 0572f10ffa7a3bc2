"""`malocate plan`: what a budget will buy and what a target will cost, before the field."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from malocate.cli.computing import Dask, Jobs, computing
from malocate.cli.showing import PICTURES, check_out, check_picture, progress, say
from malocate.cli.trial import ranks_of
from malocate.errors import InvalidInput

if TYPE_CHECKING:
    from malocate.experiments.survey_plan import Range, SurveyPlan

PICTURE, SUMMARY, CURVES = "plan.png", "plan.json", "curves.csv"


def plan(
    design: Annotated[Path, typer.Argument(help="The design: a .toml or .json file.")],
    pilot: Annotated[
        Path | None,
        typer.Option(help="Answers of a pilot: CSV, Excel, Parquet or SPSS; twins become like it."),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option(help='What every segment is to reach, as "rmse<=0.15".'),
    ] = None,
    budget: Annotated[
        float | None, typer.Option(help="Another budget than the design's.", show_default=False)
    ] = None,
    rank: Annotated[
        list[str] | None,
        typer.Option(help="Without a pilot, rank of the twins: N for all, NAME=N for one."),
    ] = None,
    noise: Annotated[
        float | None,
        typer.Option(min=0, help="Without a pilot, the standard deviation of an answer."),
    ] = None,
    runs: Annotated[int, typer.Option(min=2, help="How many twins.")] = 20,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Of twins and draws; by default the design's.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="A picture (.png, .svg, .pdf), or a folder for picture, JSON and CSV."),
    ] = None,
    jobs: Jobs = None,
    dask: Dask = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")] = False,
) -> None:
    """Foretell what a survey will reach with its budget, and what a target will cost.

    Made-up twins of your segments are asked in your place: by the design's strategy, all alike,
    and by somebody who knew the ranks. With a pilot, the twins are those that could have given its
    answers; without one, they have the ranks and the noise that you name. All of it is seen in
    simulation, and promises nothing; the brackets say how far twins differ.
    """
    from malocate.cli.pilot import read_pilot
    from malocate.design import Design
    from malocate.experiments.plan_words import target_of
    from malocate.experiments.planner import plan_survey

    chosen = Design.load(design)
    chosen = chosen if seed is None else replace(chosen, seed=seed)
    goal = None if target is None else target_of(target)
    _check_place(out)
    compute = computing(jobs, dask, chosen.compute)
    with progress(runs, "twins") as show:
        made = plan_survey(
            chosen,
            None if pilot is None else read_pilot(pilot, chosen),
            target=goal,
            budget=budget,
            ranks=ranks_of(chosen, rank) if rank else None,
            noise=noise,
            runs=runs,
            compute=compute,
            show=show,
        )
    if out is not None:
        _save(made, out, design.stem)
    if as_json:
        typer.echo(_json(made))
        return
    Console().print(table_of(made))
    for words in made.words():
        say(words)
    if out is not None:
        say(f"Saved: {out}")


def table_of(made: SurveyPlan) -> Table:
    """Give a table of what each strategy asks and reaches in each segment."""
    spent = f"{made.design.budget:,.0f}"
    caption = f"at a budget of {spent}, seen in simulation\ngood: by somebody who knew the ranks"
    table = Table(caption=caption, caption_justify="left")
    for name in ("segment", "cells", "asked by"):
        table.add_column(name)
    for name in ("answers", "RMSE"):
        table.add_column(name, justify="right")
    answers = {name: made.answers(name) for name in made.strategies}
    errors = {name: made.forecast(name) for name in made.strategies}
    for segment in made.design.segments:
        first = [Text(segment.name), Text(f"{segment.shape[0]} × {segment.shape[1]}")]
        for name in made.strategies:
            asked, found = answers[name][segment.name], errors[name][segment.name]
            table.add_row(*first, _short(name), _counts(asked), _errors(found))
            first = [Text()] * 2
        table.add_section()
    first = [Text("the worst"), Text()]
    for name in made.strategies:
        table.add_row(*first, _short(name), "", _errors(made.worst(name)))
        first = [Text()] * 2
    return table


def _short(strategy: str) -> Text:
    return Text(strategy.removesuffix(" allocation"))


def _counts(found: Range) -> str:
    if found.low == found.high:
        return f"{found.middle:,.0f}"
    return f"{found.middle:,.0f} ({found.low:,.0f}–{found.high:,.0f})"


def _errors(found: Range) -> str:
    return f"{found.middle:.2g} ({found.low:.2g}–{found.high:.2g})"


def _check_place(out: Path | None) -> None:
    """Refuse a picture or a folder that could not be written at the end of a long job."""
    if out is None:
        return
    if out.suffix.lower() in PICTURES:
        check_picture(out, "--out")
    elif out.suffix and not out.is_dir():
        raise InvalidInput(f"--out {out} must end in .pdf, .png or .svg, or be a folder.")
    else:
        check_out(out)


def _save(made: SurveyPlan, out: Path, title: str) -> None:
    if out.suffix.lower() in PICTURES:
        made.plot(title).savefig(out, dpi=150)
        return
    made.plot(title).savefig(out / PICTURE, dpi=150)
    (out / SUMMARY).write_text(_json(made) + "\n", encoding="utf-8")
    made.frame().to_csv(out / CURVES, index=False)


def _json(made: SurveyPlan) -> str:
    return json.dumps(made.plain(), indent=2, ensure_ascii=False, allow_nan=False)
