"""Answers on a scale of whole numbers: rounding, clipping, and the mean answer that it makes."""

from __future__ import annotations

import numpy as np

from malocate.problem.arrays import Floats

Scale = tuple[int, int] | None


def spread(scale: tuple[int, int]) -> float:
    """Give the standard deviation of preferences on a scale: a quarter of its length."""
    return (scale[1] - scale[0]) / 4


def on_scale(values: Floats, scale: Scale) -> Floats:
    """Count values from the middle of the scale, round and clip them; as they are without one.

    >>> on_scale(np.array([-9.0, 0.0, 0.6]), (1, 5)).tolist()
    [1.0, 3.0, 4.0]
    """
    if scale is None:
        return values
    return np.clip(np.floor(values + sum(scale) / 2 + 0.5), *scale)


def mean_answers(latent: Floats, noise: Floats, scale: Scale) -> Floats:
    """Give the mean of `on_scale(latent + Gaussian noise)`, exactly; `noise` is its deviation.

    It is low + P(answer ≥ low + 1) + … + P(answer ≥ high).

    >>> mean_answers(np.array([0.0, 0.0, 0.6]), np.array([0.0, 7.0, 0.0]), (1, 5)).tolist()
    [3.0, 3.0, 4.0]
    """
    if scale is None:
        return latent
    low, high = scale
    mean = np.full(latent.shape, float(low))
    for answer in range(low + 1, high + 1):
        mean += _chance_of_above(latent + (low + high) / 2 - (answer - 0.5), noise)
    return mean


def _chance_of_above(distance: Floats, noise: Floats) -> Floats:
    """Give the chance that `distance` plus noise is at least 0."""
    from scipy.special import ndtr

    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(noise > 0, ndtr(distance / noise), distance >= 0)
