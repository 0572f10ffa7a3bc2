"""Draws to ask a source with, for tests."""

from __future__ import annotations

import numpy as np

from malocate.sources import Asked


def draws_of(shape: tuple[int, int], n: int, seed: int = 0) -> Asked:
    """Give n uniform draws, numbered from 0, that know how often their cell was visited before."""
    rng = np.random.default_rng(seed)
    rows, cols = (rng.integers(side, size=n) for side in shape)
    return Asked(rows, cols, np.arange(n), visits_before(rows * shape[1] + cols))


def visits_before(cells: np.ndarray) -> np.ndarray:
    """Count, for each cell, its earlier occurrences."""
    seen: dict[int, int] = {}
    visits = np.empty(len(cells), dtype=np.int64)
    for place, cell in enumerate(cells.tolist()):
        visits[place] = seen.get(cell, 0)
        seen[cell] = visits[place] + 1
    return visits


def part_of(asked: Asked, places: np.ndarray) -> Asked:
    """Give some of the draws."""
    return Asked(asked.rows[places], asked.cols[places], asked.draws[places], asked.visits[places])
