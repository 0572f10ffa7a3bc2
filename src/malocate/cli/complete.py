"""`malocate complete`: from a file of ratings to completed tables, with bounds on their error."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from malocate.cli import columns as given
from malocate.cli import reading
from malocate.cli.campaign.tables import print_json
from malocate.cli.computing import Dask, computing
from malocate.cli.showing import check_picture, progress, say
from malocate.compute import Compute
from malocate.errors import InvalidInput, MalocateError
from malocate.files import Answers
from malocate.problem.arrays import Floats
from malocate.problem.counting import counted

if TYPE_CHECKING:
    import pandas as pd

    from malocate.confidence.band import Band
    from malocate.confidence.judgement import Done, Job
    from malocate.problem import Observations

    Show = Callable[[str, float], None]

FITS = 6  # five folds and a fit to all answers
AtATime = Annotated[
    int | None,
    typer.Option(
        min=1,
        show_default="1",
        help="How many fits at a time, each by a process; worth it for large tables.",
    ),
]


@given.reads_files
def complete(
    file: Annotated[
        str, typer.Argument(help="Answers: .csv, .xlsx, .parquet or .sav; - is CSV from a pipe.")
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The completed cells: .csv, .xlsx, .parquet or .sav."),
    ] = None,
    wide: Annotated[
        bool, typer.Option("--wide", help="Write one line per row, not one per cell.")
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(help="A picture of what was seen and completed: .png, .svg.")
    ] = None,
    scale: reading.Scale = None,
    uniform: reading.Uniform = False,
    delta: reading.Delta = 0.05,
    jobs: AtATime = None,
    dask: Dask = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for machines.")] = False,
    *,
    reader: given.Reader,
) -> None:
    """Complete a table of ratings, and say how wrong the completion may be.

    The file has one line per answer (who, what, how many stars; further columns such as a region
    become segments) or one line per row. Cells may be answered several times: that is how the
    noise of an answer is told from the error of the completion.
    """
    _check(file, out, plot)
    answers = reader.answers(reader.table(file))
    found = reading.observed(answers, scale, uniform)
    compute = computing(jobs, dask, usual=Compute(jobs=1))
    bands = _judged(found, delta, uniform, compute)
    if out is not None:
        _write(found, bands, out, wide)
    if plot is not None:
        from malocate.plots import completed_picture

        completed_picture(found, bands).savefig(plot, dpi=150)
    if as_json:
        print_json(_plain(found, bands, delta))
        return
    say(answers.understood)
    Console().print(_table(found, bands), highlight=False)
    told = (*_left_out(answers, found), *_meaning(bands, delta, uniform), *_resting(bands))
    for words in (*told, *_files(out, plot)):
        say(words)


def _check(file: str, out: Path | None, plot: Path | None) -> None:
    """Refuse files that could not be written at the end, or would take the answers' place."""
    from malocate.files.forms import form_to_write
    from malocate.files.writing import check_place

    if out is not None:
        form_to_write(out)
        check_place(out)
        if out.exists() and Path(file).exists() and out.samefile(file):
            raise InvalidInput(f"--out {out} is the file of answers; give another name.")
    if plot is not None:
        check_picture(plot, "--plot")


def _judged(
    found: Mapping[str, Observations], delta: float, uniform: bool, compute: Compute
) -> dict[str, Band]:
    """Complete and judge every segment; all bounds share the chance of error."""
    from dataclasses import replace

    from malocate import LowRankLeastSquares, error_band

    bands = {}
    with progress(FITS * len(found), "fits") as show:
        for place, (name, answers) in enumerate(found.items()):
            settings: dict[str, Any] = {"delta": delta / len(found), "segment": name}
            counting = _counted(show, FITS * place, compute)
            settings |= {"map": counting, "check_uniform": uniform}
            try:
                band = error_band(LowRankLeastSquares(), answers, **settings)
            except MalocateError as problem:
                words = f"Segment {name!r}: {problem}" if name else str(problem)
                raise type(problem)(words) from None
            if not uniform:
                reason = f"{band.reason} {reading.UNKNOWN}".strip()
                band = replace(band, label="approximate", reason=reason)
            bands[name] = replace(band, certainty=1 - delta)
    return bands


def _counted(show: Show, before: int, compute: Compute) -> Callable[..., Iterable[Done]]:
    """Give a map that shows how many fits are done."""

    def mapped(fit: Callable[[Job], Done], jobs: list[Job]) -> Iterable[Done]:
        show("Completing", before)
        with closing(compute.each(fit, jobs)) as fits:
            for count, done in enumerate(fits, start=1):
                show("Completing", before + count)
                yield done

    return mapped


