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
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import tables
from contest import KINDS, Cmfrec, FancyImpute, Ours, Point, Race, Recipe, Worker, start_ours
from problems import SCRATCH, Setup, certified_gap, least_rank, load, objective
from threadpoolctl import threadpool_limits

Rows = list[dict[str, Any]]
Way = tuple[int, dict[str, Any]]  # of calling cmfrec: which rank, and its settings

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


@contextmanager
def team(*names: str) -> Iterator[list[Worker]]:
    workers = [start_ours() if name == "malocate" else Worker(name) for name in names]
    try:
        yield workers
    finally:
        for worker in workers:
            worker.close()


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')}  {text}", flush=True)


def optimum(ours: Worker, path: Path, tol: float) -> tuple[float, np.ndarray, np.ndarray]:
    """Our solver's tight optimum, with its gap computed independently."""
    saved = SCRATCH / "optimum.npz"
    ours.ask(job="fit", problem=str(path), tol=tol, save=str(saved))
    with np.load(saved) as stored:
        left, right = stored["left"], stored["right"]
    gap = certified_gap(path, left, right)
    assert gap <= 2 * tol, f"the optimum of {path.name} has gap {gap:.1e}, not {tol:.1e}"
    return objective(load(str(path)), left, right), left, right


@dataclass
class Contest:
    """Time to the goal on one family of problems: ours, a peer, ours, the next peer, …"""

    setup: Setup
    goal: float
    seeds: int
    repetitions: int
    fancyimpute_limit: float | None = 300.0  # processor seconds; None leaves it out
    cmfrec_limit: float = 60.0  # processor seconds of one call
    kinds: int = len(KINDS)  # how many ways of calling cmfrec to try
    times: Rows = field(default_factory=list)
    paths: Rows = field(default_factory=list)
    ways: list[Way] = field(default_factory=list)
    iterations: int = 8

    def run(self) -> Contest:
        with team("malocate", "fancyimpute", "cmfrec") as (ours, fancyimpute, cmfrec):
            for seed in range(1, self.seeds + 1):
                path = self.setup.problem(seed)
                least, left, right = optimum(ours, path, self.goal / 100)
                race = Race(path, least, self.goal)
                say(f"{self.setup.name}, seed {seed}: optimum {least:.9g}, rank {left.shape[1]}")
                peer = self._cmfrec(
                    Cmfrec(cmfrec, seed, self.cmfrec_limit, self.iterations), race, left, right
                )
                rivals: list[FancyImpute | Cmfrec] = [peer]
                if self.fancyimpute_limit is not None and seed * self.fancyimpute_limit <= 300:
                    rivals.append(FancyImpute(fancyimpute, self.fancyimpute_limit))
                self._take_turns(race, Ours(ours, self.goal), rivals, seed)
                path.unlink()
        return self

    def _cmfrec(self, peer: Cmfrec, race: Race, left: np.ndarray, right: np.ndarray) -> Cmfrec:
        """On the first seed all ways of calling cmfrec are tried, on the others the best two.

        The rank it gets is that of the optimum or, if that is faster, the least with which the
        goal can be reached.
        """
        least = least_rank(race.path, left, right, self.goal / 10)
        ranks = (max(left.shape[1], round(1.2 * least)), least)
        if not self.ways:
            wide = [(0, kind) for kind in KINDS[: self.kinds]]
            good = [wide[place] for place in peer.prepare(race, _recipes(wide, ranks))]
            thin = [(1, kind) for _, kind in good[:2]]
            best = [thin[place] for place in peer.prepare(race, _recipes(thin, ranks))]
            self.ways = [*best, *good][:2]
        else:
            peer.prepare(race, _recipes(self.ways, ranks))
        self.iterations = peer.iterations
        return peer

    def _take_turns(
        self, race: Race, ours: Ours, rivals: Sequence[FancyImpute | Cmfrec], seed: int
    ) -> None:
        for repetition in range(1, self.repetitions + 1):
            for rival in rivals:
                mine, theirs = ours.run(race), rival.run(race)
                assert mine is not None, f"ours did not reach {self.goal} on {race.path.name}"
                self._note(race, rival, seed, repetition, mine, theirs)
        if seed == 1:
            self.paths = [
                {
                    "problem": self.setup.name,
                    "solver": each.name,
                    "cpu": p[0],
                    "gap": race.gap(p[2]),
                }
                for each in (ours, *rivals)
                for p in each.points
            ]

    def _note(
        self,
        race: Race,
        rival: FancyImpute | Cmfrec,
        seed: int,
        repetition: int,
        mine: Point,
        theirs: Point | None,
    ) -> None:
        last = theirs or rival.points[-1]
        row = {
            "problem": self.setup.name,
            "goal": self.goal,
            "seed": seed,
            "repetition": repetition,
            "peer": rival.name,
            "settings": rival.settings,
            "malocate_cpu": mine[0],
            "peer_cpu": last[0],
            "peer_gap": race.gap(last[2]),
            "reached": theirs is not None,
            "ratio": last[0] / mine[0],
        }
        self.times.append(row)
        there = "" if row["reached"] else f", stopped at gap {row['peer_gap']:.0e}"
        say(
            f"  malocate {1e3 * mine[0]:.0f} ms, {rival.name} {1e3 * last[0]:.0f} ms"
            f" ({row['ratio']:.1f}×, {rival.settings}{there})"
        )


