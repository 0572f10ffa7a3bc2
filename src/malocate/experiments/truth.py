"""True errors: how far a completion is from a matrix that a simulation knows."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from malocate.confidence.ensemble import Ensemble
from malocate.estimators.base import DENSE_LIMIT, Completion
from malocate.problem import Segment
from malocate.problem.arrays import Floats, Index
from malocate.problem.entries import Entries
from malocate.sources import Source

Truth = Callable[[Index, Index], Floats]
"""Gives the true values at pairs of row and column numbers, or of a slice of whole rows."""


def true_error(
    source: Source,
    segment: Segment,
    completion: Completion | Ensemble,
    kept: Entries | None = None,
) -> float | None:
    """Give the mean squared error over the askable cells; None where the truth is not known.

    Entries that are `kept` count with the mean of their answers instead of what was completed.

    >>> from malocate import SoftImpute, Synthetic
    >>> source = Synthetic.low_rank(shape=(30, 20), rank=1, rng=0)
    >>> exact = Completion(source.left, source.right)
    >>> true_error(source, source.segment("north"), exact)
    0.0
    """
    at = _known(source, completion.shape)
    if at is None:
        return None
    total = 0.0
    for rows, block in completion.blocks():
        squares = (block - at(rows, slice(None))) ** 2
        askable = True if segment.mask is None else ~segment.mask[rows]
        total += float(squares.sum(where=askable))
    if kept is not None:
        total += _difference(at, completion, kept)
    return math.nan if not segment.n_askable else total / segment.n_askable


def _known(source: Source, shape: tuple[int, int]) -> Truth | None:
    """Give how to look up the truth; of a large matrix cell by cell where the source can."""
    truth_at = getattr(source, "truth_at", None)
    if truth_at is None or math.prod(shape) <= DENSE_LIMIT:
        truth = source.truth
        return None if truth is None else lambda rows, cols: truth[rows, cols]

    def at(rows: Index, cols: Index) -> Floats:
        if isinstance(rows, slice):
            rows, cols = np.arange(shape[0])[rows, None], np.arange(shape[1])
        along, across = np.broadcast_arrays(rows, np.asarray(cols))
        return np.asarray(truth_at(along.ravel(), across.ravel())).reshape(along.shape)

    return at


def _difference(at: Truth, completion: Completion | Ensemble, kept: Entries) -> float:
    """Give what the sum of squared errors gains when entries keep the mean of their answers."""
    true = at(kept.rows, kept.cols)
    completed = completion.predict(kept.rows, kept.cols)
    return float(((kept.means - true) ** 2).sum() - ((completed - true) ** 2).sum())
