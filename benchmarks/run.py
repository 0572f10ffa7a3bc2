"""Every benchmark, one after the other, then the summary: targets, what was measured, the picture.

python benchmarks/run.py               # about an hour
python benchmarks/run.py --quick       # proves that everything runs, in a few minutes
python benchmarks/run.py --summary     # only the summary, from the rows that are there

Rows go to benchmarks/results/*.csv; the summary is benchmarks/results/README.md.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import accuracy
import big_matrix
import campaign
import dashboard
import files
import matplotlib as mpl
import observations_scale
import pages
import server
import tables

Row = dict[str, Any]

JOBS = (
    ("peers.py",),
    *(("soft_impute.py", "--part", part) for part in ("small", "sharp", "medium", "large")),
    *(("soft_impute.py", "--part", part) for part in ("memory", "threads", "warm")),
    ("square_root_lasso.py",),
    ("square_root_lasso_rules.py",),
    ("accuracy.py",),
    ("projected.py",),
    ("online.py",),
    ("observations_scale.py",),
    ("big_matrix.py",),
    ("campaign.py",),
    ("files.py",),
    ("planner.py",),
    ("parallel_segments.py",),
    ("many_segments.py",),
    ("many_segments_live.py",),
    ("real_data.py",),
    ("server.py",),
    ("dashboard.py",),
    ("dask_workers.py",),
)
CONTESTS = ("small", "sharp", "medium", "large")
CAPTION = """Median of the runs, least and most in brackets. Our rank is automatic; cmfrec is told
the rank and the number of iterations that it needs."""
REST = """Warm refits are shown to an objective, as the peers are, and to a certified gap; that asks
for an objective thousands of times as close, and its last sweeps are the same from any start."""
LIVE = """Each commit is on the disk before it is acknowledged, so that the rates are mostly those
of the disk and of whoever else uses the machine: see both beside them."""
HIGHEST = 5.0  # relative gap at the top of the picture
LABELS = {  # the gap at which a line is named, on which side of it, and how far off
    "malocate": (1e-5, "right", (-5, -3)),
    "fancyimpute": (0.08, "left", (5, 3)),
    "cmfrec": (1e-3, "right", (-6, -3)),
}
COLOURS = {"malocate": "#0072B2", "fancyimpute": "#D55E00", "cmfrec": "#009E73"}


def run(job: tuple[str, ...], quick: bool) -> None:
    began = time.monotonic()
    extra = ["--quick"] if quick and job[0] != "peers.py" else []
    print(f"== {' '.join(job)}", flush=True)
    subprocess.run([sys.executable, tables.HERE / job[0], *job[1:], *extra], check=True)
    print(f"== {' '.join(job)}: {time.monotonic() - began:.0f} s", flush=True)


def contest_rows(folder: Path) -> list[Row]:
    """A line for each problem and peer: how many times longer the peer takes."""
    lines: list[Row] = []
    for part in CONTESTS:
        rows = tables.read(folder / f"soft_impute_{part}.csv")
        for problem, peer in dict.fromkeys((row["problem"], row["peer"]) for row in rows):
            mine = [row for row in rows if (row["problem"], row["peer"]) == (problem, peer)]
            ratios = [float(row["ratio"]) for row in mine]
            target = contest_target(problem, peer, part)
            stopped = "" if all(row["reached"] == "True" for row in mine) else " at least (stopped)"
            lines.append(
                {
                    "problem": problem,
                    "to": mine[0]["goal"],
                    "peer": peer,
                    "peer takes": tables.spread(ratios) + stopped,
                    "target": "" if target is None else f"≥ {target:g}×",
                    "met": "" if target is None else verdict(tables.median(ratios) >= target),
                    "runs": len(mine),
                }
            )
    return lines


def contest_target(problem: str, peer: str, part: str) -> float | None:
    if peer == "cmfrec":
        return 1.0 if part == "large" else 2.0
    if peer == "fancyimpute" and part in ("small", "sharp"):
        return 50.0 if "20%" in problem else 8.0
    return None


def other_rows(folder: Path) -> list[Row]:
    """Threads, memory, warm starts and the square-root lasso."""
    lines: list[Row] = []

    def note(what: str, problem: str, text: str, target: str, met: bool) -> None:
        cells = {"what": what, "problem": problem, "measured": text}
        lines.append(cells | {"target": target, "met": verdict(met)})

    for problem, rows in grouped(tables.read(folder / "soft_impute_threads.csv")).items():
        ratios = [float(row["ratio"]) for row in rows]
        good = tables.median(ratios) >= 1.6
        machine = tables.median([float(row["ceiling"]) for row in rows])
        text = f"{tables.spread(ratios)}; two processes side by side: {machine:.2f}×"
        note("two threads over one", problem, text, "≥ 1.6×", good)
    for row in tables.read(folder / "soft_impute_memory.csv"):
        peak = float(row["peak_mb"])
        note("peak memory", row["problem"], f"{peak:.0f} MB", "< 1,000 MB", peak < 1000)
    warm = tables.read(folder / "soft_impute_warm.csv")
    for until, goal in (("objective", "an objective gap of"), ("certified", "a certified gap of")):
        for problem, rows in grouped([r for r in warm if r["until"] == until]).items():
            ratios = [float(row["ratio"]) for row in rows]
            what = f"warm refit after 1 % more, to {goal} 1e-4"
            good = tables.median(ratios) >= 3
            note(what, problem, tables.spread(ratios), "≥ 3×", good)
    root = tables.read(folder / "square_root_lasso.csv")
    above = [float(row["above_clarabel"]) for row in root if row["above_clarabel"]]
    if above:
        worst = max(abs(each) for each in above)
        text = f"within {worst:.1e} on {len(above)} problems"
        note("square-root lasso's objective", "against Clarabel", text, "1e-6", worst <= 1e-6)
    seconds = [float(row["seconds"]) for row in root if row["part"].startswith("200")]
    if seconds:
        text = tables.spread(seconds, " s")
        note("square-root lasso to gap 1e-3", "200 × 200", text, "< 5 s", max(seconds) < 5)
    for row in tables.read(folder / "observations_scale.csv"):
        if row["stage"] == observations_scale.FITTED and int(row["answers"]) == 10**8:
            peak, what = float(row["peak_gb"]), "10⁸ answers held, grouped and fitted: peak memory"
            note(what, row["shape"], f"{peak:.1f} GB", "< 24 GB", peak < 24)
    return lines


def big_rows(folder: Path) -> list[Row]:
    """The memory of one big matrix, completed from the disk."""
    names = "what", "problem", "measured", "target", "met"
    found = big_matrix.verdicts(tables.read(folder / "big_matrix.csv"))
    return [dict(zip(names, (*each[:-1], verdict(each[-1])), strict=True)) for each in found]


def grouped(rows: list[dict[str, str]]) -> dict[str, list[dict[str, str]]]:
    groups: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        groups.setdefault(row["problem"], []).append(row)
    return groups


def verdict(met: bool) -> str:
    return "yes" if met else "**no**"


def summarise(folder: Path) -> None:
    about = "; ".join(
        ", ".join(f"{key} {value}" for key, value in each.items()) for each in measured_on(folder)
    )
    parts = [
        "# Results",
        f"Made by `python benchmarks/run.py`; rows name their machine: {about}.",
        "## SoftImpute and its peers, processor time to the same objective, one thread",
        CAPTION,
        tables.markdown(contest_rows(folder)),
        *(["![time against objective gap](soft_impute.svg)"] if contest_rows(folder) else []),
        "## LowRankLeastSquares: mean squared error over the yardstick's",
        tables.markdown(accuracy.summary(tables.read(folder / "accuracy.csv"))),
        "## The rest",
        REST,
        tables.markdown(other_rows(folder) + big_rows(folder)),
        "## Many answers in one process, one thread",
        tables.markdown(observations_scale.summary(tables.read(folder / "observations_scale.csv"))),
        "## A live campaign: 32 processes, batches, a million answers",
        LIVE,
        tables.markdown(campaign.summary(tables.read(folder / "campaign.csv"))),
        "## The server: 32 clients ask and tell over HTTP, while a planner fits",
        tables.markdown(server.summary(tables.read(folder / "server.csv"))),
        "## The pages, where there is much to show",
        tables.markdown(dashboard.summary(tables.read(folder / "dashboard.csv"))),
        "## A million answers from a CSV file into a campaign",
        tables.markdown(files.summary(tables.read(folder / "files.csv"))),
        *pages.results(folder),
    ]
    (folder / "README.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    draw(folder)
    if folder == tables.RESULTS:
        refresh_page(folder)
    print(f"wrote {folder / 'README.md'}", flush=True)


def measured_on(folder: Path) -> list[dict[str, str]]:
    """The machines, versions and days that the rows name; not those of the summary."""
    here = tables.machine()
    named = [
        {key: row[key] for key in here}
        for path in sorted(folder.glob("*.csv"))
        for row in tables.read(path)
        if here.keys() <= row.keys()
    ]
    return [dict(each) for each in dict.fromkeys(tuple(row.items()) for row in named)] or [here]


def refresh_page(folder: Path) -> None:
    """Write the measured tables into the page that helps to choose, and into the estimators'."""
    days = sorted({each["date"] for each in measured_on(folder)})
    chosen = (
        f"From the rows in `benchmarks/results`, {' and '.join(days)}.",
        "LowRankLeastSquares: mean squared error over the yardstick's, and seconds on one thread.",
        tables.markdown(accuracy.summary(tables.read(folder / "accuracy.csv"))),
        "SoftImpute: how many times longer the peers take to the same objective.",
        tables.markdown(contest_rows(folder)),
        f"And the rest. {REST}",
        tables.markdown(other_rows(folder) + big_rows(folder)),
    )
    pages.refresh("choose-an-estimator.md", chosen)
    pages.refresh_estimators(folder)


