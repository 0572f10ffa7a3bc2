"""One big matrix, completed with its cross-fit band from answers on the disk, and by cmfrec.

python benchmarks/big_matrix.py                    # 100,000 × 20,000, 5·10⁷ answers; 12 GB free
python benchmarks/big_matrix.py --part cmfrec      # one part: data, ours or cmfrec
python benchmarks/big_matrix.py --scale 50         # a 50th of the answers, sides in proportion
python benchmarks/big_matrix.py --quick            # a 500th

Ratings from 1 to 5 around a preference of rank 10 (noise .5) are made in blocks and go straight to
a folder. Ours completes them from there at rank 16 at most, its ridge found by itself, with a
certified band by two folds of a tenth each: three fits. cmfrec fits once, at the same rank, on the
same threads, with its own number of iterations and regularisation. Both are held against the
truth at a million cells. Each part is a process of its own; memory is looked at every tenth of a
second, with mapped pages of the answers (peak) and without (anonymous). A fit is kept in
`.scratch/big`, so that a part that was stopped goes on after the last one.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tables
from peers import prepare

from malocate import Completion, CrossFit, LowRankLeastSquares, Observations, Synthetic
from malocate import error_band as judged

Row = dict[str, Any]

ANSWERS, SHAPE = 50_000_000, (100_000, 20_000)
TRUE_RANK, RANK, NOISE = 10, 16, 0.5
FOLDS, SHARE = 2, 0.1
BLOCK, TESTED, THREADS = 1_000_000, 1_000_000, 2
SCRATCH = tables.HERE / ".scratch" / "big"
PARTS = ("data", "ours", "cmfrec")
LIMIT_GB = 24.0


class Watch:
    """Seconds, and the peak memory of this process and of its children, while the block runs."""

    def __enter__(self) -> Watch:
        self.peak = self.anonymous = 0
        self._on = True
        self._began = time.perf_counter(), _processor()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._on = False
        self._thread.join()
        ended = time.perf_counter(), _processor()
        self.wall, self.cpu = (b - a for a, b in zip(self._began, ended, strict=True))

    def _look(self) -> None:
        while self._on:
            held = [_memory(process) for process in _family()]
            self.peak = max(self.peak, sum(each[0] for each in held))
            self.anonymous = max(self.anonymous, sum(each[1] for each in held))
            time.sleep(0.1)

    @property
    def row(self) -> Row:
        gigabytes = {"peak_gb": self.peak / 1e9, "anonymous_gb": self.anonymous / 1e9}
        return {"wall_s": self.wall, "cpu_s": self.cpu, **gigabytes}


def _processor() -> float:
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def _family() -> list[str]:
    found = ["self"]
    for task in Path("/proc/self/task").iterdir():
        found += (task / "children").read_text().split()
    return found


def _memory(process: str) -> tuple[int, int]:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:  # it has ended
        return 0, 0
    told = {name: value.split() for name, _, value in (line.partition(":") for line in lines)}
    return tuple(int(told.get(name, ["0"])[0]) * 1024 for name in ("VmRSS", "RssAnon"))


class Problem:
    """The hidden matrix at a scale, its folder and the cells that everybody is held against."""

    def __init__(self, scale: int) -> None:
        side = scale**0.5
        self.answers = ANSWERS // scale
        self.shape = round(SHAPE[0] / side), round(SHAPE[1] / side)
        self.source = Synthetic.ratings(self.shape, rank=TRUE_RANK, noise=NOISE, rng=770_000)
        self.scratch = SCRATCH / f"{self.shape[0]}x{self.shape[1]}-{self.answers}"
        self.folder = self.scratch / "answers"

    @property
    def key(self) -> Row:
        return {"shape": f"{self.shape[0]:,} × {self.shape[1]:,}", "answers": self.answers}

    def blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        for first in range(0, self.answers, BLOCK):
            part = self.source.observe(min(BLOCK, self.answers - first), rng=[770_001, first])
            say(f"{first + len(part):,} answers", first // BLOCK % 10 == 9)
            yield part.rows, part.cols, part.values

    def open(self) -> Observations:
        if not self.folder.exists():
            settings = {"shape": self.shape, "scale": self.source.scale}
            Observations.write(self.folder, self.blocks(), **settings)
        return Observations.open(self.folder)

    @property
    def test(self) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(770_002)
        return tuple(rng.integers(0, side, TESTED) for side in self.shape)

    def error(self, told: np.ndarray) -> float:
        """The mean squared error at the test cells, against the truth."""
        return float(np.mean((told - self.source.truth_at(*self.test)) ** 2))


def say(text: str, shown: bool = True) -> None:
    if shown:
        print(f"{time.strftime('%H:%M:%S')}  {text}", flush=True)


def made(problem: Problem) -> list[Row]:
    shutil.rmtree(problem.folder, ignore_errors=True)
    with Watch() as watch:
        problem.open()
    size = sum(file.stat().st_size for file in problem.folder.iterdir())
    return [
        {"solver": "malocate", "stage": "write the answers"} | watch.row | {"data_gb": size / 1e9}
    ]


class Fits:
    """A map over fits that keeps each, with what it took; what was kept is not fitted again."""

    def __init__(self, scratch: Path) -> None:
        self.scratch, self.rows, self.fresh = scratch, [], []

    def __call__(self, fit: Any, jobs: Iterable[Any]) -> Iterator[tuple[int, Completion]]:
        for job in jobs:
            kept, told = (self.scratch / f"fit-{job[0]}.{kind}" for kind in ("npz", "json"))
            if not told.exists():
                with Watch() as watch:
                    _, done = fit(job)
                done.save(kept)
                told.write_text(json.dumps(watch.row))
                self.fresh.append(watch.row)
            row = json.loads(told.read_text())
            done = Completion.load(kept)
            say(f"fit {job[0]}: rank {done.rank}, {row['wall_s']:.0f} s, {done.status.value}")
            self.rows.append(row)
            yield job[0], done


def ours(problem: Problem) -> list[Row]:
    answers, fits = problem.open(), Fits(problem.scratch)
    estimator = LowRankLeastSquares(rank=RANK, centre="mean")
    with Watch() as whole:
        began = time.perf_counter()
        band = judged(estimator, answers, scheme=CrossFit(FOLDS, SHARE), map=fits)
        say(f"band after {time.perf_counter() - began:.0f} s: {band}")
    error = problem.error(band.completion.predict(*problem.test))
    ensemble = problem.error(band.ensemble.predict(*problem.test))
    fold, refit = fits.rows[:FOLDS], fits.rows[-1]
    total = {name: max(row[name] for row in [*fits.rows, whole.row]) for name in whole.row}
    for name in ("wall_s", "cpu_s"):  # a fit that was kept counts with what it took
        kept = sum(row[name] for row in fits.rows) - sum(row[name] for row in fits.fresh)
        total[name] = whole.row[name] + kept
    found = {"rank": band.completion.rank, "error": error}
    bounds = {"estimate": band.estimate, "upper": band.upper, "label": band.label}
    bounds |= {"ensemble_error": ensemble, "ensemble_upper": band.ensemble_upper}
    mean = {name: np.mean([row[name] for row in fold]) for name in refit}
    return [
        {"stage": "one fold's fit, mean"} | mean,
        {"stage": "the fit to all"} | refit | found,
        {"stage": "with its band, all in all"} | total | found | bounds,
    ]


def cmfrec(problem: Problem) -> list[Row]:
    problem.open()
    test, out = problem.scratch / "test.npz", problem.scratch / "told.npy"
    np.savez(test, rows=problem.test[0], cols=problem.test[1])
    request = {"folder": str(problem.folder), "shape": problem.shape, "k": RANK, "settings": {}}
    request |= {"threads": THREADS, "test": str(test), "out": str(out)}
    script = tables.HERE / "workers" / "run_cmfrec_big.py"
    with Watch() as watch:
        run = subprocess.run(
            [str(prepare("cmfrec")), str(script)],
            input=json.dumps(request) + "\n", stdout=subprocess.PIPE, text=True, check=True,
        )  # fmt: skip
    told = json.loads(run.stdout)
    say(f"cmfrec: {told}")
    error = problem.error(np.clip(np.load(out), *problem.source.scale))
    fitted = dict(zip(("cpu_s", "wall_s"), told["fitted"], strict=True))
    found = {"rank": RANK, "error": error}
    return [
        {"stage": "one fit"} | watch.row | fitted | found,
        {"stage": "all in all"} | watch.row | found,
    ]


COLUMNS = ("wall_s", "cpu_s", "peak_gb", "anonymous_gb", "data_gb", "rank", "error", "estimate",
           "upper", "label", "ensemble_error", "ensemble_upper")  # fmt: skip


def keep(path: Path, problem: Problem, part: str, rows: list[Row]) -> None:
    """Replace a part's rows of this size."""
    about = problem.key | {"part": part}
    full = [
        about | {"stage": row["stage"]} | {name: row.get(name, "") for name in COLUMNS}
        for row in rows
    ]
    known = tables.read(path)
    again = tables.matching(known, about)
    new = [row | tables.machine() for row in full]
    tables.write(path, [*(row for row in known if row not in again), *new])


