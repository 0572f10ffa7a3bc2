"""What a draw weighs where not every cell had the same chance."""

from __future__ import annotations

import numpy as np

from malocate.problem import Observations
from malocate.problem.arrays import Floats

UNIFORM = 1e-4
"""Relative difference of stated probabilities that is put down to rounding."""


def draw_weights(observations: Observations) -> Floats | None:
    """Give 1 / (askable cells · probability) for each draw; none where all draws were uniform.

    >>> answers = Observations([0, 1], [0, 0], [3, 4], shape=(2, 1), probability=[0.25, 0.75])
    >>> draw_weights(answers)
    array([2.        , 0.66666667])
    """
    if observations.probability is None:
        return None
    weights = 1.0 / (observations.n_askable * observations.probability)
    return None if np.all(np.abs(weights - 1.0) <= UNIFORM) else weights
