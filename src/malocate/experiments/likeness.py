"""Likenesses: what a segment's matrix may be like, and made-up matrices that are like it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from malocate.errors import InvalidInput
from malocate.problem import Segment
from malocate.problem.arrays import Floats
from malocate.sources import Synthetic
from malocate.sources.ratings import on_scale

ROUNDS = 4
"""How often a matrix on a scale is put right: rounding and clipping change its variances."""

LEAST_SIGNAL = 0.02
"""The least share of the answers' variance that is taken to be signal."""


@dataclass(frozen=True)
class Likeness:
    """What answers of a segment look like: their mean, their variances, and what is behind them.

    Of the variance of the cells' means, the shares `rows` and `cols` are differences between rows
    and between columns; the rest is `rank` patterns, the i-th of strength i^(−decay). `variance` is
    that of all answers, `noise` that of two answers at one cell.

    >>> like = Likeness(mean=3.0, variance=1.0, noise=0.4, rows=0.2, cols=0.2, rank=2, decay=0.0)
    >>> source = like.source(Segment("north", (60, 40), scale=(1, 5)), np.random.default_rng(0))
    >>> answers = source.observe(20_000)
    >>> round(float(answers.values.mean()), 1), round(float(answers.values.var()), 1)
    (3.0, 1.0)
    >>> bool(0.35 < answers.entries.noise_variance < 0.45)
    True
    """

    mean: float
    variance: float
    noise: float
    rows: float
    cols: float
    rank: int
    decay: float

    def source(self, segment: Segment, rng: np.random.Generator) -> Synthetic:
        """Make a matrix of the segment's shape, and whoever answers for it."""
        left, right = self._patterns(segment.shape, rng)
        signal = max(self.variance - self.noise, LEAST_SIGNAL * self.variance)
        level = math.sqrt(signal / max(float((left @ right.T).var()), 1e-300))
        seed = int(rng.integers(2**63))
        if segment.scale is None:
            factors = _shifted(left * level, right, self.mean - level * _mean(left, right))
            return Synthetic(*factors, math.sqrt(self.noise), None, seed)
        return self._rated(segment, left * level, right, seed, rng)

    def effective_rank(self, shape: tuple[int, int]) -> int:
        """Give how many equally strong patterns would be as concentrated: (Σs²)²/Σs⁴, rounded."""
        strengths = self._strengths(shape) ** 2
        return max(1, round(float(strengths.sum() ** 2 / (strengths**2).sum())))

    def _strengths(self, shape: tuple[int, int]) -> Floats:
        """Give the strengths of all patterns: of rows, of columns, and those of both."""
        number = np.arange(1, min(self.rank, *shape) + 1, dtype=np.float64)
        patterns = number**-self.decay
        patterns *= math.sqrt(max(0.0, 1 - self.rows - self.cols)) / np.linalg.norm(patterns)
        return np.concatenate([np.sqrt([self.rows, self.cols]), patterns])

    def _patterns(self, shape: tuple[int, int], rng: np.random.Generator) -> tuple[Floats, Floats]:
        strengths = self._strengths(shape)
        left, right = (rng.standard_normal((side, len(strengths))) for side in shape)
        left[:, 1] = right[:, 0] = 1.0
        return left * strengths, right

    def _rated(
        self, segment: Segment, left: Floats, right: Floats, seed: int, rng: np.random.Generator
    ) -> Synthetic:
        """Give answers on a scale whose mean and variances are as they should be."""
        scale = whole_scale(segment)
        latent, chance = left @ right.T, rng.standard_normal((2, *segment.shape))
        level, noise, shift = 1.0, math.sqrt(self.noise), self.mean - sum(scale) / 2
        shift -= float(latent.mean())
        for _ in range(ROUNDS):
            answers = on_scale(level * latent + shift + noise * chance, scale)
            scatter = float(((answers[0] - answers[1]) ** 2).mean()) / 2
            signal = max(float(answers.var()) - scatter, 1e-9)
            wanted = max(self.variance - self.noise, LEAST_SIGNAL * self.variance)
            noise *= _step(self.noise, max(scatter, 1e-9))
            level *= _step(wanted, signal)
            shift += self.mean - float(answers.mean())
        return Synthetic(*_shifted(level * left, right, shift), noise, scale, seed)


def whole_scale(segment: Segment) -> tuple[int, int]:
    """Give a segment's scale in whole numbers; refuse one that has none."""
    low, high = segment.scale or (0.0, 0.0)
    if not (low.is_integer() and high.is_integer()):
        raise InvalidInput(
            f"Segment {segment.name!r} has the scale {segment.scale}; a twin answers in whole "
            "numbers. Give it whole ends, or simulate with a source of your own in Python."
        )
    return int(low), int(high)


def _step(wanted: float, found: float) -> float:
    """Give the factor that puts a standard deviation right, at most double and at least half."""
    return min(2.0, max(0.5, math.sqrt(wanted / found)))


def _mean(left: Floats, right: Floats) -> float:
    return float(left.mean(axis=0) @ right.mean(axis=0))


def _shifted(left: Floats, right: Floats, shift: float) -> tuple[Floats, Floats]:
    """Add one number to all entries of a matrix that is given by its factors."""
    return (
        np.column_stack([left, np.full(len(left), shift)]),
        np.column_stack([right, np.ones(len(right))]),
    )
