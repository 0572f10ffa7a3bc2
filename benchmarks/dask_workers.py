"""What a second Dask worker is worth: runs of the paper, a first round of 200 segments, one fit.

python benchmarks/dask_workers.py

Workers are processes of one thread each on this machine, and the same work is done by one of them
and by two, in turns; the rows "no Dask" say what the machine itself makes of a second process.
The overhead of a fit is what fits take on one worker beyond the same fits in a process of its own.
In a first round a segment's fits and its band are one task, as always; beside it stand equal fits
that are a task each, by the clock and by the processor time of all processes. Written to
benchmarks/results/dask_workers.csv.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import tables
from numba import get_num_threads, set_num_threads

from malocate import Compute, Design, SoftImpute, Synthetic
from malocate.compute import forget
from malocate.compute.cluster import connected
from malocate.experiments.reproduce import reproduce
from malocate.experiments.simulation import Panel
from malocate.rounds import Round, begin, close, plan

SEGMENTS, RUNS, FITS, TURNS = 200, 4, 40, 3
FITS_OF_A_LOOK = 5  # four folds, and all answers


@contextmanager
def workers(count: int) -> Iterator[Compute]:
    from distributed import LocalCluster

    settings = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with LocalCluster(n_workers=count, silence_logs=logging.CRITICAL, **settings) as cluster:
        made = Compute(dask=cluster.scheduler_address)
        yield made
        forget(cluster.scheduler_address)


def seconds(work: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def first_round(segments: int) -> Callable[[Compute], Any]:
    """Give the closing of a first round: every segment's first fits and its first band."""
    sources = {
        f"s{k}": Synthetic.low_rank((100, 100), rank=1 + k % 5, rng=k) for k in range(segments)
    }
    asked = [each.segment(name) for name, each in sources.items()]
    design = Design(asked, budget=10**7, estimator=SoftImpute())
    step = plan(design, begin(design))
    assert isinstance(step, Round)
    answers = {}
    for batch in step.batches:
        panel = Panel(design.segments[batch.place], sources[batch.segment])
        panel.ask(design, batch)
        answers[batch.segment] = panel.answers
    return lambda compute: close(design, step, begin(design), answers, compute=compute)


def paper_runs(runs: int) -> Callable[[Compute], Any]:
    """Give a reproduction of the paper's first experiment, by the paper's recipe."""

    def run(compute: Compute) -> None:
        with TemporaryDirectory() as folder:
            reproduce(1, recipes=["paper"], runs=runs, compute=compute, folder=Path(folder))

    return run


def _fit(answers: Any, penalty: float) -> float:
    begun = time.perf_counter()
    SoftImpute(penalty).fit(answers)
    return time.perf_counter() - begun


def equal_fits(side: int, answers: int, fits: int) -> Callable[[Compute], list[float]]:
    """Give equal fits, each of which says how long it took where it was done."""
    seen = Synthetic.low_rank((side, side), rank=10, rng=0).observe(answers, rng=1)
    return lambda compute: compute.map(partial(_fit, seen), [side / 100] * fits)


