"""SoftImpute against fancyimpute and cmfrec: processor time to the same objective, one thread.

python benchmarks/soft_impute.py                     # every part; about half an hour
python benchmarks/soft_impute.py --part small        # one part; each is below eight minutes
python benchmarks/soft_impute.py --quick             # one seed of small problems

All minimise ½ Σ (answer − M)² + λ‖M‖_* on the same cells; a run ends when the objective is
within the goal of the optimum. Ours and a peer take turns, on fresh seeds. The optimum is that
of our solver at a tight tolerance; its duality gap is computed anew here, and no solver may go
below it. Ours is told λ only. cmfrec is told the rank and the iterations that it needs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import tables
from contest import Contest, Rows, optimum, say, team
from problems import SCRATCH, Setup, load
from solvers import MORE_KINDS, USUAL_KINDS, Worker
from threadpoolctl import threadpool_limits

ALL_KINDS = USUAL_KINDS + MORE_KINDS
ONE_KIND = USUAL_KINDS[2:]

SMALL = tuple(
    Setup(f"200 × 200, rank {rank}, {share:.0%} seen", (200, 200), rank, share)
    for rank in (10, 40)
    for share in (0.2, 0.5)
)
SHARP = tuple(replace(each, name=f"{each.name}, λ = σ₁/50", rule="fancyimpute") for each in SMALL)
MEDIUM = Setup("2000 × 2000, rank 10, 5% seen", (2000, 2000), 10, 0.05)
LARGE = Setup("20000 × 5000, rank 10, 5 M answers", (20_000, 5_000), 10, 0.05)
TINY = Setup("100 × 100, rank 5, 30% seen", (100, 100), 5, 0.3)
MODEST = Setup("500 × 500, rank 5, 10% seen", (500, 500), 5, 0.1)


def contests(name: str, rounds: Sequence[Contest], folder: Path) -> None:
    """Run the contests in turn; what is measured is on disk before the next begins."""
    times: Rows = []
    paths: Rows = []
    for contest in rounds:
        contest.run()
        times, paths = times + contest.times, paths + contest.paths
        keep(folder / f"soft_impute_{name}.csv", times)
        tables.write(folder / f"soft_impute_{name}_paths.csv", paths)


def keep(path: Path, rows: Rows) -> None:
    """Write the rows and the machine that each was measured on: parts are made on their own."""
    about = tables.machine()
    tables.write(path, [row | about for row in rows])


def small(folder: Path, quick: bool) -> None:
    """d = 200 with the universal penalty, to 1e-6: the paper's sizes."""
    rounds = [Contest(setup, 1e-6, 3, 3, kinds=ALL_KINDS) for setup in SMALL]
    if quick:
        rounds = [Contest(SMALL[1], 1e-6, 1, 1, kinds=ONE_KIND)]
    contests("small", rounds, folder)


def sharp(folder: Path, quick: bool) -> None:
    """d = 200 with fancyimpute's default penalty, which is far smaller, to 1e-6."""
    rounds = [Contest(setup, 1e-6, 3, 1, kinds=ALL_KINDS) for setup in SHARP]
    if quick:
        rounds = [Contest(replace(TINY, rule="fancyimpute"), 1e-6, 1, 1, kinds=ONE_KIND)]
    contests("sharp", rounds, folder)


def medium(folder: Path, quick: bool) -> None:
    """d = 2000 with 5 % seen, to 1e-6; fancyimpute is stopped after a minute."""
    if quick:
        contest = Contest(MODEST, 1e-6, 1, 1, 0, kinds=ONE_KIND)
    else:
        contest = Contest(MEDIUM, 1e-6, 3, 3, fancyimpute_seeds=1, fancyimpute_limit=60.0)
    contests("medium", [contest], folder)


def large(folder: Path, quick: bool) -> None:
    """20,000 × 5,000 with 5 million answers, to 1e-4; fancyimpute would need the dense matrix."""
    if quick:
        contest = Contest(MODEST, 1e-4, 1, 1, 0, kinds=ONE_KIND, optimum_steps=100)
    else:
        kinds = (MORE_KINDS[1], USUAL_KINDS[1])
        few = {"kinds": kinds, "kept": 1, "screening": False, "iterations": 20}
        contest = Contest(LARGE, 1e-4, 3, 1, 0, cmfrec_limit=200.0, optimum_steps=50, **few)
    contests("large", [contest], folder)


