"""Intervals for single cells: where the next answer will lie, and about where the mean does."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from malocate.confidence.ensemble import Ensemble
from malocate.confidence.evidence import Evidence, Judged
from malocate.errors import InvalidInput
from malocate.problem.settings import check_share

Floats = npt.NDArray[np.float64]
Of = Literal["answer", "mean"]

HALVINGS = 60
MEANS = (
    "approximate: about {:.0%} of the cells' means, if the fit's misses are spread like the "
    "held-out answers' and every cell is as hard as the others"
)


@dataclass(frozen=True, eq=False)
class Interval:
    """The ends of one interval per cell, and what may be said of them.

    `guarantee` is the proven chance that the next answer, at a cell drawn at random, lies inside;
    zero where nothing is proven.
    """

    low: Floats
    high: Floats
    guarantee: float
    words: str

    def __iter__(self) -> Iterator[Floats]:
        """Give the lower ends, then the upper ends."""
        return iter((self.low, self.high))


def interval(
    evidence: Evidence,
    rows: npt.ArrayLike,
    cols: npt.ArrayLike,
    level: float,
    of: Of,
    error: float,
    trusted: bool,
) -> Interval:
    """Give an interval at each pair of row and column.

    `error` is the estimated squared error; `trusted` tells whether the held-out answers are drawn
    like the next one will be.
    """
    check_share("level", level)
    if of not in ("answer", "mean"):
        raise InvalidInput(f"of is {of!r}; an interval is of the next 'answer' or of the 'mean'.")
    if not any(len(_fresh_misses(fold)) for fold in evidence.folds):
        raise InvalidInput("No answer was held out, so there is nothing to make intervals from.")
    build = _of_answer if of == "answer" else _of_mean
    low, high, guarantee = build(evidence, rows, cols, level, error)
    guarantee = guarantee if trusted and evidence.uniform else 0.0
    words = _answer_words(level, guarantee) if of == "answer" else MEANS.format(level)
    if evidence.scale is not None:
        low, high = np.clip(low, *evidence.scale), np.clip(high, *evidence.scale)
    return Interval(low, high, guarantee, words)


def _of_answer(
    evidence: Evidence, rows: npt.ArrayLike, cols: npt.ArrayLike, level: float, _: float
) -> tuple[Floats, Floats, float]:
    """CV+: each held-out miss, put on both sides of what the fit that made it says of the cell."""
    misses = [np.sort(_fresh_misses(fold)) for fold in evidence.folds]
    centres = np.array([fold.completion.predict(rows, cols) for fold in evidence.folds])
    count = sum(map(len, misses))
    place = math.ceil(level * (count + 1) - 1e-9)
    high = _placed(centres, misses, place)
    low = -_placed(-centres, misses, place)
    return low, high, _guarantee(level, count, len(misses))


def _of_mean(
    evidence: Evidence, rows: npt.ArrayLike, cols: npt.ArrayLike, level: float, error: float
) -> tuple[Floats, Floats, float]:
    """Shrink the held-out misses to the size that they would have without the noise."""
    misses = np.concatenate([_fresh_misses(fold) for fold in evidence.folds])
    square = float(np.mean(misses**2))
    share = math.sqrt(min(1.0, max(0.0, error) / square)) if square > 0.0 else 0.0
    half = share * float(np.quantile(misses, level, method="higher"))
    members = tuple(fold.completion for fold in evidence.folds)
    centre = Ensemble(members).predict(rows, cols)
    return centre - half, centre + half, 0.0


def _fresh_misses(fold: Judged) -> Floats:
    """Give the absolute misses of the fresh draws: a replicate is no news of another cell."""
    replicated = fold.answers.numbering.replicated
    return np.abs(fold.misses if replicated is None else fold.misses[replicated < 0])


def _placed(centres: Floats, misses: list[Floats], place: int) -> Floats:
    """Give, cell by cell, the `place`-th smallest of all centre + miss; by bisection."""
    if place > sum(map(len, misses)):
        return np.full(centres.shape[1:], math.inf)
    largest = max(float(each[-1]) for each in misses if len(each))
    low, high = centres.min(axis=0), centres.max(axis=0) + largest
    for _ in range(HALVINGS):
        middle = low + (high - low) / 2
        below = np.zeros(middle.shape, dtype=np.int64)
        for centre, each in zip(centres, misses, strict=True):
            below += np.searchsorted(each, middle - centre, side="right")
        enough = below >= place
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.asarray(high)


def _guarantee(level: float, count: int, folds: int) -> float:
    """Give the proven coverage: split conformal for one fold, CV+ for several of any sizes."""
    if folds == 1:
        return level
    excess = 2 * (folds - 1) * level / (count + folds)
    return max(0.0, 1 - 2 * (1 - level) - excess)


def _answer_words(level: float, guarantee: float) -> str:
    usual = f"the next answer at a cell drawn at random lies inside about {level:.0%} of the time"
    if guarantee <= 0.0:
        return f"{usual}; nothing is proven here"
    return f"{usual}; proven are {guarantee:.1%}, over cells and answers together"
