"""The dual objective of a scaled residual: how far least squares with the nuclear norm can fall.

    maximise over s, 0 ≤ s ≤ penalty / ‖R‖:  s Σ_e R_e y_e − ½ s² Σ_e R_e² / w_e

R is the weighted residual w (y − M) of any M at all; whatever s gives lies below the minimum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Dual:
    """The two sums, Σ R y and Σ R² / w, and the penalty.

    >>> Dual(fit=2.0, square=1.0, penalty=1.0).at(norm=1.0), Dual(2.0, 1.0, 1.0).at(norm=2.0)
    (1.5, 0.875)
    """

    fit: float
    square: float
    penalty: float

    def at(self, norm: float) -> float:
        """Give the dual objective if the residual's spectral norm is `norm`."""
        if self.square == 0.0:
            return 0.0
        largest = self.penalty / norm if norm > 0.0 else math.inf
        scale = min(max(0.0, self.fit / self.square), largest)
        return scale * self.fit - 0.5 * scale**2 * self.square

    def norm_for(self, value: float) -> float:
        """Give the largest norm at which the dual objective is as high, if it ever is."""
        highest = self.fit / self.square  # the scale at which the dual objective is largest
        short = max(0.0, 1 - 2 * (value / self.fit) / highest)
        return self.penalty / max(highest * (1 - math.sqrt(short)), 1e-300)
