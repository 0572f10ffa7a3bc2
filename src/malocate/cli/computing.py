"""Where commands do their fits: on the cores of this machine, or on a Dask cluster."""

from __future__ import annotations

from typing import Annotated

import typer

from malocate.compute import Compute

Jobs = Annotated[
    int | None,
    typer.Option(min=1, help="How many fits or runs at a time; by default one on each core."),
]
Dask = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="A Dask scheduler whose workers do it instead, such as tcp://10.0.0.7:8786.",
    ),
]


def computing(
    jobs: int | None, dask: str | None, usual: Compute | None = None, *, at_once: bool = True
) -> Compute:
    """Give where the work is done: as the options say, or else as usual, or on every core.

    A cluster is asked at once how many workers it has, so that a wrong address is told at once.
    """
    if jobs is None and dask is None:
        return usual if usual not in (None, Compute()) else Compute(jobs=-1)
    made = Compute(jobs=jobs, dask=dask)
    if dask is not None and at_once:
        _ = made.workers
    return made
