"""Error estimates: what held-out answers say of the mean squared error, on average exactly.

All are of the fold average M̄, which is what the ambiguity is taken off for:
R(M̄) = mean over folds of R(M̂) − ambiguity.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from malocate.confidence.evidence import Evidence
from malocate.errors import InvalidInput

Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]

FEWEST_PAIRED = 30
"""Entries with pairs from which on a slope is fitted to them; with fewer it fits their noise."""

LEAST_SHARE = 0.2
"""Share of the clustered variance that is kept whatever a correction says."""


@dataclass(frozen=True)
class Estimate:
    """An estimated mean squared error and its standard error; infinite where nothing is known.

    It may be below zero: it is right on average, which a value cut off at zero is not.
    """

    kind: str
    value: float
    se: float


def residual(evidence: Evidence) -> Estimate:
    """Mean squared miss of all held-out draws, less the noise that replicates show."""
    if not evidence.folds:
        return unknown("residual")
    mean, draws = _mean_square(evidence)
    noise = evidence.noise
    value = mean - noise.value - evidence.ambiguity
    influences = [draws]
    if noise.declared is None and noise.entries:
        off = (noise.value - noise.variances) / noise.entries
        influences.append(Influence(noise.cells, off))
    enough = len(draws.values) > 1 and (noise.declared is not None or noise.entries != 1)
    error = _standard_error(influences, _between(evidence)) if enough else math.inf
    return Estimate("residual", value, error)


def pairs(evidence: Evidence) -> Estimate:
    """Mean product of two misses at one entry: the paper's estimate, which needs no noise level."""
    found = [fold.pairs for fold in evidence.folds if len(fold.pairs)]
    if not found:
        return unknown("pairs")
    mean, influence = _mean_of_means([each.products for each in found], pooled=True)
    cells = np.concatenate([each.cells for each in found])
    enough = len(np.unique(cells)) > 1
    error = _standard_error([Influence(cells, influence)]) if enough else math.inf
    return Estimate("pairs", mean - evidence.ambiguity, error)


def two_phase(evidence: Evidence) -> Estimate:
    """Pair products, corrected by how the pairs' squared misses differ from everybody's.

    The pairs are those within a fold: others were trained on.
    """
    found = [fold.pairs for fold in evidence.folds if len(fold.pairs)]
    cells = np.concatenate([np.zeros(0, dtype=np.int64), *(each.cells for each in found)])
    if len(np.unique(cells)) < FEWEST_PAIRED:
        return unknown("two_phase")
    of_products, products = _mean_of_means([each.products for each in found], pooled=True)
    of_squares, squares = _mean_of_means([each.squares for each in found], pooled=True)
    spread = float(squares @ squares)
    slope = float(squares @ products) / spread if spread > 0.0 else 0.0
    mean, draws = _mean_square(evidence)
    influences = [Influence(cells, products - slope * squares)]
    influences.append(Influence(draws.cells, slope * draws.values))
    value = of_products + slope * (mean - of_squares) - evidence.ambiguity
    error = _standard_error(influences, slope**2 * _between(evidence))
    return Estimate("two_phase", value, error)


ESTIMATES: dict[str, Callable[[Evidence], Estimate]] = {
    estimate.__name__: estimate for estimate in (residual, pairs, two_phase)
}


def estimate_of(kind: str) -> Callable[[Evidence], Estimate]:
    """Give the estimate of a name."""
    if not isinstance(kind, str) or kind not in ESTIMATES:
        raise InvalidInput(f"estimate is {kind!r}; choose from {', '.join(ESTIMATES)}.")
    return ESTIMATES[kind]


def unknown(kind: str) -> Estimate:
    """Give the estimate of those who have seen nothing."""
    return Estimate(kind, math.inf, math.inf)


@dataclass(frozen=True, eq=False)
class Influence:
    """How much each draw or entry moves an estimate, and the cell that it belongs to."""

    cells: Int64s
    values: Floats


def _mean_square(evidence: Evidence) -> tuple[float, Influence]:
    """Give the mean over folds of their mean squared miss, and each draw's influence on it."""
    folds = [fold.units for fold in evidence.folds]
    mean, influence = _mean_of_means([units.squares for units in folds])
    return mean, Influence(np.concatenate([units.cells for units in folds]), influence)


def _mean_of_means(samples: Sequence[Floats], pooled: bool = False) -> tuple[float, Floats]:
    """Give the mean of the samples' means, and how much each value moves it.

    Where samples are small, `pooled` measures by the mean of all and allows for its own error:
    a sample of one does not differ from its own mean.
    """
    means, count = [float(sample.mean()) for sample in samples], sum(map(len, samples))
    middles = [float(np.concatenate(samples).mean())] * len(samples) if pooled else means
    stretch = math.sqrt(count / (count - 1)) if pooled and count > 1 else 1.0
    parts = [
        stretch * (sample - middle) / (len(samples) * len(sample))
        for sample, middle in zip(samples, middles, strict=True)
    ]
    return float(np.mean(means)), np.concatenate(parts)


def _standard_error(influences: Sequence[Influence], between: float = 0.0) -> float:
    """Give the standard error where all that happens at one entry may hang together.

    `between` is the part of its square that is no error: that entries differ.
    """
    cells = np.concatenate([each.cells for each in influences])
    values = np.concatenate([each.values for each in influences])
    square = float(np.sum(_by_cell(cells, values) ** 2))
    return math.sqrt(max(LEAST_SHARE * square, square - between))


def _between(evidence: Evidence) -> float:
    """Give what differing entries add to the squares of the entries' influences.

    Draws fall on entries independently, so an entry with a large error is drawn twice no more
    often than another; but its two draws' influences have the same sign. How much alike they
    are is seen at entries with two draws in one fold, which no training has made alike.
    """
    if not evidence.scattered:
        return 0.0
    weights, alike, pairs = [], 0.0, 0.0
    for fold in evidence.folds:
        units = fold.units
        off = units.squares - units.squares.mean()
        weights.append(np.full(len(units), 1 / (len(evidence.folds) * len(units))))
        alike += float(np.sum(_by_cell(units.cells, off) ** 2) - off @ off)
        counts = _by_cell(units.cells, np.ones(len(units)))
        pairs += float(counts @ counts - len(units))
    if pairs == 0.0 or alike <= 0.0:
        return 0.0
    weight = np.concatenate(weights)
    cells = np.concatenate([fold.units.cells for fold in evidence.folds])
    together = float(np.sum(_by_cell(cells, weight) ** 2) - weight @ weight)
    return alike / pairs * together


def _by_cell(cells: Int64s, values: Floats) -> Floats:
    """Sum the values of each cell; where cells are few, those without values have sum zero."""
    if cells.max(initial=0) < 8 * len(cells):
        place = cells  # no need to sort
    else:
        _, place = np.unique(cells, return_inverse=True)
    return np.bincount(place, values).astype(np.float64, copy=False)