def warm(compute: Compute) -> None:
    """Have every worker load the kernels before the clock runs."""
    equal_fits(50, 900, 8)(compute)


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep fits here to one thread, as a worker has."""
    before = get_num_threads()
    set_num_threads(1)
    yield
    set_num_threads(before)


def compared(
    what: str, work: Callable[[Compute], Any], turns: int, fits: int | None = None
) -> list[dict[str, Any]]:
    """Do the same with one worker and with two, in turns; with `fits` also without a cluster."""
    with workers(1) as one, workers(2) as two, one_thread():
        places = [one, two] if fits is None else [one, two, Compute(jobs=1), Compute(jobs=2)]
        for place in places:
            warm(place)
        times = [[seconds(lambda at=place: work(at)) for place in places] for _ in range(turns)]
    by_place = list(zip(*times, strict=True))
    rows = [_compared(what, *by_place[:2])]
    if fits is None:
        return rows
    each = [1_000 * (far - near) / fits for far, near in zip(by_place[0], by_place[2], strict=True)]
    rows[0] |= _spread("overhead, ms", each)
    return [*rows, _compared(f"{what}, no Dask", *by_place[2:])]


def _compared(what: str, one: Sequence[float], two: Sequence[float]) -> dict[str, Any]:
    ratios = [before / after for before, after in zip(one, two, strict=True)]
    times = _spread("one worker, s", one) | _spread("two workers, s", two)
    return _row(what) | times | _spread("times faster", ratios)


def overhead(side: int, answers: int, fits: int, turns: int) -> dict[str, Any]:
    """Hold many fits by one worker against the same ones here, in one thread as a worker has."""
    work, here, found = equal_fits(side, answers, fits), Compute(jobs=1), []
    with workers(1) as one, one_thread():
        work(one), work(here)
        for _ in range(turns):
            own, there = _both_clocks(here, work), _both_clocks(one, work)
            found.append(
                (own[0], *(1_000 * (b - a) / fits for a, b in zip(own, there, strict=True)))
            )
    own_wall, wall, processor = zip(*found, strict=True)
    row = _row(f"a fit of {side} × {side}, {1_000 * median(own_wall) / fits:.0f} ms")
    return row | _spread("overhead, ms", wall) | _spread("overhead by processor, ms", processor)


def _both_clocks(compute: Compute, work: Callable[[Compute], Any]) -> tuple[float, float]:
    """Give the seconds that work takes, and those of processors here and in the workers."""
    client = connected(compute.dask) if compute.dask else None

    def processors() -> float:
        far = client.run(time.process_time).values() if client else ()
        return time.process_time() + sum(far)

    wall, processor = time.perf_counter(), processors()
    work(compute)
    return time.perf_counter() - wall, processors() - processor


NAMES = (
    "one worker, s",
    "two workers, s",
    "times faster",
    "overhead, ms",
    "overhead by processor, ms",
)


def _row(what: str) -> dict[str, Any]:
    parts = [f"{name}{part}" for name in NAMES for part in ("", ", least", ", most")]
    return {"what": what} | dict.fromkeys(parts, "")


def _spread(name: str, found: Sequence[float]) -> dict[str, float]:
    return {name: median(found), f"{name}, least": min(found), f"{name}, most": max(found)}


def summary(rows: Sequence[Mapping[str, str]]) -> list[tables.Row]:
    """Give the rows as they are shown."""
    shown = {
        "one worker": ("one worker, s", " s"),
        "two workers": ("two workers, s", " s"),
        "times faster (target 1.6)": ("times faster", "×"),
        "overhead of a fit (target 8 ms)": ("overhead, ms", " ms"),
        "by processor time": ("overhead by processor, ms", " ms"),
    }
    return [
        {"what": row["what"]}
        | {title: _range(row, *told) for title, told in shown.items()}
        | {"met": "" if "no Dask" in row["what"] else "yes" if _met(row) else "**no**"}
        for row in rows
    ]


def _met(row: Mapping[str, str]) -> bool:
    fast = not row["times faster"] or float(row["times faster"]) >= 1.6
    return fast and (not row["overhead, ms"] or float(row["overhead, ms"]) < 8.0)


def _range(row: Mapping[str, str], name: str, unit: str) -> str:
    if not row[name]:
        return ""
    middle, *ends = (f"{float(row[name + part]):.3g}" for part in ("", ", least", ", most"))
    return f"{middle}{unit} ({'–'.join(ends)})"


def main() -> None:
    told = tables.arguments(__doc__)
    segments, runs, fits, turns = (20, 2, 10, 1) if told.quick else (SEGMENTS, RUNS, FITS, TURNS)
    first, again = f"first round of {segments} segments", f"`reproduce 1`, {runs} runs"
    rows: list[dict[str, Any]] = []
    for measured in (
        *(
            partial(overhead, side, answers, times * fits, turns)
            for side, answers, times in ((100, 2_000, 4), (400, 60_000, 1))
        ),
        partial(compared, first, first_round(segments), turns, FITS_OF_A_LOOK * segments),
        partial(compared, again, paper_runs(runs), turns),
    ):
        found = measured()
        rows += found if isinstance(found, list) else [found]
        print(*rows[-2:], sep="\n", flush=True)
    machine = tables.machine()
    tables.write(tables.folder(told.quick) / "dask_workers.csv", [row | machine for row in rows])


if __name__ == "__main__":
    main()
