"""Which of two columns, rows or segments is rated higher, by how much, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import combinations
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from malocate.confidence.audit import Audit, audit
from malocate.confidence.band import Label
from malocate.confidence.checks import check_request
from malocate.confidence.contrasts import FEWEST, Contrast, Side, Stage, contrast
from malocate.confidence.judgement import Map, fit_parts, looked_at
from malocate.confidence.schemes import Part
from malocate.confidence.spending import Anytime
from malocate.confidence.weights import draw_weights
from malocate.errors import InvalidInput, InvalidType, NotFound
from malocate.estimators.base import Estimator
from malocate.problem import Observations
from malocate.problem.checks import a

Kind = Literal["column", "row", "segment"]
Things = Sequence[Hashable]
AXES: dict[str, int] = {"row": 0, "column": 1}
ALIKE = (
    "All answers on one side were equal, so that they show no error to estimate; with a declared "
    "scale a bound can be proven all the same."
)
"""Why there is no interval by what answers differ."""
TENTHS = (1, 1, 2, 3, 3)
"""The answers of each stage; those of the first only train."""


@dataclass(frozen=True)
class Difference:
    """By how much the mean of `one` is above that of `two`, over all cells that can be asked.

    With a chance of at least 1 − delta the difference lies from `low` to `high`; `estimate` is
    right on average. `label` is "certified" (proven for every number of answers) or
    "approximate", `given` says what either rests on, and `reason` why it is no better.
    `certainty` is that of all comparisons that were asked for together or, with a grid of looks,
    at all looks.

    >>> from malocate import SoftImpute, Synthetic, difference
    >>> answers = Synthetic.ratings(shape=(40, 6), rank=2, rng=0).observe(1500, rng=1)
    >>> print(difference(SoftImpute(2.0), answers, columns=(0, 3)).sentence)  # doctest: +ELLIPSIS
    Whether 0 or 3 is rated higher cannot be told yet: 3 by +0..., between -0... and +0...
    """

    kind: Kind
    one: Hashable
    two: Hashable
    where: str
    estimate: float
    se: float
    low: float
    high: float
    label: Label
    given: str
    reason: str
    answers: int
    delta: float
    certainty: float

    @property
    def certain(self) -> bool:
        """Whether the interval tells which of the two is rated higher."""
        return self.low > 0 or self.high < 0

    @property
    def sentence(self) -> str:
        """Say who is rated higher, by how much and with which label, or that nobody can tell."""
        where = f"{self.where}: " if self.where else ""
        if math.isinf(self.low) and ALIKE in self.reason:
            apart = f"By its answers {self.one} is {self.estimate:+.2f} against {self.two}"
            return f"{where}{apart}; how surely cannot be told, since they were all equal."
        if math.isinf(self.low) or math.isnan(self.estimate):
            return f"{where}There are too few answers to compare {self.one} with {self.two}."
        higher, lower = (self.one, self.two) if self.estimate >= 0 else (self.two, self.one)
        size, low, high = self.estimate, self.low, self.high
        if self.estimate < 0:
            size, low, high = -size, -high, -low
        told = f"{size:+.2f}, between {low:+.2f} and {high:+.2f}"
        label = f"({self.label}, certainty {self.certainty:.4g})"
        if self.certain:
            return f"{where}{higher} is rated higher than {lower}: {told} {label}."
        return (
            f"{where}Whether {self.one} or {self.two} is rated higher cannot be told yet: "
            f"{higher} by {told} {label}."
        )

    def __str__(self) -> str:
        return f"{self.sentence} Given {self.given}. {self.reason}".rstrip()

    def doubted(self, reason: str) -> Difference:
        """Give the same, called approximate for a reason."""
        return replace(self, label="approximate", reason=f"{self.reason} {reason}".strip())


def difference(
    estimator: Estimator,
    answers: Observations | Mapping[str, Observations],
    *,
    columns: Things | None = None,
    rows: Things | None = None,
    segments: Sequence[str] | None = None,
    **settings: Any,
) -> Difference:
    """Say which of two columns, rows or segments is rated higher, by how much, and how surely.

    The difference is that of the means over all cells that can be asked, answered or not; the
    settings are those of `differences`.

    >>> from malocate import LowRankLeastSquares, Synthetic, difference
    >>> source = Synthetic.ratings(shape=(40, 6), rank=2, rng=0)
    >>> found = difference(LowRankLeastSquares(), source.observe(1500, rng=1), columns=(0, 3))
    >>> truth = source.truth[:, 0].mean() - source.truth[:, 3].mean()
    >>> bool(found.low <= truth <= found.high), found.label
    (True, 'certified')
    """
    for name, things in (("columns", columns), ("rows", rows), ("segments", segments)):
        if things is not None and (isinstance(things, str) or len(list(things)) != 2):
            raise InvalidInput(f"{name} is {things!r}; give two of them, or call `differences`.")
    chosen: dict[str, Any] = {"columns": columns, "rows": rows, "segments": segments}
    (found,) = differences(estimator, answers, **chosen, **settings)
    return found


def differences(
    estimator: Estimator,
    answers: Observations | Mapping[str, Observations],
    *,
    columns: Things | None = None,
    rows: Things | None = None,
    segments: Sequence[str] | None = None,
    column: Hashable = None,
    row: Hashable = None,
    delta: float = 0.05,
    look: Anytime | None = None,
    settled: int | None = None,
    unanswered: tuple[ArrayLike, ArrayLike] | None = None,
    salt: int | str = 0,
    segment: str = "",
    map: Map = map,  # noqa: A002
    check_uniform: bool = True,
) -> list[Difference]:
    """Compare every two of some columns, rows or segments, so that all intervals hold at once.

    - `columns` or `rows`: labels, or numbers where there are none; `answers` are Observations.
    - `segments`: names; `answers` are Observations by name. With `column` (or `row`), the
      segments are compared at that line alone.
    - `delta`: the chance of error of all comparisons together. They must be chosen without a look
      at the answers; to choose later, list all that might be chosen.
    - The others are those of `error_band`.

    >>> from malocate import SoftImpute, Synthetic, differences
    >>> answers = Synthetic.ratings(shape=(40, 6), rank=2, rng=0).observe(1500, rng=1)
    >>> [(each.one, each.two) for each in differences(SoftImpute(2.0), answers, columns=[0, 1, 2])]
    [(0, 1), (0, 2), (1, 2)]
    """
    kind, things = _asked(columns, rows, segments)
    own: dict[str, Any] = {"look": look, "salt": salt, "map": map, "check_uniform": check_uniform}
    if kind == "segment":
        found = _by_name(answers, things)
        own |= {"delta": delta / len(things)}
        sides = [
            forward(estimator, each, segment=name, settled=settled, **own)
            for name, each in found.items()
        ]
        certainty = 1 - (delta if look is None else look.delta)
        return between(sides, column=column, row=row, certainty=certainty)
    if not isinstance(answers, Observations):
        raise InvalidType(f"{kind}s are compared by Observations; there came {a(answers)}.")
    if column is not None or row is not None:
        raise InvalidInput(f"column and row go with segments; here {kind}s are compared.")
    own |= {"settled": settled, "unanswered": unanswered, "segment": segment}
    held = forward(estimator, answers, delta=delta, **own)
    return within(held, kind, things, certainty=1 - (delta if look is None else look.delta))


@dataclass(frozen=True, eq=False)
class Forward:
    """One segment's answers by stages, each behind a fit to those before: what comparisons use."""

    name: str
    observations: Observations
    stages: list[Stage]
    delta: float
    audit: Audit | None
    reason: str = ""

    @property
    def ranged(self) -> bool:
        """Whether betting applies: answers on a scale, and uniform draws."""
        return self.observations.scale is not None and draw_weights(self.observations) is None

    def side(self, kind: str, thing: Hashable, sign: float = 1.0) -> Side:
        """Give a row or column by its label, or by its number where there are no labels."""
        side = Side(AXES[kind], _place(self.observations, kind, thing), sign)
        if not side.cells(self.observations):
            raise InvalidInput(f"{kind} {thing!r} has no cell that can be asked; leave it out.")
        return side


