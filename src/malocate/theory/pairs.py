"""Entries seen twice by chance: how many there will be, and how many there are at least."""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

from malocate.problem.settings import check_count
from malocate.theory.conditions import TheoryWarning


class Guaranteed(NamedTuple):
    """At least so many pairs, with at least this chance."""

    pairs: float
    chance: float


def expected_pairs(draws: int, entries: int) -> float:
    """Give the mean number of entries that uniform draws see at least twice.

    As long as draws are few it is about n²/(2E). Algorithm 1 judges its first completion of
    a 200 × 200 matrix by the pairs among 1,062 draws:

    >>> round(expected_pairs(1062, 200 * 200), 1), round(1062**2 / (2 * 200 * 200), 1)
    (13.8, 14.1)
    """
    from scipy.special import bdtrc

    check_count("draws", draws, least=0)
    check_count("entries", entries)
    return entries * float(bdtrc(1, draws, 1 / entries)) if draws >= 2 else 0.0


def guaranteed_pairs(answers: int, entries: int) -> Guaranteed:
    """Give the n²/(64 E) pairs that the second half of n answers has, and the chance of that.

    The chance is 1 − exp(−n²/(372 E)). It is proven for n ≤ E; a `TheoryWarning` says so
    where n is larger. N can be counted, so a band needs none of this.

    >>> few = guaranteed_pairs(2124, 200 * 200)
    >>> round(few.pairs, 2), round(few.chance, 2)
    (1.76, 0.26)
    """
    check_count("answers", answers, least=0)
    check_count("entries", entries)
    if answers > entries:
        warnings.warn(
            f"There are {answers:,} answers and {entries:,} entries; the bound on the number of"
            " pairs is proven for at most as many answers as entries.",
            TheoryWarning,
            stacklevel=2,
        )
    ratio = answers**2 / entries
    return Guaranteed(ratio / 64, -math.expm1(-ratio / 372))
