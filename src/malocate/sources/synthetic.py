"""Where answers come from when the truth is known: synthetic matrices to practise on."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from malocate.errors import InvalidInput
from malocate.problem import Observations

__all__ = ["Synthetic"]

Floats: TypeAlias = NDArray[np.float64]
Shape: TypeAlias = tuple[int, int]
Rng: TypeAlias = int | np.random.Generator | np.random.SeedSequence
_GATHERED = 1 << 22  # numbers gathered from the factors at a time


@dataclass(frozen=True, eq=False)
class Synthetic:
    """A made-up matrix that answers like a panel: with noise.

    The latent matrix is `left @ right.T`, kept as factors so that large shapes cost little.
    Without a `scale`, an answer is the latent entry plus Gaussian noise of standard deviation
    `noise`, and the truth is the latent matrix. With a `scale` (low, high) of whole numbers,
    the noisy entry is counted from the middle of the scale, rounded, and clipped to the scale;
    the truth is then the *mean answer* of each cell, computed exactly as
    low + P(answer ≥ low + 1) + … + P(answer ≥ high) from the normal distribution.

    >>> from malocate import Synthetic
    >>> source = Synthetic.low_rank(shape=(30, 20), rank=2, noise=0.1, rng=0)
    >>> answers = source.observe(100)
    >>> len(answers), answers.shape, source.truth.shape
    (100, (30, 20), (30, 20))
    """

    left: Floats = field(repr=False)
    right: Floats = field(repr=False)
    noise: float
    scale: tuple[int, int] | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.noise) and self.noise >= 0):
            raise InvalidInput(f"`noise` is {self.noise}; it must be a finite number, at least 0.")
        low, high = self.scale or (0, 1)
        if not (low < high and isinstance(low, int) and isinstance(high, int)):
            raise InvalidInput(f"`scale` is {self.scale}; it must be two integers, low < high.")

    @classmethod
    def low_rank(
        cls, shape: Shape = (200, 200), rank: int = 10, noise: float = 0.1, rng: Rng = 0
    ) -> Self:
        """Give a matrix of exact rank whose entries have variance about 1.

        The factors' entries are normal with variance rank^(−1/2).

        >>> source = Synthetic.low_rank(shape=(200, 200), rank=10, noise=0.1, rng=0)
        >>> bool(0.8 < source.truth.var() < 1.25)
        True
        """
        left, right, seed = _factors(shape, rank, rng)
        return cls(left, right, noise, None, seed)

    @classmethod
    def ratings(
        cls,
        shape: Shape = (200, 200),
        rank: int = 3,
        noise: float = 0.5,
        scale: tuple[int, int] = (1, 5),
        rng: Rng = 0,
    ) -> Self:
        """Give people's ratings: whole numbers on a scale around a low-rank preference.

        The preference has the middle of the scale as its mean and a quarter of the scale's
        length as its standard deviation. Rounding and clipping bend the truth, the mean
        answer per cell, so that it is only nearly of low rank.

        >>> source = Synthetic.ratings(shape=(30, 20), rank=2, rng=0)
        >>> sorted(set(source.observe(500).values.tolist()))
        [1.0, 2.0, 3.0, 4.0, 5.0]
        """
        left, right, seed = _factors(shape, rank, rng)
        return cls(left * ((scale[1] - scale[0]) / 4), right, noise, scale, seed)

    @classmethod
    def decaying(
        cls, shape: Shape = (200, 200), exponent: float = 1.0, noise: float = 0.1, rng: Rng = 0
    ) -> Self:
        """Give a full-rank matrix whose i-th singular value is proportional to i^(−exponent).

        The mean square of its entries is 1.

        >>> values = np.linalg.svd(Synthetic.decaying((30, 20), exponent=2, rng=0).truth)[1]
        >>> [round(float(values[0] / value), 6) for value in values[:3]]
        [1.0, 4.0, 9.0]
        """
        left, right, seed = _factors(shape, min(shape), rng)
        left, right = (np.linalg.qr(factor)[0] for factor in (left, right))
        values = np.arange(1, min(shape) + 1) ** -float(exponent)
        values *= math.sqrt(math.prod(shape)) / np.linalg.norm(values)
        return cls(left * values, right, noise, None, seed)

    @property
    def shape(self) -> Shape:
        """How many rows and columns the matrix has."""
        return len(self.left), len(self.right)

    @cached_property
    def truth(self) -> Floats:
        """The dense matrix of mean answers, read-only, made when first asked for."""
        truth = self._mean_answers(self.left @ self.right.T)
        truth.setflags(write=False)
        return truth

    def truth_at(self, rows: ArrayLike, cols: ArrayLike) -> Floats:
        """Give the mean answers of some cells without making the dense matrix.

        >>> source = Synthetic.ratings(shape=(30, 20), rank=2, rng=0)
        >>> bool(np.allclose(source.truth_at([3, 7], [4, 0]), source.truth[[3, 7], [4, 0]]))
        True
        """
        return self._mean_answers(self._latent(np.asarray(rows), np.asarray(cols)))

    def observe(
        self, n: int, *, rng: Rng | None = None, row_weights: ArrayLike | None = None
    ) -> Observations:
        """Ask `n` cells, drawn uniformly with replacement, and give their answers.

        The same seed gives the same answers, and so does calling again without one: the seed
        then comes from the source. A `Generator` moves on, so its next call gives new answers.
        A larger `n` with the same seed keeps the first answers and adds to them. With
        `row_weights`, one number per row, rows are drawn in proportion to it, and each answer
        records the probability with which its cell was drawn.

        >>> source = Synthetic.low_rank(shape=(30, 20), rank=2, rng=0)
        >>> some, more = source.observe(50, rng=7), source.observe(60, rng=7)
        >>> bool((some.values == more.values[:50]).all())
        True
        >>> source.observe(2, row_weights=[1] + 29 * [0]).probability.tolist()
        [0.05, 0.05]
        """
        if n < 0:
            raise InvalidInput(f"`n` is {n}; the number of answers must be at least 0.")
        rng = np.random.default_rng(self.seed if rng is None else rng)
        for_rows, for_cols, for_noise = (np.random.default_rng(_new_seed(rng)) for _ in range(3))
        cols = for_cols.integers(self.shape[1], size=n)
        if row_weights is None:
            rows, probability = for_rows.integers(self.shape[0], size=n), None
        else:
            shares = _shares(row_weights, self.shape[0])
            rows = for_rows.choice(self.shape[0], size=n, p=shares)
            probability = shares[rows] / self.shape[1]
        values = self._latent(rows, cols) + self.noise * for_noise.standard_normal(n)
        if self.scale is not None:
            values = np.clip(np.floor(values + sum(self.scale) / 2 + 0.5), *self.scale)
        return Observations(
            rows, cols, values, shape=self.shape, scale=self.scale, probability=probability
        )

    def _latent(self, rows: NDArray[np.integer], cols: NDArray[np.integer]) -> Floats:
        step = max(1, _GATHERED // self.left.shape[1])
        parts = (slice(start, start + step) for start in range(0, len(rows), step))
        sums = [np.einsum("ij,ij->i", self.left[rows[p]], self.right[cols[p]]) for p in parts]
        return np.concatenate([np.empty(0), *sums])

    def _mean_answers(self, latent: Floats) -> Floats:
        if self.scale is None:
            return latent
        low, high = self.scale
        mean = np.full(latent.shape, float(low))
        for answer in range(low + 1, high + 1):
            above = latent + (low + high) / 2 - (answer - 0.5)
            mean += ndtr(above / self.noise) if self.noise > 0 else above >= 0
        return mean


def _shares(weights: ArrayLike, n_rows: int) -> Floats:
    numbers = np.asarray(weights, dtype=np.float64)
    if numbers.shape != (n_rows,):
        raise InvalidInput(f"`row_weights` has shape {numbers.shape}; it must be {(n_rows,)}.")
    if not (np.isfinite(numbers).all() and numbers.min() >= 0 and numbers.any()):
        raise InvalidInput("`row_weights` must be finite, at least 0, and not all 0.")
    return numbers / float(numbers.sum())


def _factors(shape: Shape, rank: int, rng: Rng) -> tuple[Floats, Floats, int]:
    if min(shape) < 1:
        raise InvalidInput(f"`shape` is {shape}; both sides must be at least 1.")
    if not 1 <= rank <= min(shape):
        raise InvalidInput(f"`rank` is {rank}; for shape {shape} it must be 1 to {min(shape)}.")
    rng = np.random.default_rng(rng)
    left, right = (rank**-0.25 * rng.standard_normal((side, rank)) for side in shape)
    return left, right, _new_seed(rng)


def _new_seed(rng: np.random.Generator) -> int:
    return int(rng.integers(2**63))