def forward(
    estimator: Estimator,
    observations: Observations,
    *,
    delta: float,
    look: Anytime | None = None,
    settled: int | None = None,
    unanswered: tuple[ArrayLike, ArrayLike] | None = None,
    salt: int | str = 0,
    segment: str = "",
    map: Map = map,  # noqa: A002
    check_uniform: bool = True,
) -> Forward:
    """Fit what came before each stage of the answers; draws get their stage by their number."""
    check_request(estimator, observations, delta, "ensemble")
    seen, spent, reason = looked_at(observations, delta, look, settled)
    tenth = seen.fold_numbers(sum(TENTHS), salt=salt, segment=segment)
    starts = np.cumsum(TENTHS)
    ends = zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
    cut = [Part(seen, (tenth >= a) & (tenth < b), named=tenth < a) for a, b in ends]
    parts = [part for part in cut if len(part.train) and len(part.judge)]
    fits = fit_parts(estimator, seen, parts, map)
    stages = [Stage(p.train, done, p.judge) for p, done in zip(parts, fits, strict=True)]
    audited = audit(seen, unanswered=unanswered) if check_uniform else None
    return Forward(segment, seen, stages, spent, audited, reason)


def within(
    held: Forward, kind: Kind, things: Things, *, certainty: float = 0.95
) -> list[Difference]:
    """Compare every two of some rows or columns of one segment."""
    pairs = list(combinations(things, 2))
    delta, found = held.delta / max(1, len(pairs)), []
    for one, two in pairs:
        sides = [held.side(kind, one), held.side(kind, two, -1.0)]
        seen = contrast(held.stages, sides)
        ends = seen.certified(delta) if held.ranged else seen.approximate(delta)
        scores = seen.estimate, seen.se, *_limited(ends, held.observations.scale)
        told = _told(kind, (one, two), held.name, scores, [held], [seen], held.delta, certainty)
        found.append(told)
    return found


