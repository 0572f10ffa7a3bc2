"""Whether the draws fell as every band assumes: anywhere alike, at any time, answered or not."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from malocate.confidence.counts import (
    association,
    farthest_off,
    pearson,
    pearson_tails,
    pooled,
    smallest,
)
from malocate.confidence.weights import draw_weights
from malocate.errors import InvalidInput, InvalidType
from malocate.problem import Observations, checks
from malocate.problem.arrays import Floats, Int32s, Int64s
from malocate.problem.counting import counted
from malocate.problem.draws import BEFORE

_FEWEST = 10  # draws below which nothing is judged
_PARTS = 4  # of the order of asking
_WEIGHED_GROUPS = 5  # of lines, where the draws are weighed by stated chances
_LINE = "row", "column"
_ASSUMPTION = (
    "A certified band assumes that each draw lands on any cell that can be asked with the same"
    " chance (or with the chance stated), whatever was drawn or answered before."
)


@dataclass(frozen=True)
class Check:
    """One look at the draws: its p-value (nan where nothing could be judged) and what it found."""

    name: str
    p_value: float
    words: str


@dataclass(frozen=True)
class Audit:
    """What the draws say about how they were made; `str` gives it as a paragraph.

    It can only object: draws that pass are not proven to be uniform. `draws` counts the fresh
    ones, `replicates` those that repeat another on purpose and `missing` the draw numbers
    without an answer that nothing is known about.
    """

    checks: tuple[Check, ...]
    level: float
    draws: int
    replicates: int = 0
    missing: int = 0

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks whose p-value is below the level divided by the number of p-values."""
        limit = _limit(self.level, [check.p_value for check in self.checks])
        return tuple(check for check in self.checks if check.p_value < limit)

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return not self.failed

    @property
    def words(self) -> str:
        """What was looked at, what was found and what follows, for a reader without statistics."""
        looked = f"Looked at {counted(self.draws, 'fresh draw')}"
        if self.replicates:
            looked += f" ({counted(self.replicates, 'designed replicate')} left out)"
        looked += f", by {_listed([check.name for check in self.checks])}."
        found = [check.words for check in self.checks]
        return " ".join([_ASSUMPTION, looked, *found, *self._gaps(), self._verdict()])

    def __str__(self) -> str:
        return self.words

    def _gaps(self) -> list[str]:
        if not self.missing:
            return []
        has = "has" if self.missing == 1 else "have"
        gaps = f"{counted(self.missing, 'draw number')} {has} no answer here"
        return [f"{gaps}; give `unanswered` to see whether silence depends on the cell."]

    def _verdict(self) -> str:
        if all(math.isnan(check.p_value) for check in self.checks):
            return "So nothing could be judged, and the label rests on the assumption alone."
        if self.passed:
            return "So nothing speaks against the assumption, and the label stands."
        names = _listed([check.name for check in self.failed])
        return (
            f"So the certified label is withdrawn because, by {names}, the draws are not what the"
            f" assumption would give: chance alone brings this about less than once in"
            f" {1 / self.level:,.0f} times."
        )


def audit(observations: Observations, *, unanswered: Any = None, level: float = 0.001) -> Audit:
    """Judge whether the draws are as every band assumes: uniform, steady, and answered alike.

    Fresh draws are compared with chance by row, by column, by single cell and by the order of
    asking; designed replicates are left out. `unanswered` = (rows, cols) of draws that were
    refused or have expired adds a check that silence does not depend on the place. Where the
    observations state probabilities, rows and columns are judged against those.

    >>> rng = np.random.default_rng(0)
    >>> rows, cols = rng.integers(20, size=500), rng.integers(10, size=500)
    >>> audit(Observations(rows, cols, np.zeros(500), shape=(20, 10))).passed
    True
    >>> lazy = audit(Observations(rows // 2, cols, np.zeros(500), shape=(20, 10)))
    >>> [check.name for check in lazy.failed]
    ['rows', 'cells']
    """
    _check_arguments(observations, level)
    fresh = _Fresh.of(observations)
    findings = [_lines(fresh, 0), _lines(fresh, 1), _cells(fresh), _order(fresh)]
    missing = 0
    if unanswered is None:
        missing = _missing(observations)
    else:
        findings.append(_response(fresh, _places(unanswered, observations)))
    limit = _limit(level, [finding.p_value for finding in findings])
    found = tuple(Check(each.name, each.p_value, each.told(limit)) for each in findings)
    return Audit(found, float(level), fresh.count, len(observations) - fresh.count, missing)


@dataclass(frozen=True)
class _Finding:
    """A p-value with the clause that holds if it is not too small, the other one, and a fact."""

    name: str
    p_value: float = math.nan
    holds: str = ""
    fails: str = ""
    fact: str = ""

    def told(self, limit: float) -> str:
        """Give the finding as a sentence."""
        if math.isnan(self.p_value):
            return f"{self.name.capitalize()}: {self.fact}."
        p_value = "p below 1e-9" if self.p_value < 1e-9 else f"p = {self.p_value:.2g}"
        clause = self.fails if self.p_value < limit else self.holds
        fact = f"; {self.fact}" if self.fact else ""
        return f"{self.name.capitalize()}: {clause} ({p_value}){fact}."


