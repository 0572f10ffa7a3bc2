"""New rows for a completed matrix: each is regressed on the columns that were learned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from malocate.estimators.base import Completion
from malocate.estimators.engine.blas import pinned
from malocate.estimators.engine.factored import balanced
from malocate.problem import Entries

Floats = npt.NDArray[np.float64]

_LEAST_RIDGE = 1e-8  # of a feature's mean square, so that every system has one solution


@dataclass(frozen=True, eq=False)
class FoldIn:
    """Ridge regression of a row's seen values on learned column features.

    `features` (columns, k) are the balanced right factors, with a column of ones for the row's
    effect where the centre is additive; `level` is the centre of each column.
    """

    features: Floats
    ridge: Floats
    level: Floats
    clip: tuple[float, float] | None

    @classmethod
    def of(cls, done: Completion, entries: Entries) -> FoldIn:
        """Take features and ridge from a completion of these entries.

        The ridge of direction k is the one for which the completion's own rows solve their ridge
        problems: Σ_i u_ik Σ_j w_ij r_ij v_jk / Σ_i u_ik², with residuals r. It is the penalty in a
        nuclear-norm fit and the tuned ridge in a factored one. Row effects are shrunk by the
        ratio of the residuals' variance to the effects'.
        """
        left, right = _balanced(done)
        residual = entries.means - _unclipped(done, entries)
        pull = (entries.visits * residual) @ (left[entries.rows] * right[entries.cols])
        ridge = pull / np.sum(left**2, axis=0)
        level = done.centre.offset + np.zeros(len(right))
        if done.centre.cols.size:
            level += done.centre.cols
        if done.centre.rows.size:
            right = np.column_stack([right, np.ones(len(right))])
            ridge = np.append(ridge, _shrinkage(residual, done.centre.rows))
        floor = _LEAST_RIDGE * np.mean(right**2, axis=0)
        return cls(right, np.maximum(ridge, floor), level, done.clip)

    def filled(self, rows: Floats) -> Floats:
        """Give the fitted values of whole rows, from their cells that are not NaN."""
        seen = ~np.isnan(rows)
        above = np.where(seen, rows - self.level, 0.0)
        size = len(self.ridge)
        squares = self.features[:, :, None] * self.features[:, None, :]
        with pinned():
            grams = seen.astype(np.float64) @ squares.reshape(len(squares), size * size)
            grams = grams.reshape(len(rows), size, size)
            pulls = (above @ self.features)[..., None]
            weights = np.linalg.solve(grams + np.diag(self.ridge), pulls)[..., 0]
            values = weights @ self.features.T + self.level
        return values if self.clip is None else np.clip(values, *self.clip)


def _balanced(done: Completion) -> tuple[Floats, Floats]:
    with pinned():
        left, values, right = balanced(*done.factors)
    kept = values > 1e-10 * np.max(values, initial=0.0)
    root = np.sqrt(values[kept])
    return left[:, kept] * root, right[:, kept] * root


def _shrinkage(residual: Floats, effects: Floats) -> float:
    left_over = float(np.mean(residual**2)) if residual.size else 0.0
    return left_over / max(float(np.mean(effects**2)), 1e-300)


def _unclipped(done: Completion, entries: Entries) -> Floats:
    products = np.einsum("ek,ek->e", done.left[entries.rows], done.right[entries.cols])
    return np.asarray(products + done.centre.at(entries.rows, entries.cols))