def between(
    held: Sequence[Forward],
    *,
    column: Hashable = None,
    row: Hashable = None,
    certainty: float = 0.95,
) -> list[Difference]:
    """Compare every two segments, at all of their cells, at one column or at one row.

    Each segment's mean has an interval of its own, for which it spends its `delta`: how many
    answers one segment has may depend on those of another.
    """
    seen = {each.name: contrast(each.stages, [_line(each, column, row)]) for each in held}
    line = f"column {column}" if column is not None else "" if row is None else f"row {row}"
    found = []
    for pair in combinations(held, 2):
        contrasts = [seen[each.name] for each in pair]
        scores = _apart(pair, contrasts)
        delta = sum(each.delta for each in pair)
        names = pair[0].name, pair[1].name
        found.append(_told("segment", names, line, scores, pair, contrasts, delta, certainty))
    return found


Scores = tuple[float, float, float, float]
"""Estimate, standard error, low and high."""


def _apart(pair: Sequence[Forward], seen: Sequence[Contrast]) -> Scores:
    """Take one segment's mean off another's."""
    estimate = seen[0].estimate - seen[1].estimate
    se = math.hypot(seen[0].se, seen[1].se)
    if not all(each.ranged for each in pair):
        delta = sum(each.delta for each in pair)
        reach = math.hypot(*(each.reach(delta) for each in seen))
        ends = (-reach, reach) if math.isinf(reach) else (estimate - reach, estimate + reach)
        return estimate, se, *ends
    limits = [
        np.clip(each.certified(side.delta), *(side.observations.scale or (-math.inf, math.inf)))
        for side, each in zip(pair, seen, strict=True)
    ]
    return estimate, se, float(limits[0][0] - limits[1][1]), float(limits[0][1] - limits[1][0])


