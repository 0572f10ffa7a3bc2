"""True errors: how far a completion is from a matrix that a simulation knows."""

from __future__ import annotations

import math

from malocate.confidence.ensemble import Ensemble
from malocate.estimators.base import Completion
from malocate.problem import Segment
from malocate.problem.arrays import Floats
from malocate.problem.entries import Entries
from malocate.sources import Source


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
    truth = source.truth
    if truth is None:
        return None
    total = 0.0
    for rows, block in completion.blocks():
        squares = (block - truth[rows]) ** 2
        askable = True if segment.mask is None else ~segment.mask[rows]
        total += float(squares.sum(where=askable))
    if kept is not None:
        total += _difference(truth, completion, kept)
    return math.nan if not segment.n_askable else total / segment.n_askable


def _difference(truth: Floats, completion: Completion | Ensemble, kept: Entries) -> float:
    """Give what the sum of squared errors gains when entries keep the mean of their answers."""
    true = truth[kept.rows, kept.cols]
    completed = completion.predict(kept.rows, kept.cols)
    return float(((kept.means - true) ** 2).sum() - ((completed - true) ** 2).sum())
