"""What `parallel_segments` costs: the loss at the same budget, and the rounds that it saves.

python benchmarks/parallel_segments.py            # goes on where it was stopped; ten minutes
python benchmarks/parallel_segments.py --quick

Forty segments, every eighth of them hard; one to forty asked at once, on the same answers. Each
loss is held against that of one at a time, seed by seed; and against asking everybody alike.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from statistics import fmean, stdev
from typing import Any

import tables
from scipy import stats
from threadpoolctl import threadpool_limits

from malocate import (
    Design,
    Growing,
    HoldOut,
    Loss,
    MALocate,
    SoftImpute,
    Synthetic,
    Uniform,
    simulate,
)
from malocate.strategies import Strategy

SEGMENTS, SIDE, SEEDS = 40, 30, 10
FIRST_SEED = 640_000
PER_SEGMENT, NOISE = 700, 0.3
RANKS = (1,) * 7 + (6,)
AT_ONCE = (1, 2, 5, 10, 20, 40)
POWERS = {"∞": math.inf, "1": 1.0}
ALIKE = "alike"


def measure(p: str, several: str, seed: int, segments: int) -> dict[str, float]:
    """Run one campaign and give its true losses and its rounds."""
    start = FIRST_SEED + 1_000 * seed
    sources = [
        Synthetic.low_rank((SIDE, SIDE), RANKS[k % len(RANKS)], noise=NOISE, rng=start + k)
        for k in range(segments)
    ]
    strategy: Strategy = Uniform() if several == ALIKE else MALocate(parallel_segments=int(several))
    design = Design(
        [source.segment(f"s{place}") for place, source in enumerate(sources)],
        PER_SEGMENT * segments,
        loss=Loss(POWERS[p]),
        estimator=SoftImpute(),
        validation=HoldOut(0.2),
        deliver="ensemble",
        schedule=Growing(1.5),
        strategy=strategy,
        seed=start,
    )
    with threadpool_limits(1):
        run = simulate(design, sources, progress=False)
    return {"loss": run.records[-1].losses["loss"], "rounds": float(len(run.records))}


def jobs(quick: bool) -> Iterator[tuple[dict[str, Any], Callable[[], dict[str, float]]]]:
    segments, seeds = (8, 2) if quick else (SEGMENTS, SEEDS)
    for seed in range(seeds):
        for p in POWERS:
            for several in (*map(str, AT_ONCE), ALIKE):
                key = {"p": p, "at once": several, "seed": seed, "segments": segments}
                arguments = p, several, seed, segments
                yield key, lambda told=arguments: measure(*told)


def summary(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """One line for each loss and number of segments at once."""
    keys = dict.fromkeys((row["p"], row["at once"]) for row in rows)
    return [_line(rows, p, several) for p, several in sorted(keys, key=_order)]


def _order(key: tuple[str, str]) -> tuple[int, float]:
    return list(POWERS).index(key[0]), math.inf if key[1] == ALIKE else int(key[1])


def _line(rows: list[dict[str, str]], p: str, several: str) -> dict[str, str]:
    mine = [row for row in rows if (row["p"], row["at once"]) == (p, several)]
    one = {row["seed"]: row for row in rows if (row["p"], row["at once"]) == (p, "1")}
    logs = [math.log(float(row["loss"]) / float(one[row["seed"]]["loss"])) for row in mine]
    segments = int(mine[0]["segments"])
    return {
        "loss": f"p = {p}",
        "at once": "everybody alike" if several == ALIKE else several,
        "share of the segments": "–" if several == ALIKE else f"{int(several) / segments:.1%}",
        "loss, over one at a time": "1" if several == "1" else interval(logs),
        "rounds": f"{fmean(float(row['rounds']) for row in mine):,.0f}",
        "seeds": str(len(mine)),
    }


def interval(logs: list[float]) -> str:
    """Give the geometric mean of paired ratios with its 95 % interval.

    >>> interval([0.0, 0.1])
    '1.051 (0.557 – 1.984)'
    """
    middle, ends = fmean(logs), ""
    if len(logs) > 1:
        away = float(stats.t.ppf(0.975, len(logs) - 1)) * stdev(logs) / math.sqrt(len(logs))
        ends = f" ({math.exp(middle - away):.3f} – {math.exp(middle + away):.3f})"
    return f"{math.exp(middle):.3f}{ends}"


def main() -> None:
    chosen = tables.arguments(__doc__)
    path = tables.folder(chosen.quick) / "parallel_segments.csv"
    rows = tables.fill(path, jobs(chosen.quick), chosen.anew)
    print(tables.markdown(summary(rows)))


if __name__ == "__main__":
    main()
