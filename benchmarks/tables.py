"""Where results go and how they read: CSV tables, the machine, medians with their range."""

from __future__ import annotations

import argparse
import csv
import datetime
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
QUICK_RESULTS = HERE / ".scratch" / "results"

Row = Mapping[str, Any]


def folder(quick: bool) -> Path:
    """Quick runs prove that everything works; they never touch the committed results."""
    chosen = QUICK_RESULTS if quick else RESULTS
    chosen.mkdir(parents=True, exist_ok=True)
    return chosen


def arguments(doc: str) -> argparse.Namespace:
    """What most benchmarks can be told: `--quick` and `--anew`."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small problems, one seed")
    parser.add_argument("--anew", action="store_true", help="forget earlier rows")
    return parser.parse_args()


def fill(
    path: Path, jobs: Iterable[tuple[Row, Callable[[], Row]]], anew: bool
) -> list[dict[str, str]]:
    """Run each job whose key has no row yet; a row is on disk before the next job begins."""
    rows = [] if anew else read(path)
    about = machine()
    for key, job in jobs:
        if not matching(rows, key):
            made = {**key, **job()}
            print("  ".join(str(_brief(value)) for value in made.values()), flush=True)
            rows.append({name: str(_brief(value)) for name, value in {**made, **about}.items()})
            _save(path, rows)
    return read(path)


def matching(rows: Sequence[dict[str, str]], key: Row) -> list[dict[str, str]]:
    """The rows that say what the key says, as they are written."""
    named = {name: str(_brief(value)) for name, value in key.items()}
    return [row for row in rows if named.items() <= row.items()]


def write(path: Path, rows: Sequence[Row]) -> None:
    _save(path, rows)
    shown = path.relative_to(HERE.parent) if path.is_relative_to(HERE.parent) else path
    print(f"wrote {shown} ({len(rows)} rows)", flush=True)


def _save(path: Path, rows: Sequence[Row]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: _brief(value) for key, value in row.items()} for row in rows)


def read(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def _brief(value: object) -> object:
    return f"{value:.6g}" if isinstance(value, float) else value


def spread(values: Sequence[float], unit: str = "×") -> str:
    """The median with its range: `61× (55–70)`."""
    low, middle, high = (number(each) for each in (min(values), median(values), max(values)))
    return f"{middle}{unit} ({low}–{high})"


def number(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def markdown(rows: Sequence[Row]) -> str:
    if not rows:
        return "Not measured yet: run `make bench`."
    names = list(rows[0])
    lines = [" | ".join(names), " | ".join("---" for _ in names)]
    lines += [" | ".join(str(row[name]) for name in names) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def machine() -> dict[str, str]:
    """The processor's model, the versions that matter and the day."""
    packages = ("malocate", "numpy", "scipy", "numba", "scikit-learn")
    return {
        "processor": f"{_processor()}, {_cores()} cores",
        "python": platform.python_version(),
        **{package: version(package) for package in packages},
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
    }


def _processor() -> str:
    listing = Path("/proc/cpuinfo")
    if listing.exists():
        for line in listing.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _cores() -> int:
    import os

    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
