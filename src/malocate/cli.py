"""The command line: parse, call, render."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from typer.core import TyperGroup

import malocate
from malocate.errors import InvalidInput, MalocateError

if TYPE_CHECKING:
    from malocate.estimators.base import Completion
    from malocate.problem import Observations
    from malocate.sources import Synthetic

__all__ = ["app"]

DEMO_SHAPE, DEMO_ANSWERS = (150, 100), 4_500


class OneLineErrors(TyperGroup):
    """A group of commands that ends an error of ours in one line and exit code 2."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except MalocateError as error:
            typer.echo(f"Error: {error}", err=True)
            raise typer.Exit(2) from error


app = typer.Typer(
    cls=OneLineErrors,
    help="Complete matrices from few, noisy and repeated answers.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"malocate {malocate.__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None: ...


@app.command(epilog="Example:  malocate demo --seed 7 --output seven.png")
def demo(
    output: Annotated[Path, typer.Option(help="The picture: .png, .svg or .pdf.")] = Path(
        "demo.png"
    ),
    seed: Annotated[int, typer.Option(min=0, help="Each seed makes another matrix.")] = 0,
    rank: Annotated[int, typer.Option(help="Rank of the preferences behind the ratings.")] = 3,
) -> None:
    """Complete a matrix of ratings from a few answers and compare it with the truth.

    The ratings are made up, so the error of each completion is known. The naive comparison is
    the mean of each column; SoftImpute certifies how near it came to its optimum;
    LowRankLeastSquares finds rank and ridge by itself, and the picture shows its completion.
    The band below the table bounds its error from the answers alone, without the truth.
    """
    from malocate.plots import completion_picture

    _check_output(output)
    source = malocate.Synthetic.ratings(shape=DEMO_SHAPE, rank=rank, rng=seed)
    answers = source.observe(DEMO_ANSWERS)
    console = Console()
    fits = _fit_all(answers, console)
    console.print(_results(fits, source, answers))
    console.print(_judged(answers, console), highlight=False)
    completion_picture(source.truth, answers, fits[-1].completion).savefig(output, dpi=150)
    console.print(f"Picture: {output}", soft_wrap=True, highlight=False)


class _Fit(NamedTuple):
    name: str
    completion: Completion
    seconds: float


def _column_means(observations: Observations) -> Completion:
    """Give every cell its column's mean answer, or the mean of all where there is none."""
    import numpy as np

    from malocate.estimators.centring import Centre

    cols, n_cols = observations.cols, observations.shape[1]
    sums, counts = (np.bincount(cols, w, n_cols) for w in (observations.values, None))
    means = np.where(counts, sums / np.maximum(counts, 1), observations.values.mean())
    left, right = (np.zeros((side, 0)) for side in observations.shape)
    return malocate.Completion(left, right, Centre(cols=means), malocate.Status.CLOSED_FORM)


def _contestants() -> dict[str, Callable[[Observations], Completion]]:
    return {
        "column means": _column_means,
        "SoftImpute": malocate.SoftImpute(penalty="universal", centre="mean").fit,
        "LowRankLeastSquares": malocate.LowRankLeastSquares().fit,
    }


def _busy(console: Console) -> Progress:
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    return Progress(*columns, console=console, transient=True)


def _judged(answers: Observations, console: Console) -> str:
    """Say how wrong the completion may be, as one who does not know the truth can."""
    with _busy(console) as progress:
        progress.add_task("Judging LowRankLeastSquares by answers that it has not seen")
        return str(malocate.error_band(malocate.LowRankLeastSquares(), answers))


def _fit_all(answers: Observations, console: Console) -> list[_Fit]:
    with _busy(console) as progress:
        step = progress.add_task("Compiling the kernels (the first time takes longest)")
        warm_up = malocate.Synthetic.ratings(shape=(12, 10), rank=1).observe(100)
        for fit in _contestants().values():
            fit(warm_up)
        fits = []
        for name, fit in _contestants().items():
            progress.update(step, description=f"Fitting {name}")
            begun = time.perf_counter()
            fits.append(_Fit(name, fit(answers), time.perf_counter() - begun))
    return fits


def _results(fits: list[_Fit], source: Synthetic, answers: Observations) -> Table:
    rows, cols = source.shape
    seen = 100 * len(answers.entries) / (rows * cols)
    table = Table(
        title=f"{rows} × {cols} ratings; {len(answers):,} answers show {seen:.0f} % of the cells",
        caption="RMSE: over all cells, against the true mean answer\n"
        "gap: relative duality gap, certified; – where the problem has none",
        caption_justify="left",
    )
    table.add_column("estimator")
    for name in ("rank", "RMSE", "seconds", "gap"):
        table.add_column(name, justify="right")
    table.add_column("how it ended")
    for name, completion, seconds in fits:
        rmse = math.sqrt(((completion.dense() - source.truth) ** 2).mean())
        gap = "–" if math.isnan(completion.gap) else f"{completion.gap:.0e}"
        ended = completion.status.value
        table.add_row(name, str(completion.rank), f"{rmse:.3f}", f"{seconds:.2f}", gap, ended)
    return table


def _check_output(output: Path) -> None:
    if not output.parent.is_dir():
        raise InvalidInput(f"The folder of --output {output} does not exist; make it first.")
    if output.suffix.lower() not in {".pdf", ".png", ".svg"}:
        raise InvalidInput(f"--output {output} must end in .pdf, .png or .svg.")
    try:
        with output.open("ab"):
            pass
    except OSError as problem:
        raise InvalidInput(
            f"--output {output} cannot be written: {problem.strerror}; choose another place."
        ) from None