def _recipes(ways: Sequence[Way], ranks: tuple[int, int]) -> list[Recipe]:
    return [Recipe(ranks[which], **kind) for which, kind in ways]


def contests(name: str, rounds: Sequence[Contest], folder: Path) -> None:
    done = [contest.run() for contest in rounds]
    tables.write(folder / f"soft_impute_{name}.csv", [row for c in done for row in c.times])
    tables.write(folder / f"soft_impute_{name}_paths.csv", [row for c in done for row in c.paths])


def small(folder: Path, quick: bool) -> None:
    """d = 200 with the universal penalty, to 1e-6: the paper's sizes."""
    if quick:
        return contests("small", [Contest(SMALL[1], 1e-6, 1, 1, kinds=1)], folder)
    return contests("small", [Contest(setup, 1e-6, 3, 3) for setup in SMALL], folder)


def sharp(folder: Path, quick: bool) -> None:
    """d = 200 with fancyimpute's default penalty, which is far smaller, to 1e-6."""
    if quick:
        return contests(
            "sharp", [Contest(replace(TINY, rule="fancyimpute"), 1e-6, 1, 1, kinds=1)], folder
        )
    return contests("sharp", [Contest(setup, 1e-6, 3, 1) for setup in SHARP], folder)


def medium(folder: Path, quick: bool) -> None:
    """d = 2000 with 5 % seen, to 1e-6; fancyimpute is stopped after a minute."""
    if quick:
        return contests("medium", [Contest(MODEST, 1e-6, 1, 1, None, kinds=1)], folder)
    return contests("medium", [Contest(MEDIUM, 1e-6, 3, 3, 60.0)], folder)


def large(folder: Path, quick: bool) -> None:
    """20,000 × 5,000 with 5 million answers, to 1e-4; fancyimpute would need the dense matrix."""
    if quick:
        return contests("large", [Contest(MODEST, 1e-4, 1, 1, None, kinds=1)], folder)
    return contests("large", [Contest(LARGE, 1e-4, 2, 1, None, 200.0, 2)], folder)


def memory(folder: Path, quick: bool) -> None:
    """Peak memory of a fresh process that loads 5 million answers and fits them to 1e-4."""
    setup = MODEST if quick else LARGE
    path = setup.problem(seed=11)
    worker = Worker("malocate")
    before = worker.ask(job="compile")["peak"]
    told = worker.ask(job="fit", problem=str(path), tol=1e-4)
    worker.close()
    row = {"problem": setup.name, "package_mb": before, "peak_mb": told["peak"], "cpu": told["cpu"]}
    tables.write(folder / "soft_impute_memory.csv", [row | {"gap": told["gap"]}])
    path.unlink()


def threads(folder: Path, quick: bool) -> None:
    """Wall-clock time of a whole fit to a certified gap of 1e-4: one thread, then two."""
    rows: Rows = []
    with team("malocate") as (ours,):
        for setup in (MODEST,) if quick else (MEDIUM, LARGE):
            path = setup.problem(seed=21)
            for repetition in range(1, 2 if quick else 4):
                fit = {"job": "fit", "problem": str(path), "tol": 1e-4}
                one, two = (ours.ask(**fit, threads=count)["wall"] for count in (1, 2))
                say(f"{setup.name}: one thread {one:.2f} s, two {two:.2f} s, {one / two:.2f}×")
                row = {"problem": setup.name, "repetition": repetition, "one": one, "two": two}
                rows.append(row | {"ratio": one / two})
            path.unlink()
    tables.write(folder / "soft_impute_threads.csv", rows)


def warm(folder: Path, quick: bool) -> None:
    """Refit after 1 % more answers, from the last completion and from nothing, to 1e-4."""
    rows: Rows = []
    setups = (TINY,) if quick else (*SMALL, MEDIUM)
    with team("malocate") as (ours,):
        for setup in setups:
            for seed in range(31, 32 if quick else 34):
                rows += refits(ours, setup, seed, 1 if quick else 3)
    tables.write(folder / "soft_impute_warm.csv", rows)


def refits(ours: Worker, setup: Setup, seed: int, repetitions: int) -> Rows:
    before, after = setup.problem(seed), setup.problem(seed, growth=0.01)
    saved = str(SCRATCH / "before.npz")
    ours.ask(job="fit", problem=str(before), tol=1e-4, save=saved)
    target = optimum(ours, after, 1e-6)[0] * (1 + 1e-4)
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