def memory(folder: Path, quick: bool) -> None:
    """Peak memory of a fresh process that loads 5 million answers and fits them as by default."""
    setup = MODEST if quick else LARGE
    path = setup.problem(seed=11)
    worker = Worker("malocate")
    package = worker.ask(job="compile")["peak"]
    told = worker.ask(job="fit", problem=str(path), tol=1e-3, threads=2)
    worker.close()
    answers = {"problem": setup.name, "answers_mb": load(str(path)).megabytes}
    row = answers | {"package_mb": package, "peak_mb": told["peak"], "wall": told["wall"]}
    keep(folder / "soft_impute_memory.csv", [row | {"gap": told["gap"]}])
    path.unlink()


def threads(folder: Path, quick: bool) -> None:
    """Wall-clock time to the goal: one thread, then two, as many sweeps as one thread needs.

    Beside it stands what the machine makes of its second core: two processes that do the run of
    one thread at the same time, and nothing in common.
    """
    rows: Rows = []
    races = ((MODEST, 1e-6, None),) if quick else ((MEDIUM, 1e-6, None), (LARGE, 1e-4, 50))
    with team("malocate", "malocate") as (ours, other), ThreadPoolExecutor() as asking:
        for setup, goal, steps in races:
            path = setup.problem(seed=21)
            target = optimum(ours, path, goal / 10, steps).objective * (1 + goal)
            run = {"problem": str(path), "tol": goal}
            sweeps = len(ours.ask(job="trajectory", target=target, **run)["trajectory"])
            run |= {"job": "replayed", "sweeps": sweeps}
            ours.ask(**run, threads=2)  # loads what helpers run, off the clock
            for repetition in range(1, 2 if quick else 10):
                one, two = (ours.ask(**run, threads=count)["wall"] for count in (1, 2))
                both = [asking.submit(each.ask, **run, threads=1) for each in (ours, other)]
                ceiling = 2 * one / max(each.result()["wall"] for each in both)
                say(
                    f"{setup.name}: one thread {one:.2f} s, two {two:.2f} s, {one / two:.2f}×; "
                    f"two processes do {ceiling:.2f}× the work of one"
                )
                row = {"problem": setup.name, "goal": goal, "repetition": repetition}
                found = {"one": one, "two": two, "ratio": one / two, "ceiling": ceiling}
                rows.append(row | found)
            path.unlink()
    keep(folder / "soft_impute_threads.csv", rows)


def warm(folder: Path, quick: bool) -> None:
    """Refit after 1 % more answers, from the last completion and from nothing, to 1e-4."""
    rows: Rows = []
    setups = (TINY,) if quick else (*SMALL, MEDIUM)
    with team("malocate") as (ours,):
        for setup in setups:
            for seed in range(31, 32 if quick else 34):
                rows += refits(ours, setup, seed, 1 if quick else 3)
    keep(folder / "soft_impute_warm.csv", rows)


def refits(ours: Worker, setup: Setup, seed: int, repetitions: int) -> Rows:
    before, after = setup.problem(seed), setup.problem(seed, growth=0.01)
    saved = str(SCRATCH / "before.npz")
    ours.ask(job="fit", problem=str(before), tol=1e-4, save=saved)
    target = optimum(ours, after, 1e-6).objective * (1 + 1e-4)
    rows: Rows = []
    for repetition in range(1, repetitions + 1):
        row = {"problem": setup.name, "seed": seed, "repetition": repetition}
        for until in ("objective", "certified"):
            cold, again = (refit(ours, after, until, target, start) for start in (None, saved))
            rows.append(row | {"until": until, "cold": cold, "warm": again, "ratio": cold / again})
            say(f"{setup.name}: {until} 1e-4 cold {1e3 * cold:.0f} ms, warm {1e3 * again:.0f} ms")
    before.unlink()
    after.unlink()
    return rows


def refit(ours: Worker, path: Path, until: str, target: float, start: str | None) -> float:
    """Processor time until the objective is within 1e-4, or until that gap is certified."""
    request = {"problem": str(path), "tol": 1e-4, "start": start}
    if until == "certified":
        return ours.ask(job="fit", **request)["cpu"]
    return ours.ask(job="trajectory", target=target, **request)["trajectory"][-1][0]


PARTS: dict[str, Callable[[Path, bool], None]] = {
    part.__name__: part for part in (small, sharp, medium, large, memory, threads, warm)
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=PARTS, action="append", help="only this part")
    parser.add_argument("--quick", action="store_true", help="small problems, one seed")
    chosen = parser.parse_args()
    folder = tables.folder(chosen.quick)
    with threadpool_limits(1):  # what is computed here must not disturb what is timed
        for name in chosen.part or PARTS:
            say(f"{name}: {PARTS[name].__doc__}")
            PARTS[name](folder, chosen.quick)


if __name__ == "__main__":
    main()
