"""What commands show: progress while they work, tables of what came out, pictures."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Literal

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from malocate.errors import InvalidInput

if TYPE_CHECKING:
    from malocate.experiments import Run

PICTURES = {".pdf", ".png", ".svg"}
COLUMNS: dict[str, Literal["left", "right"]] = {
    "segment": "left",
    "cells": "right",
    "rank": "right",
    "asked by": "left",
    "answers": "right",
    "true RMSE": "right",
    "bound": "right",
}


@contextmanager
def progress(total: float, unit: str = "asked") -> Iterator[Callable[[str, float], None]]:
    """Show a bar for each label that is told of, on the standard error, while it is a terminal."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.completed:,.0f} " + unit),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    quiet = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=quiet) as bars:
        waiting = bars.add_task("Starting; the first time, kernels are compiled", total=None)
        tasks = {}

        def show(label: str, done: float) -> None:
            bars.update(waiting, visible=False)
            if label not in tasks:
                tasks[label] = bars.add_task(label, total=total)
            bars.update(tasks[label], completed=done, total=max(total, done))

        yield show


@contextmanager
def spinning(words: str) -> Iterator[None]:
    """Show that something goes on, on the standard error, while it is a terminal."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        bar.add_task(words, total=None)
        yield


def say(words: str, style: str = "") -> None:
    """Print words as they are: brackets in a name are no markup; a path is not broken."""
    Console().print(Text(words, style=style), soft_wrap=True)


@dataclass(frozen=True)
class End:
    """How a segment stands at the end of a run; errors are root mean squared errors."""

    answers: int
    true_rmse: float
    rmse_bound: float
    label: str

    def cells(self) -> list[str]:
        """Give its numbers as a table shows them."""
        true = "–" if math.isnan(self.true_rmse) else f"{self.true_rmse:.3f}"
        bound = f"{self.rmse_bound:.3f}" if math.isfinite(self.rmse_bound) else "–"
        mark = "≈ " if self.label == "approximate" and bound != "–" else ""
        return [f"{self.answers:,}", true, mark + bound]


def ends(run: Run) -> dict[str, End]:
    """Give how each segment stands at the end of a run."""
    names = [segment.name for segment in run.design.segments]
    if not run.records:
        return dict.fromkeys(names, End(0, math.nan, math.inf, ""))
    last = run.frame().iloc[-1]
    return {
        name: End(
            int(last[f"n_{name}"]),
            math.sqrt(last[f"error_{name}"]),
            math.sqrt(last[f"upper_{name}"]),
            run.bands[name].label if name in run.bands else "",
        )
        for name in names
    }


def results(runs: Mapping[str, Run], ranks: Mapping[str, int]) -> Table:
    """Give a table of what each run asked of each segment, and how wrong it is at the end.

    `ranks` are those that the matrices were made with.
    """
    design = next(iter(runs.values())).design
    table = Table(caption=_caption(runs), caption_justify="left")
    for name, justify in COLUMNS.items():
        table.add_column(name, justify=justify)
    found = {label: ends(run) for label, run in runs.items()}
    for segment in design.segments:
        shape = f"{segment.shape[0]} × {segment.shape[1]}"
        first = [Text(segment.name), Text(shape), Text(str(ranks[segment.name]))]
        for label, each in found.items():
            table.add_row(*first, Text(label), *each[segment.name].cells())
            first = [Text()] * 3
        table.add_section()
    return table


def _caption(runs: Mapping[str, Run]) -> str:
    design = next(iter(runs.values())).design
    labels = {band.label for run in runs.values() for band in run.bands.values()}
    words = [
        "rank, true RMSE: known here, because the matrices are made up",
        "bound: on the RMSE, from the answers alone",
    ]
    if "certified" in labels:
        chance = f"{1 - design.delta:g}"
        words.append(f"       certified: with certainty {chance} all hold, at all looks together")
    if "approximate" in labels:
        words.append("       ≈: approximate, which promises nothing")
    return "\n".join(words)


def losses(runs: Mapping[str, Run]) -> str:
    """Say what the loss is at the end of each run."""
    parts = []
    for label, run in runs.items():
        if run.records:
            end = run.records[-1].losses
            parts.append(f"{label} {end['loss']:.4g} (bound {end['bound']:.4g})")
    return f"Loss: {', '.join(parts)}." if parts else "Nobody was asked; the budget pays for none."


def check_picture(path: Path, option: str = "--output") -> None:
    """Refuse a picture that could not be written at the end of a long job."""
    import malocate.plots  # noqa: F401  # so that a missing matplotlib is told of at once

    if not path.parent.is_dir():
        raise InvalidInput(f"The folder of {option} {path} does not exist; make it first.")
    if path.suffix.lower() not in PICTURES:
        raise InvalidInput(f"{option} {path} must end in .pdf, .png or .svg.")
    new = not path.exists()
    try:
        with path.open("ab"):
            pass
        if new:
            path.unlink()
    except OSError as problem:
        raise InvalidInput(
            f"{option} {path} cannot be written: {problem.strerror}; choose another place."
        ) from None


def check_out(out: Path, names: Sequence[str] = ()) -> None:
    """Refuse a folder that could not be written to at the end of a long job; make a new one.

    `names` are of the runs that it is to hold.
    """
    import malocate.plots  # noqa: F401  # so that a missing matplotlib is told of at once
    from malocate.experiments.run_files import check_folder

    if out.exists() and not out.is_dir():
        raise InvalidInput(f"--out {out} is a file; give a folder.")
    for name in names:
        check_folder(out / name)
    try:
        out.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=out):
            pass
    except OSError as problem:
        raise InvalidInput(
            f"--out {out} cannot be written to: {problem.strerror}; choose another place."
        ) from None
