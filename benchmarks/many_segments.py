"""Thousands of segments: time, memory and the share of planning, by segments and by answers.

python benchmarks/many_segments.py            # every size in a process of its own; some 15 minutes
python benchmarks/many_segments.py --quick

Campaigns of segments of 100 × 100, ranks 1 to 5, simulated with `Compute(jobs=2)`. A fortieth of
the segments is asked in each round. The clock has four parts: fits; judging, which is the rest of
a look; answering, which a live campaign would wait for; and planning, which is everything else:
standings, the strategy, records, the frame of the run.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import tables
from threadpoolctl import threadpool_limits

from malocate import (
    Completion,
    Design,
    Estimator,
    Growing,
    HoldOut,
    MALocate,
    Observations,
    SoftImpute,
    Synthetic,
    simulate,
)
from malocate.compute import Compute
from malocate.experiments import simulation
from malocate.experiments.simulation import Panel

SIDE, JOBS, SHARE = 100, 2, 40
BY_SEGMENTS = tuple((segments, 5_000) for segments in (125, 250, 500, 1_000, 2_000))
BY_ANSWERS = tuple((250, answers) for answers in (2_500, 5_000, 10_000, 20_000))
QUICK = ((20, 1_500), (40, 1_500), (40, 3_000))
FULL = (2_000, 10_000_000)
SAMPLE = 25  # looks that are taken again, one by one, to tell fits from judging
FIGURE = tables.HERE.parent / "docs" / "figures" / "many-segments.svg"


@dataclass
class Clock:
    """Seconds by what they were spent on, and processor seconds of this process."""

    seconds: dict[str, float] = field(default_factory=dict)
    cpu: dict[str, float] = field(default_factory=dict)

    def timed(self, name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        """Give the same function, on the clock."""

        def run(*given: Any, **named: Any) -> Any:
            begun, cpu = time.perf_counter(), time.process_time()
            try:
                return work(*given, **named)
            finally:
                self._add(name, time.perf_counter() - begun, time.process_time() - cpu)

        return run

    def _add(self, name: str, seconds: float, cpu: float) -> None:
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds
        self.cpu[name] = self.cpu.get(name, 0.0) + cpu


@dataclass(frozen=True)
class Watched:
    """An estimator whose fits are on a clock; in this process alone."""

    estimator: Estimator
    clock: Clock

    def fit(self, observations: Observations, *, start: Completion | None = None) -> Completion:
        done: Completion = self.clock.timed("fits", self.estimator.fit)(observations, start=start)
        return done


def design_of(
    segments: int, answers: int, estimator: Estimator, jobs: int = JOBS
) -> tuple[Design, list[Synthetic]]:
    """Give a design of so many segments with so many answers each, and who answers."""
    shape = SIDE, SIDE
    sources = [
        Synthetic.low_rank(shape, 1 + k % 5, noise=0.5, rng=720_000 + k) for k in range(segments)
    ]
    design = Design(
        [source.segment(f"s{place:05}") for place, source in enumerate(sources)],
        segments * answers,
        estimator=estimator,
        validation=HoldOut(0.2),
        schedule=Growing(2.0),
        strategy=MALocate(parallel_segments=max(1, segments // SHARE)),
        compute=Compute(jobs=jobs),
    )
    return design, sources


def measure(segments: int, answers: int) -> dict[str, float]:
    """Run one campaign by the clock."""
    importlib.import_module("pandas")  # which takes a second the first time
    Compute(jobs=JOBS).map(_warm, range(2 * JOBS))
    clock, begun, cpu, workers = Clock(), time.perf_counter(), time.process_time(), workers_cpu()
    design, sources = design_of(segments, answers, SoftImpute())
    with ExitStack() as stack:
        for thing, name, part in (
            (simulation, "close", "looks"),
            (Panel, "ask", "answering"),
            (Panel, "error", "answering"),
        ):
            watched = clock.timed(part, getattr(thing, name))
            stack.enter_context(patch.object(thing, name, watched))
        stack.enter_context(threadpool_limits(1))
        run = simulate(design, sources, progress=False)
    frame = run.frame()
    seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
    cpu_of_all = cpu + workers_cpu() - workers
    looks = sum(len(record.changes) for record in run.records)
    judging = clock.seconds["looks"] * judging_share(answers)
    return {
        "seconds": seconds,
        "fits": clock.seconds["looks"] - judging,
        "judging": judging,
        "answering": clock.seconds["answering"],
        "planning": seconds - clock.seconds["looks"] - clock.seconds["answering"],
        "cpu": cpu_of_all,
        "planning_cpu": cpu - clock.cpu["looks"] - clock.cpu["answering"],
        "rounds": len(frame),
        "looks": looks,
        "peak_mb": peak_mb(),
        "loss": run.records[-1].losses["loss"],
    }


def _warm(number: int) -> float:
    """Have a worker ready before the clock runs."""
    source = Synthetic.low_rank((SIDE, SIDE), 2, rng=number)
    return float(SoftImpute().fit(source.observe(2_000, rng=number)).dense().mean())


def judging_share(answers: int) -> float:
    """Give the share of a look that is no fit, from looks taken one after the other."""
    clock = Clock()
    design, sources = design_of(SAMPLE, answers, Watched(SoftImpute(), clock), jobs=1)
    watched = patch.object(simulation, "close", clock.timed("looks", simulation.close))
    with watched, threadpool_limits(1):
        simulate(design, sources, progress=False)
    return 1 - clock.seconds["fits"] / clock.seconds["looks"]


def peak_mb() -> float:
    """Give the most memory that this process and its workers have held, added up."""
    return sum(_held(process) for process in (Path("/proc/self"), *_workers())) / 1e3


def workers_cpu() -> float:
    """Give the processor seconds that the workers have taken so far."""
    fields = [(each / "stat").read_text().rsplit(")", 1)[1].split() for each in _workers()]
    return sum(int(each[11]) + int(each[12]) for each in fields) / os.sysconf("SC_CLK_TCK")


def _workers() -> list[Path]:
    """Give the processes that this one has begun and that are alive."""
    listed = Path("/proc/self/task").glob("*/children")
    found = {pid for each in listed for pid in each.read_text().split()}
    return [Path("/proc") / pid for pid in sorted(found) if (Path("/proc") / pid).exists()]


def _held(process: Path) -> float:
    """Give the peak of one process in kB."""
    lines = (process / "status").read_text().splitlines()
    return sum(float(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def apart(segments: int, answers: int) -> dict[str, float]:
    """Measure in a process of its own, so that memory is its own."""
    told = [sys.executable, __file__, "--one", str(segments), str(answers)]
    ran = subprocess.run(told, check=True, capture_output=True, text=True)
    measured: dict[str, float] = json.loads(ran.stdout.splitlines()[-1])
    return measured


def jobs(quick: bool) -> Iterator[tuple[dict[str, Any], Callable[[], dict[str, float]]]]:
    for segments, answers in (
        QUICK if quick else dict.fromkeys((*reversed(BY_SEGMENTS), *BY_ANSWERS))
    ):
        key = {"segments": segments, "answers": segments * answers}
        yield key, lambda told=(segments, answers): apart(*told)


def shares(row: dict[str, str]) -> dict[str, float]:
    """Give what the parts of the clock are of the whole."""
    whole = float(row["seconds"])
    return {part: float(row[part]) / whole for part in ("fits", "judging", "answering", "planning")}


def summary(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """One line for each size."""
    return [
        {
            "segments": f"{int(row['segments']):,}",
            "answers": f"{int(row['answers']):,}",
            "seconds": tables.number(float(row["seconds"])),
            "processor": tables.number(float(row["cpu"])),
            **{part: f"{share:.1%}" for part, share in shares(row).items()},
            "rounds": row["rounds"],
            "looks": f"{int(row['looks']):,}",
            "peak memory": f"{float(row['peak_mb']) / 1e3:.2f} GB",
        }
        for row in sorted(rows, key=lambda row: (int(row["segments"]), int(row["answers"])))
    ]


def growth(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """The power with which time and memory grow, by segments and by answers of each."""
    lines = []
    for name, column, sizes in (
        ("segments, 5,000 answers each", "segments", BY_SEGMENTS),
        ("answers, 250 segments", "answers", BY_ANSWERS),
    ):
        mine = _of(rows, sizes)
        if len(mine) > 1:
            given = [float(row[column]) for row in mine]
            powers = {
                f"{what} grows by the power": f"{power(given, [float(r[key]) for r in mine]):.2f}"
                for what, key in (("processor time", "cpu"), ("planning", "planning_cpu"))
            }
            lines.append({"with": name, **powers, "sizes": str(len(mine))})
    return lines


def constants(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """What one look, one answer and one round cost at the largest size."""
    if not rows:
        return []
    largest = max(rows, key=lambda row: (int(row["segments"]), int(row["answers"])))
    number = {name: float(largest[name]) for name in largest if name not in tables.machine()}
    looks = 1e3 * (number["fits"] + number["judging"]) / number["looks"]
    per_round = number["planning"] / number["rounds"]
    return [
        {
            "one look (two fits and their judging), two at a time": f"{looks:.0f} ms",
            "planning, a round": f"{1e3 * per_round:.0f} ms",
            "planning, a round and segment": f"{1e6 * per_round / number['segments']:.0f} µs",
            "answering, an answer": f"{1e6 * number['answering'] / number['answers']:.1f} µs",
            "memory, a segment": f"{1e3 * number['peak_mb'] / number['segments']:,.0f} kB",
        }
    ]


def targets(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """What was aimed at for 2,000 segments and 10⁷ answers, and what was measured."""
    found = [row for row in rows if (int(row["segments"]), int(row["answers"])) == FULL]
    if not found:
        return []
    row, part = found[0], shares(found[0])
    peak, both = float(row["peak_mb"]) / 1e3, part["planning"] + part["judging"]
    return [
        _target("peak memory", f"{peak:.2f} GB", "< 4 GB", peak < 4),
        _target("planning", f"{part['planning']:.1%}", "< 10 %", part["planning"] < 0.1),
        _target("planning and judging", f"{both:.1%}", "< 10 %", both < 0.1),
    ]


def _target(what: str, text: str, target: str, met: bool) -> dict[str, str]:
    return {"what": what, "measured": text, "target": target, "met": "yes" if met else "**no**"}


def power(given: list[float], taken: list[float]) -> float:
    """Give the slope of a line through logarithms.

    >>> power([1.0, 2.0, 4.0], [3.0, 12.0, 48.0])
    2.0
    """
    return round(float(np.polyfit(np.log(given), np.log(taken), 1)[0]), 6)


def _of(rows: list[dict[str, str]], sizes: tuple[tuple[int, int], ...]) -> list[dict[str, str]]:
    wanted = [(segments, segments * answers) for segments, answers in sizes]
    by_size = {(int(row["segments"]), int(row["answers"])): row for row in rows}
    return [by_size[each] for each in wanted if each in by_size]


def draw(rows: list[dict[str, str]], path: Path) -> None:
    """Time against segments, and against answers, with lines of power one."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "many segments"
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8.4, 3.4), layout="constrained")
    for axis, column, sizes, label in (
        (axes[0], "segments", BY_SEGMENTS, "segments, 5,000 answers each"),
        (axes[1], "answers", BY_ANSWERS, "answers, in 250 segments"),
    ):
        draw_panel(axis, _of(rows, sizes), column, label)
    figure.savefig(path, metadata={"Date": None})