def summary(rows: list[dict[str, str]]) -> list[Row]:
    """A line for each stage, the largest matrix first."""
    rows = sorted(rows, key=lambda row: -int(row["answers"]))
    return [
        {
            "matrix": row["shape"],
            "answers": f"{int(row['answers']):,}",
            "who": "cmfrec" if row["part"] == "cmfrec" else "malocate",
            "stage": row["stage"],
            "wall": f"{float(row['wall_s']):,.0f} s",
            "processor": f"{float(row['cpu_s']):,.0f} s",
            "peak memory": f"{float(row['peak_gb']):.1f} GB",
            "of it anonymous": f"{float(row['anonymous_gb']):.1f} GB",
            "RMSE": f"{float(row['error']) ** 0.5:.4f}" if row["error"] else "",
            "RMSE at most": f"{float(row['upper']) ** 0.5:.4f}, {row['label']}"
            if row["upper"]
            else "",
        }
        for row in rows
    ]


def verdicts(rows: list[dict[str, str]]) -> list[tuple[str, str, str, str, bool]]:
    """What, where, measured, target and whether it was met: memory of the full size."""
    return [
        (
            "completed from the disk with its band: peak memory",
            row["shape"],
            f"{float(row['peak_gb']):.1f} GB",
            f"< {LIMIT_GB:.0f} GB",
            float(row["peak_gb"]) < LIMIT_GB,
        )
        for row in rows
        if int(row["answers"]) == ANSWERS and row["stage"].startswith("with its band")
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=PARTS, help="only one")
    parser.add_argument("--scale", type=int, default=1, help="answers are divided by this")
    parser.add_argument("--anew", action="store_true", help="forget the fits that were kept")
    parser.add_argument("--quick", action="store_true", help="a 500th")
    chosen = parser.parse_args()
    scale = 500 if chosen.quick else chosen.scale
    problem = Problem(scale)
    problem.scratch.mkdir(parents=True, exist_ok=True)
    if chosen.anew:
        for kept in problem.scratch.glob("fit-*"):
            kept.unlink()
    if chosen.part is None:
        for part in PARTS:
            extra = ["--quick"] if chosen.quick else []
            call = [sys.executable, __file__, "--part", part, "--scale", str(scale), *extra]
            subprocess.run(call, check=True)
        shutil.rmtree(problem.scratch)
        return
    say(f"{chosen.part}: {problem.shape[0]:,} × {problem.shape[1]:,}, {problem.answers:,} answers")
    LowRankLeastSquares(rank=2).fit(Synthetic.low_rank((30, 30), rank=2).observe(300))  # compiles
    rows = {"data": made, "ours": ours, "cmfrec": cmfrec}[chosen.part](problem)
    keep(tables.folder(chosen.quick) / "big_matrix.csv", problem, chosen.part, rows)


if __name__ == "__main__":
    main()
