"""SquareRootLasso's error by the rule of its penalty, what a start saves, and fits of pure noise.

python benchmarks/square_root_lasso_rules.py            # a few minutes; goes on where it stopped
python benchmarks/square_root_lasso_rules.py --quick    # one problem, one rule

Errors are mean squared per entry at 200 × 200, mean of the seeds. Steps are those of the fit with
1 % more answers, cold and from the completion before. Pure noise should give the zero matrix.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numba
import numpy as np
import tables

from malocate import Completion, Observations, SquareRootLasso, Synthetic

Row = dict[str, Any]
Job = tuple[Row, Callable[[], Row]]

SEEDS = 5
FIRST_SEED = 930_000
SHAPE = (200, 200)
SOURCES = {
    "ratings 1–5": partial(Synthetic.ratings, SHAPE, 3),
    "rank 10, noise .1": partial(Synthetic.low_rank, SHAPE, 10, 0.1),
}
ANSWERS = (8_000, 20_000)
RULES = {"pivotal": None, "C = .7": 0.7, "C = .5": 0.5, "C = .3": 0.3}
MORE = 1.01
NOISE_SHAPES = ((30, 20), (100, 60))
NOISE_FITS = 200


def error(source: Synthetic, done: Completion) -> float:
    return float(np.mean((done.dense() - source.truth) ** 2))


def measured(make: Callable[..., Synthetic], answers: int, rule: str, seed: int) -> Row:
    """The error of a fit, and the steps of the next one, cold and warm."""
    source = make(rng=seed)
    now, later = (source.observe(n, rng=seed + 1) for n in (answers, round(MORE * answers)))
    lasso = SquareRootLasso(C=RULES[rule])
    done = lasso.fit(now)
    steps = {"cold": lasso.fit(later), "warm": lasso.fit(later, start=done)}
    return {
        "penalty": done.memory["penalty"],
        "rank": done.rank,
        "gap": done.gap,
        "error": error(source, done),
        **{f"{name}_steps": each.memory["steps"] for name, each in steps.items()},
    }


def jobs(quick: bool) -> Iterator[Job]:
    for number in range(1, 2 if quick else SEEDS + 1):
        for name, make in SOURCES.items():
            for answers in ANSWERS:
                for rule in RULES:
                    key = {"problem": name, "answers": answers, "rule": rule, "seed": number}
                    seed = FIRST_SEED + 100 * number
                    yield key, partial(measured, make, answers, rule, seed)
                    if quick:
                        return


def zero_fits(shape: tuple[int, int], fits: int) -> Row:
    """How often pure noise, one answer for two cells, gives the zero matrix."""
    zero, n = 0, math.prod(shape) // 2
    for number in range(fits):
        rng = np.random.default_rng([FIRST_SEED, number, *shape])
        rows, cols = (rng.integers(side, size=n) for side in shape)
        answers = Observations(rows, cols, rng.standard_normal(n), shape=shape)
        zero += SquareRootLasso().fit(answers).rank == 0
    return {"fits": fits, "zero": zero}


def noise_jobs(quick: bool) -> Iterator[Job]:
    for shape in NOISE_SHAPES[:1] if quick else NOISE_SHAPES:
        key = {"shape": f"{shape[0]} × {shape[1]}"}
        yield key, partial(zero_fits, shape, 10 if quick else NOISE_FITS)


def summary(rows: list[dict[str, str]]) -> list[Row]:
    """A line for each problem: the mean error by each rule."""
    return _by_rule(rows, lambda mine: f"{np.mean([float(row['error']) for row in mine]):.3g}")


def start_summary(rows: list[dict[str, str]]) -> list[Row]:
    """A line for each problem: the share of steps that a start saves, by each rule."""
    return _by_rule(rows, _saved)


def _saved(rows: list[dict[str, str]]) -> str:
    cold, warm = (sum(int(row[f"{which}_steps"]) for row in rows) for which in ("cold", "warm"))
    return f"{100 * (1 - warm / cold):.0f} %"


def _by_rule(rows: list[dict[str, str]], cell: Callable[[list[dict[str, str]]], str]) -> list[Row]:
    lines = []
    for name, answers in dict.fromkeys((row["problem"], row["answers"]) for row in rows):
        mine = [row for row in rows if (row["problem"], row["answers"]) == (name, answers)]
        line: Row = {"200 × 200": f"{name}, {int(answers):,} answers"}
        for rule in dict.fromkeys(row["rule"] for row in mine):
            line[rule] = cell([row for row in mine if row["rule"] == rule])
        lines.append(line | {"seeds": len({row["seed"] for row in mine})})
    return lines


def noise_summary(rows: list[dict[str, str]]) -> list[Row]:
    """A line for each shape: how many fits of pure noise are zero."""
    return [
        {"pure noise": row["shape"], "completion is zero": f"{row['zero']} of {row['fits']} fits"}
        for row in rows
    ]


def main() -> None:
    chosen = tables.arguments(__doc__)
    numba.set_num_threads(1)
    anew, folder = chosen.anew or chosen.quick, tables.folder(chosen.quick)
    rows = tables.fill(folder / "square_root_lasso_rules.csv", jobs(chosen.quick), anew)
    print(tables.markdown(summary(rows)))
    print(tables.markdown(start_summary(rows)))
    rows = tables.fill(folder / "square_root_lasso_noise.csv", noise_jobs(chosen.quick), anew)
    print(tables.markdown(noise_summary(rows)))


if __name__ == "__main__":
    main()
