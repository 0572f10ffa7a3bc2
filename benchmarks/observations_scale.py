"""Time and memory of Observations: making them and grouping the answers by entry.

python benchmarks/observations_scale.py                 # 5 million answers
python benchmarks/observations_scale.py 100_000_000     # needs about 7 GB
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from malocate.problem import Observations

Result = TypeVar("Result")


def measured(name: str, job: Callable[[], Result]) -> Result:
    before = time.process_time()
    result = job()
    spent = time.process_time() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{name:<28} {spent:8.2f} s CPU   peak {peak:6.2f} GB")
    return result


def answers(size: int, shape: tuple[int, int]) -> Observations:
    rng = np.random.default_rng(0)
    rows = rng.integers(0, shape[0], size, dtype=np.int32)
    cols = rng.integers(0, shape[1], size, dtype=np.int32)
    values = rng.standard_normal(size)
    return measured("make", lambda: Observations(rows, cols, values, shape=shape))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("answers", type=int, nargs="?", default=5_000_000)
    parser.add_argument("--shape", type=int, nargs=2, default=(20_000, 5_000))
    chosen = parser.parse_args()
    made = answers(chosen.answers, tuple(chosen.shape))
    entries = measured("group by entry", lambda: made.entries)
    measured("fold of each answer", lambda: made.fold_numbers(5))
    held = sum(each.nbytes for each in (made.rows, made.cols, made.values))
    grouped = sum(each.nbytes for each in vars(entries).values() if isinstance(each, np.ndarray))
    print(f"{made!r}; holds {held / 1e9:.2f} GB, its entries {grouped / 1e9:.2f} GB")


if __name__ == "__main__":
    main()
