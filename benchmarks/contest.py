"""A contest: ours and the peers solve the same problems, turn by turn, to the same objective."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from problems import SCRATCH, Setup, certified_gap, least_rank, load, objective
from solvers import (
    USUAL_KINDS,
    Cmfrec,
    FancyImpute,
    Kind,
    Ours,
    Point,
    Race,
    Recipe,
    Worker,
    start_ours,
)

Rows = list[dict[str, Any]]
Rival = FancyImpute | Cmfrec
Way = tuple[int, Kind]  # of calling cmfrec: which of two ranks, and its settings


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


@dataclass(frozen=True)
class Optimum:
    """The least objective of a problem, where it is reached, and how surely it is the least."""

    objective: float
    gap: float
    left: np.ndarray
    right: np.ndarray


def optimum(ours: Worker, path: Path, tol: float, steps: int | None = None) -> Optimum:
    """Our solver's tight optimum; its duality gap is computed without it.

    Where a tight gap takes too long, `steps` sweeps must do: the objective is then far closer
    to the least one than its certificate says.
    """
    saved = SCRATCH / "optimum.npz"
    request = {"problem": str(path), "tol": tol, "save": str(saved)}
    ours.ask(job="fit", **request, **({} if steps is None else {"max_steps": steps, "threads": 2}))
    with np.load(saved) as stored:
        left, right = stored["left"], stored["right"]
    gap = certified_gap(path, left, right)
    if steps is None and gap > 2 * tol:
        raise RuntimeError(f"the optimum of {path.name} has gap {gap:.1e}, not {tol:.1e}")
    return Optimum(objective(load(str(path)), left, right), gap, left, right)


@dataclass
class Contest:
    """Time to the goal on one family of problems: ours, a peer, ours, the next peer, …"""

    setup: Setup
    goal: float
    seeds: int
    repetitions: int
    fancyimpute_seeds: int = 3  # it takes part on the first seeds only
    fancyimpute_limit: float = 300.0  # processor seconds
    cmfrec_limit: float = 60.0  # processor seconds of one call
    kinds: tuple[Kind, ...] = USUAL_KINDS  # ways of calling cmfrec to try
    kept: int = 2  # ways to try again after the first seed
    screening: bool = True  # whether to try its best ways with a larger rank, too
    optimum_steps: int | None = None  # sweeps to the optimum where certifying it takes too long
    times: Rows = field(default_factory=list)
    paths: Rows = field(default_factory=list)
    iterations: int = 8
    ways: list[Way] = field(init=False)

    def __post_init__(self) -> None:
        self.ways = [(0, kind) for kind in self.kinds]

    def run(self) -> Contest:
        with team("malocate", "fancyimpute", "cmfrec") as workers:
            for seed in range(1, self.seeds + 1):
                self._on(seed, *workers)
        return self

    def _on(self, seed: int, ours: Worker, fancyimpute: Worker, cmfrec: Worker) -> None:
        path = self.setup.problem(seed)
        best = optimum(ours, path, self.goal / 100, self.optimum_steps)
        say(f"{self.setup.name}, seed {seed}: rank {best.left.shape[1]}, gap {best.gap:.0e}")
        doubt = 1e-9 if self.optimum_steps is None else self.goal / 10
        race = Race(path, best.objective, self.goal, doubt)
        peer = Cmfrec(cmfrec, seed, self.cmfrec_limit, self.iterations)
        self._choose(peer, race, best)
        if seed == 1:
            peer.trace_back(race)
        rivals: list[Rival] = [peer]
        if seed <= self.fancyimpute_seeds:
            rivals.append(FancyImpute(fancyimpute, self.fancyimpute_limit))
        self._take_turns(race, Ours(ours, self.goal), rivals, seed)
        path.unlink()

    def _choose(self, peer: Cmfrec, race: Race, best: Optimum) -> None:
        """On the first seed all ways of calling cmfrec are tried, on the others the best few.

        The rank it gets is the least with which the goal can be reached or, if that is faster,
        the rank of the optimum.
        """
        least = least_rank(race.path, best.left, best.right, self.goal / 10)
        ranks = (least, max(best.left.shape[1], round(1.2 * least)))
        order = [self.ways[place] for place in peer.prepare(race, _recipes(self.ways, ranks))]
        if self.screening:
            wide = [(1, kind) for _, kind in order[:2]]
            better = [wide[place] for place in peer.prepare(race, _recipes(wide, ranks))]
            order, self.screening = better + order, False
        self.ways = order[: self.kept] or self.ways
        self.iterations = peer.iterations

    def _take_turns(self, race: Race, ours: Ours, rivals: Sequence[Rival], seed: int) -> None:
        for repetition in range(1, self.repetitions + 1):
            for rival in rivals:
                mine, theirs = ours.run(race), rival.run(race)
                if mine is None:
                    raise RuntimeError(f"ours did not reach {self.goal} on {race.path.name}")
                row = {"problem": self.setup.name, "goal": self.goal, "seed": seed}
                row |= {"repetition": repetition, **_turn(race, rival, mine, theirs)}
                self.times.append(row)
        if seed == 1:
            solvers = {each.name: each.points for each in (ours, *rivals)}
            self.paths = [
                {"problem": self.setup.name, "solver": name, "cpu": p[0], "gap": race.gap(p[2])}
                for name, points in solvers.items()
                for p in points
            ]


def _turn(race: Race, rival: Rival, mine: Point, theirs: Point | None) -> dict[str, Any]:
    """Our time and the rival's; of a rival that did not get there, where it stopped."""
    last = theirs or rival.points[-1]
    ratio, gap = last[0] / mine[0], race.gap(last[2])
    there = "" if theirs else f", stopped at gap {gap:.0e}"
    say(
        f"  malocate {1e3 * mine[0]:.0f} ms, {rival.name} {1e3 * last[0]:.0f} ms"
        f" ({ratio:.1f}×, {rival.settings}{there})"
    )
    row = {"peer": rival.name, "settings": rival.settings, "malocate_cpu": mine[0]}
    row |= {"peer_cpu": last[0], "peer_gap": gap, "reached": theirs is not None}
    return row | {"ratio": ratio}


def _recipes(ways: Sequence[Way], ranks: tuple[int, int]) -> list[Recipe]:
    return [Recipe(ranks[which], **kind) for which, kind in ways]
