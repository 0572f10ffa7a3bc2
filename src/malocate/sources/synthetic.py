"""Where answers come from when the truth is known: synthetic matrices to practise on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from malocate.errors import InvalidInput
from malocate.problem import Observations, Segment
from malocate.problem.arrays import Floats
from malocate.problem.checks import shape_of
from malocate.sources.base import Asked
from malocate.sources.factors import (
    Rng,
    Shape,
    family_factors,
    hard_factors,
    new_seed,
    one_each,
    products_at,
    random_factors,
)
from malocate.sources.keyed import Key, normals
from malocate.sources.ratings import Scale, mean_answers, on_scale, spread
from malocate.sources.sides import per_line, shares_of

__all__ = ["Synthetic"]


@dataclass(frozen=True, eq=False)
class Synthetic:
    """A made-up matrix that answers like a panel: with noise.

    The latent matrix is `left @ right.T`, kept as factors so that large shapes cost little.
    Without a `scale`, an answer is the latent entry plus Gaussian noise of standard deviation
    `noise`, and the truth is the latent matrix. With a `scale` (low, high) of whole numbers,
    the noisy entry is counted from the middle of the scale, rounded, and clipped to the scale;
    the truth is then the *mean answer* of each cell, computed exactly as
    low + P(answer ≥ low + 1) + … + P(answer ≥ high) from the normal distribution.

    `row_noise` and `col_noise` multiply the noise of a row's and a column's cells; see `noisier`.

    >>> from malocate import Synthetic
    >>> source = Synthetic.low_rank(shape=(30, 20), rank=2, noise=0.1, rng=0)
    >>> answers = source.observe(100)
    >>> len(answers), answers.shape, source.truth.shape
    (100, (30, 20), (30, 20))
    """

    left: Floats = field(repr=False)
    right: Floats = field(repr=False)
    noise: float
    scale: Scale = None
    seed: int = 0
    row_noise: Floats | None = field(default=None, repr=False)
    col_noise: Floats | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not (math.isfinite(self.noise) and self.noise >= 0):
            raise InvalidInput(f"`noise` is {self.noise}; it must be a finite number, at least 0.")
        low, high = self.scale or (0, 1)
        if not (low < high and isinstance(low, int) and isinstance(high, int)):
            raise InvalidInput(f"`scale` is {self.scale}; it must be two integers, low < high.")
        for name, side in (("row_noise", self.left), ("col_noise", self.right)):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, per_line(name, getattr(self, name), len(side)))

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
        left, right, seed = random_factors(shape, rank, rng)
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
        left, right, seed = random_factors(shape, rank, rng)
        return cls(left * spread(scale), right, noise, scale, seed)

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
        left, right, seed = random_factors(shape, min(shape), rng)
        left, right = (np.linalg.qr(factor)[0] for factor in (left, right))
        values = np.arange(1, min(shape) + 1) ** -float(exponent)
        values *= math.sqrt(math.prod(shape)) / np.linalg.norm(values)
        return cls(left * values, right, noise, None, seed)

    @classmethod
    def constant(
        cls,
        shape: Shape,
        value: float | None = None,
        noise: float = 0.0,
        scale: Scale = None,
        rng: Rng = 0,
    ) -> Self:
        """Give a matrix of one number: 0 or the scale's middle, unless `value` is given.

        With noise and no value it is all noise; without noise every answer is the same.

        >>> bool((Synthetic.constant((3, 2), 4.0).observe(9).values == 4).all())
        True
        >>> Synthetic.constant((3, 2), noise=1.0).truth.any()
        np.False_
        """
        middle = 0.0 if scale is None else sum(scale) / 2
        left, right = (np.ones((side, 1)) for side in shape_of(shape))
        left *= 0.0 if value is None else value - middle
        return cls(left, right, noise, scale, new_seed(np.random.default_rng(rng)))

    @classmethod
    def hard(cls, shape: Shape, rank: int, level: float, noise: float = 1.0, rng: Rng = 0) -> Self:
        """Give a matrix as the lower bound has it: no strategy completes them all well.

        A block of `rank` columns, each entry 0 or `level` by chance, is repeated ⌊d/rank⌋ times;
        the columns left over are 0. The rank is at most `rank`. Where there are more columns than
        rows, rows are repeated instead. `malocate.theory.hard_level` gives the level at which
        a number of answers does not tell such matrices apart.

        >>> Synthetic.hard((3, 5), rank=1, level=2.0, rng=0).truth[0].tolist()
        [2.0, 2.0, 2.0, 0.0, 0.0]
        """
        rng = np.random.default_rng(rng)
        left, right = hard_factors(shape, rank, level, rng)
        return cls(left, right, noise, None, new_seed(rng))

    @classmethod
    def family(
        cls,
        members: int | Sequence[str],
        shape: Shape | Sequence[Shape],
        rank: int | Sequence[int],
        *,
        shared: float = 1.0,
        noise: float | Sequence[float] = 0.1,
        scale: Scale = None,
        rng: Rng = 0,
    ) -> dict[str, Self]:
        """Give several segments that share column factors, by name: tastes differ by person only.

        `members` are names, or how many there are ("1", "2", …). `shape`, `rank` and `noise` are
        one for all or one for each; columns must be equally many. Of a segment's rank, the share
        `shared` comes from column factors common to all, the rest from its own.

        >>> market = Synthetic.family(["north", "south"], (30, 20), [2, 3], rng=0)
        >>> both = np.vstack([source.truth for source in market.values()])
        >>> both.shape, int(np.linalg.matrix_rank(both))
        ((60, 20), 3)
        """
        names = [str(1 + i) for i in range(members)] if isinstance(members, int) else list(members)
        shapes, ranks = one_each("shape", shape, names, depth=1), one_each("rank", rank, names)
        noises = one_each("noise", noise, names)
        rng = np.random.default_rng(rng)
        factors = family_factors(shapes, ranks, shared, rng)
        wide = 1.0 if scale is None else spread(scale)
        return {
            name: cls(left * wide, right, deviation, scale, new_seed(rng))
            for name, (left, right), deviation in zip(names, factors, noises, strict=True)
        }

    def noisier(self, *, rows: ArrayLike | None = None, cols: ArrayLike | None = None) -> Self:
        """Give the same matrix with noise that differs: times a number per row and per column.

        The truth of ratings stays exact: it is the mean answer under each cell's own noise.

        >>> source = Synthetic.low_rank((3, 2), rank=1, noise=0.1).noisier(rows=[1, 2, 0])
        >>> source.noise_at([0, 1, 2], [0, 0, 0]).tolist()
        [0.1, 0.2, 0.0]
        """
        given: dict[str, Any] = {"row_noise": rows, "col_noise": cols}
        return replace(self, **{name: each for name, each in given.items() if each is not None})

    @property
    def shape(self) -> Shape:
        """How many rows and columns the matrix has."""
        return len(self.left), len(self.right)

    @cached_property
    def truth(self) -> Floats:
        """The dense matrix of mean answers, read-only, made when first asked for."""
        noise = np.full((1, 1), float(self.noise))
        if self.row_noise is not None:
            noise = noise * self.row_noise[:, None]
        if self.col_noise is not None:
            noise = noise * self.col_noise
        truth = mean_answers(self.left @ self.right.T, noise, self.scale)
        truth.setflags(write=False)
        return truth

    def truth_at(self, rows: ArrayLike, cols: ArrayLike) -> Floats:
        """Give the mean answers of some cells without making the dense matrix.

        >>> source = Synthetic.ratings(shape=(30, 20), rank=2, rng=0)
        >>> bool(np.allclose(source.truth_at([3, 7], [4, 0]), source.truth[[3, 7], [4, 0]]))
        True
        """
        latent = self._latent_at(np.asarray(rows), np.asarray(cols))
        return mean_answers(latent, self.noise_at(rows, cols), self.scale)

    def noise_at(self, rows: ArrayLike, cols: ArrayLike) -> Floats:
        """Give the standard deviation of the noise at some cells, before any rounding."""
        noise = np.full(np.shape(rows), float(self.noise))
        if self.row_noise is not None:
            noise *= self.row_noise[np.asarray(rows)]
        if self.col_noise is not None:
            noise *= self.col_noise[np.asarray(cols)]
        return noise

    def segment(self, name: str, **settings: Any) -> Segment:
        """Give the segment that this source answers for; `settings` are those of `Segment`.

        >>> Synthetic.ratings((30, 20), rank=2).segment("north", weight=2).scale
        (1.0, 5.0)
        """
        return Segment(name, self.shape, **{"scale": self.scale, **settings})

    def answer(self, asked: Asked, *key: Key) -> Floats:
        """Give one answer for each draw, with noise from a hash of key, draw number and cell.

        The answers are distributed as those of `observe`.
        """
        cells = asked.rows * self.shape[1] + asked.cols
        noise = self.noise_at(asked.rows, asked.cols) * normals(asked.draws, cells, *key, "noise")
        return on_scale(self._latent_at(asked.rows, asked.cols) + noise, self.scale)

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
        for_rows, for_cols, for_noise = (np.random.default_rng(new_seed(rng)) for _ in range(3))
        cols = for_cols.integers(self.shape[1], size=n)
        if row_weights is None:
            rows, probability = for_rows.integers(self.shape[0], size=n), None
        else:
            shares = shares_of(row_weights, self.shape[0])
            rows = for_rows.choice(self.shape[0], size=n, p=shares)
            probability = shares[rows] / self.shape[1]
        noise = self.noise_at(rows, cols) * for_noise.standard_normal(n)
        values = on_scale(self._latent_at(rows, cols) + noise, self.scale)
        return Observations(
            rows, cols, values, shape=self.shape, scale=self.scale, probability=probability
        )

    def _latent_at(self, rows: NDArray[np.integer], cols: NDArray[np.integer]) -> Floats:
        return products_at(self.left, self.right, rows, cols)
