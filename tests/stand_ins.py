"""Estimators whose error is known: for tests of what judges them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from malocate.estimators.base import Completion
from malocate.problem import Observations


@dataclass(frozen=True, eq=False)
class Fixed:
    """Completes every segment by the same matrix."""

    matrix: np.ndarray

    def fit(self, observations: Observations, *, start: Completion | None = None) -> Completion:
        assert observations.shape == self.matrix.shape
        return Completion(self.matrix, np.eye(self.matrix.shape[1]), labels=observations.labels)


@dataclass(frozen=True)
class Memoriser:
    """Repeats what it was told, and says nought elsewhere."""

    def fit(self, observations: Observations, *, start: Completion | None = None) -> Completion:
        entries, matrix = observations.entries, np.zeros(observations.shape)
        matrix[entries.rows, entries.cols] = entries.means
        return Completion(matrix, np.eye(observations.shape[1]))


@dataclass(frozen=True)
class Shrunken:
    """Takes its start a step towards the answers it sees: a solver stopped after one step."""

    step: float = 0.5

    def fit(self, observations: Observations, *, start: Completion | None = None) -> Completion:
        entries = observations.entries
        matrix = np.zeros(observations.shape) if start is None else start.dense().copy()
        at = entries.rows, entries.cols
        matrix[at] += self.step * (entries.means - matrix[at])
        return Completion(matrix, np.eye(observations.shape[1]))


@dataclass(frozen=True, eq=False)
class Started:
    """Takes a start of its own: a leak, where that start has seen the judges."""

    start: Completion | None

    def fit(self, observations: Observations, *, start: Completion | None = None) -> Completion:
        return Shrunken(0.3).fit(observations, start=self.start)


def asked(truth: np.ndarray, n: int, rng, noise=0.1, scale=None, replicates=0, **more):
    """Give n uniform draws of a matrix with Gaussian noise, some of them re-asked on purpose."""
    rng = np.random.default_rng(rng)
    rows, cols = (rng.integers(side, size=n) for side in truth.shape)
    repeats = np.full(n + replicates, -1)
    repeats[n:] = np.arange(replicates)
    rows, cols = np.append(rows, rows[:replicates]), np.append(cols, cols[:replicates])
    values = truth[rows, cols] + noise * rng.standard_normal(n + replicates)
    if scale is not None:
        values = np.clip(values, *scale)
    return Observations(rows, cols, values, shape=truth.shape, scale=scale, repeats=repeats, **more)
