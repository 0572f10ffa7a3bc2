"""The noise of one answer, from entries that were asked more than once."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from malocate.problem import Observations

Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Noise:
    """The variance of an answer around its entry's mean, averaged over all entries.

    It was declared, or is the mean of `variances`, one from each replicated entry (`cells`).
    `fair` tells whether their mean is exactly right on average, as a certified bound needs.
    """

    variances: Floats = field(default_factory=lambda: np.zeros(0))
    cells: Int64s = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    declared: float | None = None
    fair: bool = True

    @property
    def entries(self) -> int:
        """How many replicated entries there are."""
        return len(self.variances)

    @property
    def known(self) -> bool:
        """Whether there is anything to tell the noise by."""
        return self.declared is not None or self.entries > 0

    @property
    def value(self) -> float:
        """The noise variance; zero, which is safe, where nothing is known of it."""
        if self.declared is not None:
            return self.declared
        return float(self.variances.mean()) if self.entries else 0.0

    @property
    def share(self) -> float:
        """The share of a chance of error that bounding the noise takes.

        It does not depend on what replicates there happen to be: that would be a look at data.
        """
        return 0.0 if self.declared is not None else 0.5

    def certified_lower(self, delta: float) -> float:
        """Give a bound from below that holds with a chance of 1 − delta; proven."""
        if self.declared is not None:
            return self.declared
        if not self.fair or not self.entries:
            return 0.0
        from malocate.confidence.betting import lower_mean  # numba loads at the first bound

        return lower_mean(self.variances, delta)

    def approximate_lower(self, delta: float) -> float:
        """Give a bound from below by the normal approximation."""
        from scipy.special import ndtri

        if self.declared is not None:
            return self.declared
        if self.entries < 2:
            return 0.0
        error = float(self.variances.std(ddof=1)) / math.sqrt(self.entries)
        return max(0.0, self.value - float(-ndtri(delta)) * error)


def replicate_noise(observations: Observations, weights: Floats | None) -> Noise:
    """Measure the noise by all replicated entries; `weights` as in `draw_weights`.

    With draws that were not uniform, a designed replicate weighs as its draw does. Without
    those, chance doubles must do, whose weights are only right in the long run.
    """
    if weights is None:
        entries = observations.entries
        often = entries.visits >= 2
        variances = entries.squares[often] / (entries.visits[often] - 1)
        return Noise(variances, entries.cells[often])
    designed = _grouped(observations, observations.numbering.origins, weights)
    if len(designed[0]):
        return Noise(designed[0] * designed[2], designed[1])
    variances, cells, weight = _grouped(observations, observations.entry_numbers, weights)
    weight = weight**2
    total = weight.mean() if len(weight) else 1.0
    return Noise(variances * weight / total, cells, fair=False)


def _grouped(
    observations: Observations, groups: Int64s, weights: Floats
) -> tuple[Floats, Int64s, Floats]:
    """Give the sample variance, the cell and the weight of each group of two answers or more."""
    _, first, group, size = np.unique(
        groups, return_index=True, return_inverse=True, return_counts=True
    )
    total = np.bincount(group, observations.values)
    scatter = np.bincount(group, (observations.values - (total / size)[group]) ** 2)
    often = size >= 2
    cells = observations.rows[first].astype(np.int64) * observations.shape[1]
    cells += observations.cols[first]
    return scatter[often] / (size[often] - 1), cells[often], weights[first][often]