@dataclass(frozen=True, eq=False)
class _Fresh:
    """The draws that are no designed replicates, and how many cells each line has to offer."""

    answers: Observations
    offers: tuple[Floats, Floats]

    @classmethod
    def of(cls, observations: Observations) -> _Fresh:
        if observations.numbering.replicated is not None:
            observations = observations.take(observations.repeats < 0)
        (d1, d2), mask = observations.shape, observations.mask
        if mask is None:
            return cls(observations, (np.full(d1, float(d2)), np.full(d2, float(d1))))
        offers = (d2 - mask.sum(axis=1)).astype(float), (d1 - mask.sum(axis=0)).astype(float)
        return cls(observations, offers)

    @property
    def count(self) -> int:
        return len(self.answers)

    @property
    def weights(self) -> Floats | None:
        """Give the weight of each draw, where chances were stated that differ."""
        return draw_weights(self.answers)

    def along(self, side: int) -> Int32s:
        """Give the row (side 0) or the column (side 1) of each draw."""
        return self.answers.cols if side else self.answers.rows

    def called(self, side: int, line: int) -> str:
        """Name one row or column."""
        labels = self.answers.labels
        return f"{_LINE[side]} {line if labels is None else repr(labels[side][line])}"


def _lines(fresh: _Fresh, side: int) -> _Finding:
    """Compare how often each row or column was drawn with its share of the cells."""
    name, offers = _LINE[side] + "s", fresh.offers[side]
    lines = np.flatnonzero(offers)
    if fresh.count < _FEWEST or lines.size < 2:
        return _unjudged(name, fresh.count, lines.size)
    if fresh.weights is not None:
        return _weighed(fresh.weights, fresh.along(side), offers, name)
    shares = offers[lines] / offers.sum()
    counts = np.bincount(fresh.along(side), minlength=offers.size)[lines]
    off, place = farthest_off(counts, fresh.count, shares)
    uneven, even = pearson(counts, shares)
    too_even = even < min(uneven, off)
    return _Finding(
        name,
        smallest(off, uneven, even),
        f"each {_LINE[side]} was drawn about as often as chance would have it",
        f"they were drawn too {'evenly' if too_even else 'unevenly'} for chance",
        f"farthest off is {fresh.called(side, int(lines[place]))}, drawn"
        f" {counted(int(counts[place]), 'time')} where {_about(fresh.count * shares[place])} were"
        " to be expected",
    )


def _weighed(weights: Floats, along: Int32s, offers: Floats, name: str) -> _Finding:
    """Compare the weights of the draws in lines, and in groups of them, with shares of the cells.

    True chances make them agree in the mean. How far off they may be is Hoeffding's bound for
    means of numbers from 0 to the largest weight: wide, but right for rare and heavy draws.
    """
    from scipy import special

    shares, count = offers / offers.sum(), along.size
    group = pooled(shares, 1 / _WEIGHED_GROUPS)
    sums = np.bincount(along, weights, shares.size) / count
    largest = max(1.0, float(weights.max()))
    seen, meant = (
        np.minimum(np.concatenate([each, np.bincount(group, each)]) / largest, 1.0)
        for each in (sums, shares)
    )
    apart = special.rel_entr(seen, meant) + special.rel_entr(1 - seen, 1 - meant)
    p_value = min(1.0, 2 * seen.size * math.exp(-count * float(apart.max())))
    return _Finding(
        name,
        p_value,
        "weighed by the stated chances, the draws spread over them as they should",
        "weighed by the stated chances, the draws do not spread over them as they should",
    )


def _cells(fresh: _Fresh) -> _Finding:
    """Compare how often two draws met at one cell with what chance would give."""
    cells, count = fresh.answers.n_askable, fresh.count
    if count < _FEWEST or cells < 2:
        return _unjudged("cells", count, cells)
    if fresh.weights is not None:
        return _Finding("cells", fact="not judged, since the chances of unseen ones are not known")
    visits = _visits(fresh.answers)
    pairs = float(visits @ (visits - 1)) / 2
    squares = cells / count * (2 * pairs + count) - count
    often, seldom = pearson_tails(squares, count, cells, float(cells) ** 2, float(cells) ** 3)
    rule = "as if each were drawn once" if seldom < often else "as if some were favoured"
    return _Finding(
        "cells",
        smallest(often, seldom),
        "draws met at one cell about as often as chance would have it",
        f"draws met at one cell too {'seldom' if seldom < often else 'often'} for chance, {rule}",
        f"{counted(int(pairs), 'pair')} of draws met where"
        f" {_about(count * (count - 1) / 2 / cells)} were to be expected",
    )


