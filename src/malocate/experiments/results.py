"""What a reproduction leaves behind: rows, figure and verdicts, each in a file of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from malocate.experiments.beyond import beyond
from malocate.experiments.claims import Claim, claims
from malocate.experiments.reproduce import COLUMNS

if TYPE_CHECKING:
    import pandas


def write(number: int, rows: pandas.DataFrame, folder: Path) -> list[Claim]:
    """Write an experiment's rows, caps, figure and claims; give the claims."""
    import pandas

    from malocate.plots import experiment_picture

    stem = f"experiment-{number}"
    rows[COLUMNS].to_csv(folder / f"{stem}.csv", index=False, float_format="%.8g")
    capped = rows[rows["capped"]].groupby(["recipe", "run", "strategy"], as_index=False)
    capped["spent"].min().to_csv(folder / f"{stem}-caps.csv", index=False)
    found = [*claims(rows), *beyond(rows)]
    table = pandas.DataFrame([vars(claim) for claim in found])
    table.to_csv(folder / f"{stem}-claims.csv", index=False, float_format="%.5g")
    figure = experiment_picture(rows, f"Experiment {number}")
    for suffix in ("png", "svg"):
        figure.savefig(folder / f"{stem}.{suffix}", dpi=150)
    return found
