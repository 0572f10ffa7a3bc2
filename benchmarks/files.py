"""How long a million answers take from a CSV file into a campaign, each step by itself.

python benchmarks/files.py            # half a minute
python benchmarks/files.py --quick

The file has the columns region, respondent, product and rating: 2 segments of 20,000 rows and 50
columns. It is read, its columns are understood, labels and scale are checked, and the answers are
written to SQLite, with the log, on the disk. Written to benchmarks/results/files.csv.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import tables
from campaign import fdatasync, idle

from malocate import Campaign, Design, Segment
from malocate.cli.campaign.imports import placed
from malocate.files import read_answers

TARGET = 10.0  # seconds for a million answers, from the shell
Row = dict[str, Any]


def design(rows: int, columns: int) -> Design:
    labels = [f"p{k}" for k in range(rows)], [f"item {k}" for k in range(columns)]
    segments = [Segment(name, labels=labels, scale=(1, 5)) for name in ("north", "south")]
    return Design(segments, budget=1_000_000)


def answers(count: int, rows: int, columns: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "region": np.array(["north", "south"])[rng.integers(2, size=count)],
            "respondent": [f"p{k}" for k in rng.integers(rows, size=count)],
            "product": [f"item {k}" for k in rng.integers(columns, size=count)],
            "rating": rng.integers(1, 6, size=count),
        }
    )


def steps(folder: Path, file: Path, plan: Design) -> Row:
    """Give the seconds of each step."""
    times = [time.perf_counter()]
    found = read_answers(file)
    times.append(time.perf_counter())
    frame = placed(plan, found)
    times.append(time.perf_counter())
    with Campaign.create(folder / "steps.db", plan) as campaign:
        began = time.perf_counter()
        campaign.import_answers(frame)
        written = time.perf_counter() - began
    return {"read, s": times[1] - times[0], "check, s": times[2] - times[1], "write, s": written}


def whole(folder: Path, file: Path, plan: Design) -> float:
    """Give the seconds of the command, as people run it."""
    Campaign.create(folder / "whole.db", plan).close()
    began = time.perf_counter()
    command = [sys.executable, "-m", "malocate", "import", folder / "whole.db", file]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def summary(rows: Sequence[Mapping[str, str]]) -> list[tables.Row]:
    """Give the seconds of the command, and of each step by itself."""
    names = "import, s", "read, s", "check, s", "write, s"
    return [
        {"answers": f"{int(row['answers']):,}"}
        | {name: f"{float(row[name]):.1f}" for name in names}
        | {"target": f"< {TARGET:g} s", "met": "yes" if float(row[names[0]]) < TARGET else "**no**"}
        for row in rows
    ]


def main() -> None:
    chosen = tables.arguments(__doc__)
    count, rows, columns = (20_000, 500, 20) if chosen.quick else (1_000_000, 20_000, 50)
    with tempfile.TemporaryDirectory() as made:
        folder, plan = Path(made), design(rows, columns)
        file = folder / "answers.csv"
        answers(count, rows, columns).to_csv(file, index=False)
        about = {"fdatasync, ms": fdatasync(folder), "idle before": idle()}
        row = {"answers": count, "import, s": whole(folder, file, plan)}
        row |= steps(folder, file, plan) | about
    tables.write(tables.folder(chosen.quick) / "files.csv", [row | tables.machine()])
    told = f"import of {count:,} answers: {row['import, s']:.1f} s"
    met = "met" if row["import, s"] <= TARGET else "NOT met"
    print(told if chosen.quick else f"{told}; target {TARGET:g} s {met}")


if __name__ == "__main__":
    main()