def _limited(ends: tuple[float, float], scale: tuple[float, float] | None) -> tuple[float, float]:
    """No two means are further apart than the scale is long."""
    if scale is None:
        return ends
    length = scale[1] - scale[0]
    return max(ends[0], -length), min(ends[1], length)


def _told(
    kind: Kind,
    things: tuple[Hashable, Hashable],
    where: str,
    scores: Scores,
    held: Sequence[Forward],
    seen: Sequence[Contrast],
    delta: float,
    certainty: float,
) -> Difference:
    """Put a comparison together, with what it rests on."""
    ranged = all(each.ranged for each in held)
    uniform = all(draw_weights(each.observations) is None for each in held)
    warnings = {
        each.audit.words for each in held if each.audit is not None and not each.audit.passed
    }
    draws = "uniform draws" if uniform else "draws with the stated probabilities, none zero"
    audited = all(each.audit is not None for each in held)
    given = [draws + ("" if audited else " (not audited)")]
    given += ["answers on the declared scale"] if ranged else ["many answers"]
    given += ["a comparison that was not chosen by its answers"]
    reasons = [*filter(None, {each.reason for each in held}), *sorted(warnings)]
    enough = all(len(each.values) >= FEWEST for each in seen)
    if enough and not ranged and any(each.alike for each in seen):
        reasons.append(ALIKE)
    return Difference(
        kind, *things, where, *scores,
        label="certified" if ranged and not warnings else "approximate",
        given=", ".join(given),
        reason=" ".join(reasons),
        answers=sum(len(each.values) for each in seen),
        delta=delta,
        certainty=certainty,
    )  # fmt: skip


def _asked(columns: Any, rows: Any, segments: Any) -> tuple[Kind, list[Hashable]]:
    """Give what is compared, and the things."""
    told = {"column": columns, "row": rows, "segment": segments}
    chosen = [(kind, things) for kind, things in told.items() if things is not None]
    if len(chosen) != 1:
        raise InvalidInput("Say what to compare: give columns, rows or segments, one of the three.")
    kind, things = chosen[0]
    if isinstance(things, str) or not isinstance(things, Iterable):
        raise InvalidType(f"{kind}s is {things!r}; give a list of at least two.")
    listed = list(things)
    if len(listed) < 2 or len(set(listed)) < len(listed):
        raise InvalidInput(f"{kind}s is {things!r}; give at least two, each once.")
    return kind, listed  # type: ignore[return-value]


def _by_name(answers: Any, names: Sequence[Any]) -> dict[str, Observations]:
    if not isinstance(answers, Mapping):
        raise InvalidType(
            f"difference was given {a(answers)}; segments are compared by a mapping from their "
            "names to Observations."
        )
    for name in names:
        if name not in answers:
            raise NotFound(f"There is no segment {name!r}; {_instead(name, list(answers))}")
    return {name: answers[name] for name in names}


def _line(held: Forward, column: Hashable, row: Hashable) -> Side:
    if column is not None and row is not None:
        raise InvalidInput("Segments are compared at a column or at a row, not at both.")
    if column is not None:
        return held.side("column", column)
    return Side() if row is None else held.side("row", row)


def _place(observations: Observations, kind: str, thing: Hashable) -> int:
    axis = AXES[kind]
    known: Sequence[Hashable] = range(observations.shape[axis])
    if observations.labels is not None:
        known = observations.labels[axis]
    if thing not in known:
        raise NotFound(f"There is no {kind} {thing!r}; {_instead(thing, list(known))}")
    return known.index(thing)


def _instead(thing: Hashable, known: Sequence[Hashable]) -> str:
    near = get_close_matches(str(thing), [str(each) for each in known], n=1)
    if near:
        return f"is {near[0]!r} meant?"
    more = f" and {len(known) - 5:,} more" if len(known) > 5 else ""
    return f"there is {', '.join(map(str, known[:5]))}{more}."
