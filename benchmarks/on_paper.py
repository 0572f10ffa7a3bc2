"""What 10⁵ segments and 10⁹ answers would take, from the constants that were measured.

python benchmarks/on_paper.py     # prints the table of docs/scale.md

Nothing of it was run at that size: each line is a measured constant times how often it is needed.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median

import tables

from malocate import Growing, Segment

SEGMENTS, ANSWERS, SIDE, AT_ONCE = 10**5, 10**9, 100, 1_000


def looks(ratio: float) -> int:
    """Count a segment's looks until it has its share of the answers."""
    grid = Growing(ratio).grid(Segment("one of them", (SIDE, SIDE)), 0.05, SEGMENTS)
    number = 1
    while grid.size(number + 1) <= ANSWERS // SEGMENTS:
        number += 1
    return number


def summary(folder: Path) -> list[tables.Row]:
    """Give what each part would take, the constant it comes from, and what to change."""
    campaign = _values(folder, "campaign.csv", "figure", "database")
    many = tables.read(folder / "many_segments.csv")
    if not campaign or not many:
        return []
    full = max(many, key=lambda row: float(row["segments"]))
    one_look = float(full["cpu"]) / float(full["looks"])
    a_segment = float(full["planning_cpu"]) / float(full["rounds"]) / float(full["segments"])
    held = 1e6 * float(full["peak_mb"]) / float(full["segments"])
    taken = SEGMENTS * looks(Growing().ratio)
    single = campaign["pairs per second", "postgresql"]
    batched = campaign["answers per second, told by 1,000", "postgresql"]
    checked = campaign["log rows checked per second", "postgresql"]
    size = campaign.get(("bytes an answer", "postgresql"))
    return [
        _line(
            "answers told one by one, PostgreSQL",
            f"{single:,.0f} a second",
            _time(ANSWERS / single),
            "tell in batches; a campaign for each region, on a database of its own",
        ),
        _line(
            "answers told by 1,000, PostgreSQL",
            f"{batched:,.0f} a second",
            _time(ANSWERS / batched),
            "the same, and a faster disk: a commit waits for it",
        ),
        *([] if size is None else [_on_disk(size)]),
        _line(
            f"looks, {looks(Growing().ratio)} a segment",
            f"{1_000 * one_look:,.0f} ms of a core",
            f"{_time(taken * one_look)} of one core",
            "more Dask workers; a larger `ratio` in `Growing`; `HoldOut` instead of folds",
        ),
        _line(
            "planning, one segment a round",
            f"{1e6 * a_segment:,.0f} µs a round and segment",
            _time(taken * SEGMENTS * a_segment),
            "`parallel_segments`",
        ),
        _line(
            f"planning, {AT_ONCE:,} segments a round",
            "the same",
            _time(taken * SEGMENTS * a_segment / AT_ONCE),
            "",
        ),
        _line(
            "the planner's memory",
            f"{held / 1e3:,.0f} kB a segment",
            f"{SEGMENTS * held / 1e9:,.0f} GB",
            "a campaign for each region; fewer folds, which keep a completion each",
        ),
        _line(
            "the log checked by `verify`, without the looks",
            f"{checked:,.0f} a second",
            _time(ANSWERS / checked),
            "it is read from one end to the other: a campaign for each region",
        ),
    ]


def _on_disk(size: float) -> tables.Row:
    total = f"{ANSWERS * size / 1e12:.2g} TB"
    return _line("the database on the disk", f"{size:,.0f} bytes an answer", total, "")


def _line(what: str, constant: str, total: str, change: str) -> tables.Row:
    return {"what": what, "measured": constant, "it comes to": total, "what to change": change}


def _values(folder: Path, file: str, *keys: str) -> dict[tuple[str, ...], float]:
    rows = tables.read(folder / file)
    found: dict[tuple[str, ...], list[float]] = {}
    for row in rows:
        found.setdefault(tuple(row[key] for key in keys), []).append(float(row["value"]))
    return {key: median(values) for key, values in found.items()}


def _time(seconds: float) -> str:
    for unit, size in (("days", 86_400.0), ("hours", 3_600.0), ("minutes", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.0f} {unit}"
    return f"{seconds:,.0f} seconds"


if __name__ == "__main__":
    print(tables.markdown(summary(tables.RESULTS)))