def _table(found: Mapping[str, Observations], bands: Mapping[str, Band]) -> Table:
    """Give the segments as a table."""
    made = Table()
    if any(found):
        made.add_column("segment", overflow="fold")
    for name in ("size", "answers", "seen", "asked again", "RMSE", "at most"):
        made.add_column(name, justify="right", no_wrap=True)
    for name, answers in found.items():
        band = bands[name]
        mark = "≈ " if band.label == "approximate" else ""
        upper = f"{mark}{band.rmse_upper:.3f}" if math.isfinite(band.upper) else "–"
        cells = [
            f"{answers.shape[0]:,} × {answers.shape[1]:,}",
            f"{len(answers):,}",
            f"{100 * answers.share_seen:.0f} %",
            counted(band.replicated, "cell"),
            f"{band.rmse:.3f}" if math.isfinite(band.estimate) else "–",
            upper,
        ]
        made.add_row(*([Text(name)] if any(found) else []), *cells)
    return made


def _left_out(answers: Answers, found: Mapping[str, Observations]) -> list[str]:
    """Say how many rows and columns of the file have no answer at all, and so no place."""
    told = []
    for side, name in enumerate(("row", "column")):
        named = len(answers.frame[["segment", name]].drop_duplicates())
        if count := named - sum(each.shape[side] for each in found.values()):
            told.append(counted(count, name))
    return [f"Left out, for want of any answer: {' and '.join(told)}."] if told else []


def _meaning(bands: Mapping[str, Band], delta: float, uniform: bool) -> list[str]:
    """Say what the figures are."""
    cells = "of the completed cells" if uniform else "judged at cells that a fit had not seen"
    words = [f"RMSE: root mean squared error {cells}; at most: its bound."]
    if not all(band.replicated for band in bands.values()):
        words.append("Where no cell was asked again, both include the noise of an answer.")
    labels = {band.label for band in bands.values() if math.isfinite(band.upper)}
    together = "all bounds hold together" if len(bands) > 1 else "the bound holds"
    if "certified" in labels:
        words.append(f"Certified: with certainty {1 - delta:g} {together}.")
    if "approximate" in labels:
        words.append(f"≈: approximate; meant for certainty {1 - delta:g}, and nothing is proven.")
    return words


def _resting(bands: Mapping[str, Band]) -> list[str]:
    """Say what the bounds rest on; what is alike is said once."""
    told: dict[str, list[str]] = {}
    for name, band in bands.items():
        told.setdefault(f"Given {band.given}. {band.reason}".strip(), []).append(name)
    whole = len(told) == 1
    return [words if whole else f"{', '.join(names)}: {words}" for words, names in told.items()]


def _files(out: Path | None, plot: Path | None) -> list[str]:
    told = [f"Completed cells: {out}"] if out is not None else []
    return told + ([f"Picture: {plot}"] if plot is not None else [])


def _write(
    found: Mapping[str, Observations], bands: Mapping[str, Band], out: Path, wide: bool
) -> None:
    import pandas as pd

    from malocate.files import write_table

    make = _wide if wide else _long
    frames = [make(name, answers, bands[name]) for name, answers in found.items()]
    frame = pd.concat(frames, ignore_index=True)
    write_table(frame if any(found) else frame.drop(columns="segment"), out)


def _long(name: str, answers: Observations, band: Band) -> pd.DataFrame:
    """Give one line per cell: its labels, its completed value and how many answers it has."""
    frame = band.completion.to_frame()
    counts = np.zeros(len(frame), dtype=np.int64)
    counts[answers.entries.cells] = answers.entries.visits
    frame.insert(0, "segment", name)
    return frame.assign(value=_rounded(frame["value"].to_numpy()), answers=counts)


def _rounded(values: Floats) -> Floats:
    """Give numbers in the digits that people read: six of the largest of them."""
    largest = float(np.abs(values).max(initial=0.0))
    return values.round(5 - math.floor(math.log10(largest))) if largest else values


def _wide(name: str, answers: Observations, band: Band) -> pd.DataFrame:
    """Give one line per row, one column per column."""
    import pandas as pd

    rows, columns = answers.labels or tuple(range(side) for side in answers.shape)
    frame = pd.DataFrame(_rounded(band.completion.dense()), columns=[str(each) for each in columns])
    if clash := {"segment", "row"} & set(frame.columns):
        raise InvalidInput(f"A column is called {min(clash)!r}; leave out --wide, or rename it.")
    frame.insert(0, "row", list(rows))
    frame.insert(0, "segment", name)
    return frame


def _plain(
    found: Mapping[str, Observations], bands: Mapping[str, Band], delta: float
) -> dict[str, Any]:
    names = ("estimate", "se", "rmse", "upper", "rmse_upper", "label", "given", "reason", "noise")
    segments = [
        {"segment": name, "shape": list(answers.shape), "answers": len(answers)}
        | {"cells_seen": answers.n_seen, "replicated": bands[name].replicated}
        | {key: getattr(bands[name], key) for key in names}
        for name, answers in found.items()
    ]
    return {"certainty": 1 - delta, "segments": segments}
