"""How long a million answers take from a CSV file into a campaign, each step by itself.

python benchmarks/files.py            # two minutes
python benchmarks/files.py --quick

The file has the columns region, respondent, product and rating: 2 segments of 20,000 rows and 50
columns. It is read, its columns are understood, labels and scale are checked, and the answers are
written to SQLite, with the log, on the disk. Five turns, of which the median counts; all are
written to benchmarks/results/files.csv.
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
TURNS = 5
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


def steps(file: Path, plan: Design) -> Row:
    """Give the seconds of each step."""
    times = [time.perf_counter()]
    found = read_answers(file)
    times.append(time.perf_counter())
    frame = placed(plan, found)
    times.append(time.perf_counter())
    with (
        tempfile.TemporaryDirectory() as folder,
        Campaign.create(Path(folder) / "steps.db", plan) as campaign,
    ):
        began = time.perf_counter()
        campaign.import_answers(frame)
        written = time.perf_counter() - began
    return {"read, s": times[1] - times[0], "check, s": times[2] - times[1], "write, s": written}


def whole(file: Path, plan: Design) -> float:
    """Give the seconds of the command, as people run it."""
    with tempfile.TemporaryDirectory() as folder:
        database = Path(folder) / "whole.db"
        Campaign.create(database, plan).close()
        began = time.perf_counter()
        command = [sys.executable, "-m", "malocate", "import", database, file]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - began


def summary(rows: Sequence[Mapping[str, str]]) -> list[tables.Row]:
    """Give the seconds of the command, and of each step by itself: medians of the turns."""
    found = [float(row["import, s"]) for row in rows]
    told = {"answers": f"{int(rows[0]['answers']):,}", "turns": str(len(rows))}
    told |= {"import, s": f"{np.median(found):.1f} ({min(found):.1f} to {max(found):.1f})"}
    for name in ("read, s", "check, s", "write, s"):
        told[name] = f"{np.median([float(row[name]) for row in rows]):.1f}"
    met = "yes" if np.median(found) < TARGET else "**no**"
    return [told | {"target": f"< {TARGET:g} s", "met": met}]


def main() -> None:
    chosen = tables.arguments(__doc__)
    count, rows, columns = (20_000, 500, 20) if chosen.quick else (1_000_000, 20_000, 50)
    found = []
    with tempfile.TemporaryDirectory() as made:
        plan, file = design(rows, columns), Path(made) / "answers.csv"
        answers(count, rows, columns).to_csv(file, index=False)
        for turn in range(1 if chosen.quick else TURNS):
            about = {"fdatasync, ms": fdatasync(Path(made)), "idle before": idle()}
            row = {"turn": turn, "answers": count, "import, s": whole(file, plan)}
            found.append(row | steps(file, plan) | about | tables.machine())
            print(f"import of {count:,} answers: {row['import, s']:.1f} s", flush=True)
    tables.write(tables.folder(chosen.quick) / "files.csv", found)


if __name__ == "__main__":
    main()
