"""A forecast: how many more answers until the goal is reached, if bounds go on falling so."""

from __future__ import annotations

import math

import numpy as np

from malocate.design import Design
from malocate.rounds.looks import Finding
from malocate.rounds.standings import Findings
from malocate.rounds.step import loss_of

SLOWEST, FASTEST = 0.5, 2.0
"""Powers of the answers between which a bound is taken to fall; 1 after a single look."""


def answers_left(design: Design, findings: Findings) -> dict[str, int] | None:
    """Give each segment's answers still missing to its goal; None where none can be foretold.

    The goal is the design's `rmse` or `epsilon`. Each segment's bound is taken to go on falling
    like a power of its answers, the one that its last looks show; for an `epsilon` all bounds are
    taken to fall by the same factor. An extrapolation, rounded up to two digits, with no promise;
    there is none where a segment has no bound yet, or its cap comes before its goal.

    >>> from malocate import Design, Segment
    >>> design = Design([Segment("a", (9, 9), scale=(1, 5))], budget=1_000, rmse=0.5)
    >>> answers_left(design, [None]) is None
    True
    """
    looks = [finding.trail[-1] for finding in findings if finding is not None and finding.trail]
    goals = _goals(design, [upper for _, upper in looks])
    if goals is None or len(looks) < len(design.segments):
        return None
    known = [finding for finding in findings if finding is not None]
    each = zip(design.segments, known, goals, strict=True)
    missing = {segment.name: _more(finding, goal, segment.cap) for segment, finding, goal in each}
    found = {name: more for name, more in missing.items() if more is not None}
    return found if len(found) == len(missing) else None


def _goals(design: Design, uppers: list[float]) -> list[float] | None:
    """Give the bound on the mean squared error that each segment is to reach."""
    if design.targets is not None:
        return [target**2 for target in design.targets]
    if design.epsilon is None or len(uppers) < len(design.segments):
        return None
    bound = loss_of(design, uppers)
    return [design.epsilon / bound * upper if bound > 0 else math.inf for upper in uppers]


def _more(finding: Finding, goal: float, cap: int | None) -> int | None:
    """Give how many more answers a segment needs, from its last look on the grid."""
    asked, upper = finding.trail[-1]
    if finding.final <= goal:
        return 0
    if not 0 < goal < math.inf or not math.isfinite(upper):
        return None
    power = math.log(asked) + max(0.0, math.log(upper / goal)) / _power(finding)
    needed = math.exp(power) if power < 40 else math.inf
    if needed > (math.inf if cap is None else cap) or math.isinf(needed):
        return None
    return _two_digits(max(1.0, needed - finding.asked))


def _two_digits(number: float) -> int:
    """Round up to two digits.

    >>> _two_digits(1234.5), _two_digits(7.2)
    (1300, 8)
    """
    unit = int(10 ** max(0, math.floor(math.log10(number)) - 1))
    return math.ceil(number / unit) * unit


def _power(finding: Finding) -> float:
    """Give the power of the answers by which the bound has been falling."""
    known = [(n, upper) for n, upper in finding.trail if 0 < upper < math.inf]
    if len(known) < 2:
        return 1.0
    logs = np.log(np.array(known, dtype=np.float64))
    away = logs - logs.mean(axis=0)
    slope = float(away[:, 0] @ away[:, 1] / (away[:, 0] @ away[:, 0]))
    return float(np.clip(-slope, SLOWEST, FASTEST))