def _order(fresh: _Fresh) -> _Finding:
    """Compare where the draws landed in the four quarters of the order of asking."""
    if fresh.weights is not None:
        return _Finding("order", fact="not judged, since stated chances may change with time")
    quarters = _quarters(fresh.answers)
    sides = [association(fresh.along(side), quarters) for side in (0, 1)]
    if np.isnan(sides).all():
        return _unjudged("order", fresh.count, min(fresh.answers.shape))
    given = fresh.answers.numbering.given
    drifting = _LINE[int(np.nanargmin(sides))] + "s"
    return _Finding(
        "order",
        smallest(*sides),
        "early and late draws landed alike",
        f"early and late draws landed on different {drifting}",
        "" if given else "the answers were taken to stand in the order in which they were asked",
    )


def _response(fresh: _Fresh, silent: tuple[Int32s, Int32s]) -> _Finding:
    """Compare where the answered and the unanswered draws fell."""
    refused = silent[0].size
    asked = fresh.count + refused
    if min(refused, fresh.count) < 1 or asked < _FEWEST:
        words = f"{counted(asked, 'draw')}, of them {refused:,} unanswered, are too few to tell"
        return _Finding("response", fact=words)
    p_values: list[float] = []
    farthest = []
    for side in (0, 1):
        along = np.concatenate([fresh.along(side), silent[side]])
        p_values.append(association(along, np.repeat([0, 1], [fresh.count, refused])))
        totals = np.bincount(along)
        lines = np.flatnonzero(totals)
        counts = np.bincount(silent[side], minlength=totals.size)[lines]
        off, place = farthest_off(counts, totals[lines], np.full(lines.size, refused / asked))
        called = fresh.called(side, int(lines[place]))
        farthest.append((off, f"{called}, {counts[place]:,} of {totals[lines[place]]:,}"))
    off, told = min(farthest)
    return _Finding(
        "response",
        smallest(*p_values, *(each for each, _ in farthest)),
        "silence shows no link with row or column",
        "whether an answer comes depends on the row or the column",
        f"{refused:,} of {counted(asked, 'draw')} went unanswered; farthest off is {told}",
    )


def _visits(answers: Observations) -> Floats:
    """Give how often each cell that was drawn was drawn."""
    small = math.prod(answers.shape) < 2**31  # half the bytes sort in half the time
    cells = answers.rows * (np.int32 if small else np.int64)(answers.shape[1]) + answers.cols
    cells.sort()
    ends = np.flatnonzero(cells[1:] != cells[:-1]) + 1
    return np.diff(ends, prepend=0, append=cells.size).astype(float)


def _quarters(answers: Observations) -> Int64s:
    """Give the quarter of the order of asking in which each draw was made."""
    starts = [-(-part * len(answers) // _PARTS) for part in range(_PARTS + 1)]
    if answers.numbering.rising:
        return np.repeat(np.arange(_PARTS), np.diff(starts))
    numbers = np.partition(answers.draws, starts[1:-1])[starts[1:-1]]
    return np.searchsorted(numbers, answers.draws, side="right")


def _missing(observations: Observations) -> int:
    """Count the draw numbers between the lowest and the highest that have no answer."""
    if not len(observations) or isinstance(observations.numbering.compact, range):
        return 0
    asked = observations.draws[observations.draws < BEFORE]
    return int(asked.max() - asked.min()) + 1 - len(asked) if len(asked) else 0


def _places(unanswered: Any, answered: Observations) -> tuple[Int32s, Int32s]:
    """Give the rows and columns of the unanswered draws, checked as those of answers are."""
    if hasattr(unanswered, "rows") and hasattr(unanswered, "cols"):
        unanswered = unanswered.rows, unanswered.cols
    if not isinstance(unanswered, tuple | list) or len(unanswered) != 2:
        raise InvalidType(
            f"unanswered is {checks.a(unanswered)}; it must be the rows and the columns of the"
            " unanswered draws, (rows, cols), or None."
        )
    columns = checks.columns_of({}, rows=unanswered[0], cols=unanswered[1])
    rows, cols = (checks.indices(columns[name], name, answered.shape) for name in columns)
    checks.askable(rows, cols, answered.mask)
    return rows, cols


def _check_arguments(observations: object, level: object) -> None:
    if not isinstance(observations, Observations):
        raise InvalidType(f"audit was given {checks.a(observations)}; it takes Observations.")
    if not 0 < checks.number(level, "level") < 1:
        raise InvalidInput(f"level is {level!r}; it must lie between 0 and 1.")


def _limit(level: float, p_values: list[float]) -> float:
    """Share the level among the p-values that could be found."""
    return level / max(1, sum(not math.isnan(each) for each in p_values))


def _unjudged(name: str, count: int, kinds: int) -> _Finding:
    if kinds < 2:
        return _Finding(name, fact="not judged, since there is nothing to choose between")
    return _Finding(name, fact=f"{counted(count, 'draw')}, too few to tell")


def _about(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.1f}"


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
