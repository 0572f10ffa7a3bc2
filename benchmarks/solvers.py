"""Who competes: ours and the peers, each a worker in an environment of its own."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from peers import PEERS, prepare

HERE = Path(__file__).resolve().parent
CLOSE = 0.04  # share to which cmfrec's number of iterations is known
LONG = 5.0  # processor seconds from which a deterministic run is not repeated on the same seed
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")

Point = list[float]  # processor seconds, wall-clock seconds, objective


class Worker:
    """A process in some package's environment that answers requests, one at a time."""

    def __init__(self, name: str) -> None:
        python = prepare(name) if name in PEERS else Path(sys.executable)
        script = HERE / "workers" / f"run_{name}.py"
        self.process = subprocess.Popen(
            [str(python), str(script)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **ONE_THREAD},
        )

    def ask(self, **request: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        print(json.dumps(request), file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the worker gave up on {request}")
        return json.loads(answer)

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def start_ours() -> Worker:
    """Our worker with its kernels loaded: a fit's first call in a process is not what we time."""
    worker = Worker("malocate")
    worker.ask(job="compile")
    return worker


@dataclass(frozen=True)
class Race:
    """One problem, its least objective, and the relative gap to it that counts as the goal."""

    path: Path
    optimum: float
    goal: float
    doubt: float = 1e-9  # how far below, relatively, the least objective may yet lie

    @property
    def target(self) -> float:
        return self.optimum * (1 + self.goal)

    def gap(self, objective: float) -> float:
        """Relative gap; clearly below the optimum means that the optimum was none."""
        gap = objective / self.optimum - 1
        if gap < -self.doubt:
            raise RuntimeError(
                f"{self.path.name}: {objective:.12g} is below the optimum {self.optimum:.12g}"
            )
        return gap


def crossing(points: list[Point], target: float) -> Point | None:
    return next((point for point in points if point[2] <= target), None)


@dataclass
class Ours:
    """SoftImpute with nothing told but the penalty; the rank is its own affair."""

    worker: Worker
    tol: float = 1e-6
    name: str = "malocate"
    settings: str = "automatic rank"
    points: list[Point] = field(default_factory=list)

    def run(self, race: Race) -> Point | None:
        told = self.worker.ask(
            job="trajectory", problem=str(race.path), target=race.target, tol=self.tol
        )
        self.points = told["trajectory"]
        return crossing(self.points, race.target)


@dataclass
class FancyImpute:
    """Its default: a full singular value decomposition in every iteration."""

    worker: Worker
    limit: float = 300.0  # processor seconds after which it is stopped
    name: str = "fancyimpute"
    settings: str = "full SVD"
    points: list[Point] = field(default_factory=list)
    finished: dict[Path, Point | None] = field(default_factory=dict)

    def run(self, race: Race) -> Point | None:
        if race.path in self.finished:  # long, and the same at every call
            return self.finished[race.path]
        told = self.worker.ask(problem=str(race.path), target=race.target, limit=self.limit)
        self.points = told["trajectory"]
        point = crossing(self.points, race.target)
        if self.points[-1][0] > LONG:
            self.finished[race.path] = point
        return point


@dataclass(frozen=True)
class Recipe:
    """One way to call cmfrec."""

    k: int
    use_cg: bool = True
    max_cg_steps: int = 3
    use_float: bool = False

    def __str__(self) -> str:
        solver = f"CG {self.max_cg_steps}" if self.use_cg else "Cholesky"
        return f"k={self.k} {solver} {'float32' if self.use_float else 'float64'}"

    @property
    def settings(self) -> dict[str, Any]:
        given = {"use_cg": self.use_cg, "max_cg_steps": self.max_cg_steps}
        return {**given, "use_float": self.use_float, "finalize_chol": False}


Kind = dict[str, Any]
USUAL_KINDS: tuple[Kind, ...] = (
    {"max_cg_steps": 3},
    {"max_cg_steps": 3, "use_float": True},
    {"max_cg_steps": 5},
)
MORE_KINDS: tuple[Kind, ...] = ({"max_cg_steps": 8}, {"use_cg": False, "use_float": True})


@dataclass
class Cmfrec:
    """Its fastest recipe for the problem, told the rank and the iterations that it needs.

    Both are found beforehand and off the clock: it has no stopping rule and no rank of its own.
    """

    worker: Worker
    seed: int
    soonest: float = 60.0  # processor seconds: of the best recipe so far, or the limit
    iterations: int = 8  # of the best recipe, or a first guess
    name: str = "cmfrec"
    points: list[Point] = field(default_factory=list)
    best: Recipe | None = None

    @property
    def settings(self) -> str:
        return f"{self.best} ×{self.iterations}" if self.best else "did not reach the gap"

    def prepare(self, race: Race, candidates: Sequence[Recipe]) -> list[int]:
        """Find the recipe and the number of iterations that reach the goal soonest.

        Gives the places of the candidates that were the soonest so far, the last one first.
        """
        winners: list[int] = []
        for place, recipe in enumerate(candidates):
            tried = self._search(race, recipe)
            self.points = self.points or list(tried.values())
            arrived = [count for count, point in tried.items() if point[2] <= race.target]
            if arrived and tried[min(arrived)][0] < self.soonest:
                self.best, self.iterations = recipe, min(arrived)
                self.soonest = tried[self.iterations][0]
                self.points = [tried[count] for count in sorted(tried)]
                winners.insert(0, place)
        return winners

    def trace_back(self, race: Race) -> None:
        """Add the points of fewer iterations: the way down to the goal, for the picture."""
        if self.best is not None:
            counts = [2**k for k in range(self.iterations.bit_length()) if 2**k < self.iterations]
            early = [self._call(race, self.best, count) for count in counts]
            self.points = sorted(early + self.points)

    def run(self, race: Race) -> Point | None:
        if self.best is None:
            return None
        point = self._call(race, self.best, self.iterations)
        return [*point[:2], race.target]  # the gap is there; float32 sums may blur the last digit

    def _search(self, race: Race, recipe: Recipe) -> dict[int, Point]:
        """Call with more iterations until the goal is reached, then narrow down the count.

        A recipe that cannot beat the best so far is given up.
        """
        tried: dict[int, Point] = {}
        low, count = 0, max(1, self.iterations // 2)
        while True:
            tried[count] = self._call(race, recipe, count)
            if tried[count][2] <= race.target:
                break
            affordable = int(self.soonest / tried[count][0] * count)
            low, count = count, min(math.ceil(1.6 * count), affordable)
            if count <= low:
                return tried
        while count - low > max(1, CLOSE * count):
            middle = self._guess(race, tried, low, count)
            tried[middle] = self._call(race, recipe, middle)
            low, count = (low, middle) if tried[middle][2] <= race.target else (middle, count)
        return tried

    @staticmethod
    def _guess(race: Race, tried: dict[int, Point], low: int, high: int) -> int:
        """Where the goal lies between two counts if the gap falls geometrically."""
        if low == 0:
            return high // 2
        before, after = (max(race.gap(tried[count][2]), 1e-12) for count in (low, high))
        share = math.log(before / race.goal) / math.log(before / after)
        middle = low + math.ceil((high - low) * share)
        margin = math.ceil(CLOSE * high / 2)
        return min(max(middle, low + margin), high - margin)

    def _call(self, race: Race, recipe: Recipe, iterations: int) -> Point:
        told = self.worker.ask(
            problem=str(race.path),
            k=recipe.k,
            niter=iterations,
            seed=self.seed,
            settings=recipe.settings,
        )
        point: Point = told["trajectory"][0]
        race.gap(point[2])
        return point