def draw_panel(axis: Any, rows: list[dict[str, str]], column: str, label: str) -> None:
    given = [float(row[column]) for row in rows]
    for part, name, colour in (("cpu", "all", "#0072B2"), ("planning_cpu", "planning", "#D55E00")):
        taken = [float(row[part]) for row in rows]
        axis.loglog(given, taken, color=colour, marker="o", markersize=4, lw=1.4)
        words, place = f"{name}, power {power(given, taken):.2f}", (given[-1], taken[-1])
        axis.annotate(
            words, place, (0, 6), textcoords="offset points", ha="right", color=colour, fontsize=9
        )
        one = [taken[0] * each / given[0] for each in given]
        axis.loglog(given, one, color="0.75", lw=0.8, ls="--", zorder=0)
    axis.set_xlabel(label)
    axis.set_ylabel("processor seconds")
    axis.set_xticks(given, [f"{each:,.0f}" for each in given])
    axis.xaxis.set_minor_formatter("")
    axis.grid(color="0.92")
    axis.spines[["top", "right"]].set_visible(False)


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure(*map(int, sys.argv[2:]))))
        return
    chosen = tables.arguments(__doc__)
    path = tables.folder(chosen.quick) / "many_segments.csv"
    rows = tables.fill(path, jobs(chosen.quick), chosen.anew)
    if len(_of(rows, BY_SEGMENTS)) > 1 and len(_of(rows, BY_ANSWERS)) > 1:
        draw(rows, FIGURE)
    for lines in (summary(rows), growth(rows), targets(rows), constants(rows)):
        print(tables.markdown(lines), end="\n\n")
    assert all(math.isfinite(float(row["loss"])) for row in rows)


if __name__ == "__main__":
    main()
