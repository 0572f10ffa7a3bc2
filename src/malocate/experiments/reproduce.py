"""Reproduce the paper's figures: all runs of an experiment, in parallel, resumable."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from malocate import __version__
from malocate.compute import Compute
from malocate.experiments import floor
from malocate.experiments.paper import (
    STRATEGIES,
    Experiment,
    Recipe,
    design_of,
    experiment,
    needs_bands,
)
from malocate.experiments.sharing import SharedFits
from malocate.experiments.simulation import simulate

if TYPE_CHECKING:
    import pandas

COLUMNS = ["experiment", "recipe", "run", "strategy", "spent", "loss_1", "loss_inf"]
"""The columns of an experiment's rows. Parts have one more, `capped`: the hardest is at its cap."""


@dataclass(frozen=True)
class Task:
    """One run of an experiment with one recipe: all strategies on the same answers."""

    number: int
    recipe: Recipe
    run: int
    seed: int

    def stem(self, problem: Experiment) -> str:
        """Give the name under which its rows are kept, other ones for other settings."""
        design = design_of(problem, self.recipe, "malocate-inf", self.draws_seed)
        settings = f"{__version__} {problem} {design.to_json()}".encode()
        digest = hashlib.blake2b(settings, digest_size=4).hexdigest()
        return f"experiment-{self.number}-{self.recipe}-run-{self.run:02d}-{digest}"

    @property
    def draws_seed(self) -> int:
        """The seed of the run's draws and answers; the problem's is the same for all runs."""
        sequence = np.random.SeedSequence([self.seed, self.number, self.run])
        return int(sequence.generate_state(1, np.uint32)[0])


def reproduce(
    number: int,
    *,
    recipes: Iterable[Recipe] = ("paper", "best"),
    runs: int = 15,
    compute: Compute | None = None,
    seed: int = 0,
    folder: Path,
    done: Callable[[Task], Any] = lambda _: None,
    problem: Experiment | None = None,
) -> pandas.DataFrame:
    """Give the rows of an experiment: one for each round of each strategy of each run.

    Each run's rows are kept in `folder`/parts as soon as they are there: what a killed
    reproduction has finished is not run again. `compute` is where runs are done, `done` is called
    after each. `problem` is another one than the paper's of that number, such as a small one.
    """
    import pandas

    parts = folder / "parts"
    parts.mkdir(parents=True, exist_ok=True)
    tasks = [Task(number, recipe, run, seed) for recipe in recipes for run in range(runs)]
    problem = problem or experiment(number)
    for task in _finished(tasks, compute or Compute(), parts, problem):
        done(task)
    rows = [pandas.read_csv(parts / f"{task.stem(problem)}.csv") for task in tasks]
    return pandas.concat(rows, ignore_index=True)


def _finished(
    tasks: list[Task], compute: Compute, parts: Path, problem: Experiment
) -> Iterator[Task]:
    """Run what is not yet there, in parallel; give the tasks as they are done.

    One that would be left over for a worker alone is run first, its fits spread over all workers.
    """
    missing = [task for task in tasks if not (parts / f"{task.stem(problem)}.csv").exists()]
    yield from (task for task in tasks if task not in missing)
    odd = 1 if len(missing) % compute.workers == 1 else 0
    here = ((task, rows_of(task, problem, compute)) for task in missing[:odd])
    with closing(compute.each(partial(_run, problem), missing[odd:], ordered=False)) as there:
        for task, rows in chain(here, there):
            _keep(rows, parts, task.stem(problem))
            yield task


def _run(problem: Experiment, task: Task) -> tuple[Task, pandas.DataFrame]:
    return task, rows_of(task, problem)


def _keep(rows: pandas.DataFrame, parts: Path, stem: str) -> None:
    """Keep the rows of a run; a file is there in full or not at all."""
    unfinished = parts / f".{stem}.{os.getpid()}"
    rows.to_csv(unfinished, index=False, float_format="%.8g")
    unfinished.replace(parts / f"{stem}.csv")


def rows_of(task: Task, problem: Experiment, compute: Compute | None = None) -> pandas.DataFrame:
    """Give the rows of one run: all strategies, and the floor for the recipe `best`.

    `compute` is where its fits are done; by default here, one after the other.
    """
    import pandas

    sources, shared = problem.sources(task.seed), SharedFits(map=(compute or Compute(1)).map)
    frames = []
    for strategy in STRATEGIES:
        design = design_of(problem, task.recipe, strategy, task.draws_seed)
        run = simulate(
            design,
            sources,
            bands=needs_bands(task.recipe, strategy),
            progress=False,
            map_of=shared.map_of,
        )
        frame = run.frame()
        capped = frame[f"n_{problem.hardest}"] >= problem.side**2
        frames.append(frame.assign(strategy=strategy, capped=capped & (task.recipe != "best")))
    if task.recipe == "best":
        frames += floor.frames(problem, sources, design)
    rows = pandas.concat(frames, ignore_index=True)
    rows = rows.assign(experiment=task.number, recipe=task.recipe, run=task.run)
    return rows[[*COLUMNS, "capped"]]