def draw(folder: Path) -> None:
    """Time against objective gap: a panel for each problem, a line for each solver."""
    mpl.use("svg")
    from matplotlib import pyplot as plt

    files = [folder / f"soft_impute_{part}_paths.csv" for part in CONTESTS]
    groups = [group for file in files for group in grouped(tables.read(file)).items()]
    if not groups:
        return
    columns = min(4, len(groups))
    lines = -(-len(groups) // columns)
    figure, axes = plt.subplots(
        lines, columns, figsize=(3.4 * columns, 3.1 * lines), squeeze=False, layout="constrained"
    )
    for axis in axes.flat[len(groups) :]:
        axis.remove()
    for axis, (problem, mine) in zip(axes.flat, groups, strict=False):
        draw_panel(axis, problem, mine)
    figure.supxlabel("processor seconds, one thread", fontsize=10)
    figure.supylabel("objective above the optimum, relative", fontsize=10)
    figure.savefig(folder / "soft_impute.svg", metadata={"Date": None})
    figure.savefig(tables.QUICK_RESULTS / "soft_impute.png", dpi=110)


def draw_panel(axis: Any, problem: str, rows: list[dict[str, str]]) -> None:
    """Each solver's way down, its name at the end of its line."""
    for solver, colour in COLOURS.items():
        mine = [(float(r["cpu"]), float(r["gap"])) for r in rows if r["solver"] == solver]
        shown = sorted(point for point in mine if 0 < point[1] < HIGHEST)
        if not shown:
            continue
        axis.loglog(*zip(*shown, strict=True), color=colour, marker="o", markersize=2.5, lw=1.4)
        level, side, shift = LABELS[solver]
        place = min(shown, key=lambda point: abs(math.log(point[1] / level)))
        if side == "left" and place == shown[-1]:  # there may be no room behind it
            side, shift = "right", (0, 7)
        axis.annotate(
            solver, place, shift, textcoords="offset points", ha=side, color=colour, fontsize=8
        )
    times = [float(row["cpu"]) for row in rows]
    soonest = math.log10(min(times)) - 0.2  # room for a name before the first point
    axis.set_xlim(10 ** math.floor(soonest), 10 ** math.ceil(math.log10(max(times))))
    axis.xaxis.set_minor_formatter("")
    axis.yaxis.set_minor_formatter("")
    axis.set_title(problem.replace(", λ", "\nλ"), fontsize=9)
    axis.set_ylim(5e-7, HIGHEST)
    axis.grid(color="0.92")
    axis.spines[["top", "right"]].set_visible(False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small problems, one seed")
    parser.add_argument("--summary", action="store_true", help="only the summary")
    chosen = parser.parse_args()
    folder = tables.folder(chosen.quick)
    tables.folder(quick=True)
    if not chosen.summary:
        for job in JOBS:
            run(job, chosen.quick)
        tables.write(folder / "machine.csv", [tables.machine()])
    summarise(folder)


if __name__ == "__main__":
    main()
