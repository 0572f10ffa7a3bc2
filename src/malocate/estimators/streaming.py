"""Recursive least squares on both factors: what is known of each line, moved by new answers.

Every row i has coefficients u_i and a precision A_i (a small matrix), every column likewise.
New answers are fitted by letting rows and columns take turns: row i minimises

    (u − u_i)' A_i (u − u_i) + Σ_j w_ij (y_ij − u · v_j)²

and at the end A_i grows by Σ_j w_ij v_j v_j'. The past enters through u_i and A_i alone. An answer
weighs less by what is still unknown of the other side: w = 1 / (1 / visits + u_i' B_j⁻¹ u_i), B_j
the precision of column j.

With additive effects the coefficients of a row are (u_i, its effect), on the features (v_j, 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy import sparse

from malocate.problem import Entries

Floats = npt.NDArray[np.float64]
Places = npt.NDArray[np.integer]

PASSES = 3
"""Times that rows and columns take turns on the new answers."""

SURPRISE = 3.0
"""Standard errors by which misses must exceed what was expected before the past is doubted."""

_LEAST_TRUST = 0.05  # share of its precision that the past keeps at the least, each time
_FEWEST_REPEATS = 5  # repeated answers without which the noise is not known
_GATHERED = 1 << 22  # numbers gathered at a time


@dataclass(frozen=True, eq=False)
class Heard:
    """New answers as seen from one side: cells by own line and other line, weights, targets."""

    own: Places
    other: Places
    weights: Floats
    targets: Floats

    def sums(self, values: Floats, features: Floats, lines: int) -> Floats:
        """Give Σ value · features[other line] over the cells of each of `lines` lines."""
        shape = lines, len(features)
        matrix = sparse.csr_matrix((values, (self.own, self.other)), shape=shape)
        return np.asarray(matrix @ features.reshape(len(features), -1))


@dataclass(frozen=True, eq=False)
class Lines:
    """The rows, or the columns: coefficients (lines, k), precisions (lines, k, k), the prior's.

    The prior is the precision, a diagonal, that a line has before anything was answered.
    """

    coefficients: Floats
    precision: Floats
    prior: Floats
    effects: bool  # whether the last coefficient is the line's additive effect

    @property
    def features(self) -> Floats:
        """What the other side's coefficients multiply: ours, with a 1 in the effect's place."""
        features = self.coefficients.copy()
        if self.effects:
            features[:, -1] = 1.0
        return features

    @property
    def shift(self) -> Floats:
        """What is taken off the targets before the other side is fitted."""
        effects = self.coefficients[:, -1:] if self.effects else self.coefficients[:, :0]
        return np.asarray(effects.sum(axis=1))

    def moved(self, before: Lines, other: Lines, heard: Heard) -> Lines:
        """Give the lines fitted to new answers and to what was known before."""
        touched, features = np.unique(heard.own), other.features
        total = before.learned(other, heard).precision[touched]
        above = heard.targets - other.shift[heard.other]
        wanted = heard.sums(heard.weights * above, features, len(self.coefficients))[touched]
        wanted += np.einsum("ikl,il->ik", before.precision[touched], before.coefficients[touched])
        coefficients = self.coefficients.copy()
        coefficients[touched] = np.linalg.solve(total, wanted[..., None])[..., 0]
        return replace(self, coefficients=coefficients)

    def learned(self, other: Lines, heard: Heard) -> Lines:
        """Give the lines with the precision that new answers add."""
        features = other.features
        squares = features[:, :, None] * features[:, None, :]
        gained = heard.sums(heard.weights, squares, len(self.coefficients))
        return replace(self, precision=self.precision + gained.reshape(self.precision.shape))

    def trusted(self, share: float) -> Lines:
        """Give the lines with only a share of their precision above the prior's."""
        size = len(self.prior)
        prior = np.where(np.eye(size, dtype=bool), self.prior, 0.0)
        return replace(self, precision=share * self.precision + (1 - share) * prior)

    def unknown(self, other: Lines, own: Places, others: Places) -> Floats:
        """Give f' A⁻¹ f at each cell: the variance that the own line lends its fit, over σ²."""
        touched, place = np.unique(own, return_inverse=True)
        inverse, features = np.linalg.inv(self.precision[touched]), other.features
        values = np.empty(len(own))
        step = max(1, _GATHERED // max(1, self.prior.size**2))
        for first in range(0, len(own), step):
            part = slice(first, first + step)
            at = features[others[part]]
            values[part] = np.einsum("ek,ekl,el->e", at, inverse[place[part]], at)
        return values


@dataclass(frozen=True)
class Watch:
    """Whether new answers are as near the fit as it claims; the noise is known from repeats.

    Under a right fit a miss has variance σ² (1 / visits + unknown). What the first fit left over
    counts as noise too: doubting the past does not help against too low a rank. The sums run
    since the past was last doubted.
    """

    noise_squares: float = 0.0
    noise_freedom: int = 0
    left_over: float = 0.0
    expected: float = 0.0
    found: float = 0.0
    scatter: float = 0.0
    judged: int = 0

    @property
    def noise(self) -> float:
        """The variance of an answer about the best fit."""
        repeats = self.noise_squares / self.noise_freedom if self.noise_freedom else 0.0
        return max(repeats, self.left_over)

    def repeated(self, entries: Entries) -> Watch:
        """Learn the noise from repeated answers."""
        return replace(
            self,
            noise_squares=self.noise_squares + float(entries.squares.sum()),
            noise_freedom=self.noise_freedom + int((entries.visits - 1).sum()),
        )

    def judge(self, entries: Entries, misses: Floats, unknown: Floats) -> tuple[Watch, float]:
        """Give the watch after new answers, and the share of its precision the past deserves."""
        watch = self.repeated(entries)
        if watch.noise_freedom < _FEWEST_REPEATS or watch.noise <= 0:
            return watch, 1.0
        excess = entries.visits * misses**2 / watch.noise - 1
        expected = entries.visits * unknown
        watch = replace(
            watch,
            expected=self.expected + float(expected.sum()),
            found=self.found + float(excess.sum()),
            scatter=self.scatter + float(np.sum((excess - expected) ** 2)),
            judged=self.judged + len(entries),
        )
        if not watch.surprised:
            return watch, 1.0
        share = max(_LEAST_TRUST, watch.expected / watch.found)
        return Watch(watch.noise_squares, watch.noise_freedom, watch.left_over), share

    @property
    def surprised(self) -> bool:
        """Whether the misses are beyond chance, that of the noise estimate included."""
        by_noise = 2 / self.noise_freedom * (self.found + self.judged) ** 2
        return self.found - self.expected > SURPRISE * math.sqrt(self.scatter + by_noise)


def update(
    rows: Lines, cols: Lines, watch: Watch, entries: Entries, targets: Floats
) -> tuple[Lines, Lines, Watch]:
    """Move both sides by new answers; `targets` are their means above the common offset."""
    by_rows = rows.unknown(cols, entries.rows, entries.cols)
    by_cols = cols.unknown(rows, entries.cols, entries.rows)
    misses = targets - fitted(rows, cols, entries)
    watch, share = watch.judge(entries, misses, by_rows + by_cols)
    if share < 1:
        rows, cols = rows.trusted(share), cols.trusted(share)
        by_rows, by_cols = by_rows / share, by_cols / share
    visits = entries.visits
    to_rows = Heard(entries.rows, entries.cols, visits / (1 + visits * by_cols), targets)
    to_cols = Heard(entries.cols, entries.rows, visits / (1 + visits * by_rows), targets)
    new_rows, new_cols = rows, cols
    for _ in range(PASSES):
        new_rows = new_rows.moved(rows, new_cols, to_rows)
        new_cols = new_cols.moved(cols, new_rows, to_cols)
    return new_rows.learned(new_cols, to_rows), new_cols.learned(new_rows, to_cols), watch


def fitted(rows: Lines, cols: Lines, entries: Entries) -> Floats:
    """Give the fit above the offset at the entries."""
    size = rows.prior.size - rows.effects
    left, right = (lines.coefficients[:, :size] for lines in (rows, cols))
    products = np.einsum("ek,ek->e", left[entries.rows], right[entries.cols])
    return np.asarray(products + rows.shift[entries.rows] + cols.shift[entries.cols])
