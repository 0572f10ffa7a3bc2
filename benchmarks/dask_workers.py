"""What a second Dask worker is worth: runs of the paper, a first round of 200 segments, one fit.

python benchmarks/dask_workers.py

Workers are processes of one thread each on this machine, and the same work is done by one of them
and by two, in turns. The overhead of a fit is what the time of many equal fits on one worker has
on top of the same fits in a process of its own. Written to benchmarks/results/dask_workers.csv.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import tables
from numba import get_num_threads, set_num_threads

from malocate import Compute, Design, SoftImpute, Synthetic
from malocate.compute import forget
from malocate.experiments.paper import experiment
from malocate.experiments.reproduce import reproduce
from malocate.experiments.simulation import Panel
from malocate.rounds import Round, begin, close, plan

SEGMENTS, RUNS, FITS, TURNS = 200, 4, 60, 2


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
    """Give a reproduction of the paper's first experiment, with smaller matrices."""
    problem = replace(experiment(1), side=40)

    def run(compute: Compute) -> None:
        with TemporaryDirectory() as folder:
            told = {"recipes": ["best"], "runs": runs, "problem": problem}
            reproduce(1, compute=compute, folder=Path(folder), **told)

    return run


def _fit(answers: Any, penalty: float) -> int:
    return SoftImpute(penalty).fit(answers).rank


def many_fits(fits: int) -> Callable[[Compute], Any]:
    """Give equal fits of about a tenth of a second."""
    answers = Synthetic.low_rank((400, 400), rank=10, rng=0).observe(60_000, rng=1)
    return lambda compute: compute.map(partial(_fit, answers), [4.0] * fits)


def warm(compute: Compute) -> None:
    """Have every worker load the kernels before the clock runs."""
    compute.map(partial(_fit, Synthetic.low_rank((50, 50), rank=2, rng=0).observe(900)), [1.0] * 8)


def compared(what: str, work: Callable[[Compute], Any], turns: int) -> dict[str, Any]:
    """Do the same with one worker and with two, in turns."""
    with workers(1) as one, workers(2) as two:
        warm(one), warm(two)
        pairs = [(seconds(lambda: work(one)), seconds(lambda: work(two))) for _ in range(turns)]
    ratios = [first / second for first, second in pairs]
    return {
        "what": what,
        "one worker, s": median(first for first, _ in pairs),
        "two workers, s": median(second for _, second in pairs),
        "times faster": median(ratios),
        "least": min(ratios),
        "most": max(ratios),
        "overhead of a fit, ms": "",
    }


def overhead(fits: int, turns: int) -> dict[str, Any]:
    """Hold many fits by one worker against the same ones here, in one thread as a worker has."""
    work, here = many_fits(fits), Compute(jobs=1)
    before = get_num_threads()
    set_num_threads(1)
    with workers(1) as one:
        work(one), work(here)
        pairs = [(seconds(lambda: work(here)), seconds(lambda: work(one))) for _ in range(turns)]
    set_num_threads(before)
    each = [1_000 * (there - own) / fits for own, there in pairs]
    return {
        "what": f"{fits} fits of {1_000 * median(own for own, _ in pairs) / fits:.0f} ms",
        "one worker, s": median(there for _, there in pairs),
        "two workers, s": "",
        "times faster": "",
        "least": min(each),
        "most": max(each),
        "overhead of a fit, ms": median(each),
    }


def summary(rows: Sequence[Mapping[str, str]]) -> list[tables.Row]:
    """Give the rows as they are shown."""
    return [
        {
            "what": row["what"],
            "one worker": _seconds(row["one worker, s"]),
            "two workers": _seconds(row["two workers, s"]),
            "times faster (target 1.6)": _range(row, "times faster", "×"),
            "overhead of a fit (target 8 ms)": _range(row, "overhead of a fit, ms", " ms"),
        }
        for row in rows
    ]


def _seconds(text: str) -> str:
    return f"{float(text):.1f} s" if text else ""


def _range(row: Mapping[str, str], name: str, unit: str) -> str:
    if not row[name]:
        return ""
    middle, least, most = (tables.number(float(row[each])) for each in (name, "least", "most"))
    return f"{middle}{unit} ({least}–{most})"


def main() -> None:
    told = tables.arguments(__doc__)
    small = told.quick
    turns = 1 if small else TURNS
    rows: list[dict[str, Any]] = [
        compared(
            f"first round of {20 if small else SEGMENTS} segments",
            first_round(20 if small else SEGMENTS),
            turns,
        ),
        compared(
            f"{2 if small else RUNS} runs of experiment 1, 40 × 40",
            paper_runs(2 if small else RUNS),
            turns,
        ),
        overhead(10 if small else FITS, turns),
    ]
    for row in rows:
        print(row, flush=True)
    machine = tables.machine()
    tables.write(tables.folder(small) / "dask_workers.csv", [row | machine for row in rows])


if __name__ == "__main__":
    main()
