"""A forecast: how many more answers until the goal is reached, if bounds go on falling so."""

from __future__ import annotations

import math

import numpy as np

from malocate.design import Design
from malocate.rounds.looks import Finding
from malocate.rounds.standings import Findings
from malocate.rounds.step import loss_bound

SLOWEST, FASTEST = 0.5, 2.0
"""Powers of the answers between which a bound is taken to fall; 1 after a single look."""


def answers_left(design: Design, findings: Findings) -> dict[str, int] | None:
    """Give each segment's answers still missing to its goal; None where none can be foretold.

    The goal is the design's `rmse` or `epsilon`. Each segment's bound is taken to go on falling
    like a power of its answers, the one that its last looks show; for an `epsilon` all bounds are
    taken to fall by the same factor. An extrapolation, with no promise.

    >>> from malocate import Design, Segment
    >>> design = Design([Segment("a", (9, 9), scale=(1, 5))], budget=1_000, rmse=0.5)
    >>> answers_left(design, [None]) is None
    True
    """
    goals = _goals(design, findings)
    if goals is None or any(finding is None for finding in findings):
        return None
    missing: dict[str, int] = {}
    for segment, finding, goal in zip(design.segments, findings, goals, strict=True):
        assert finding is not None  # noqa: S101  # told apart above
        more = _more(finding, goal)
        if more is None:
            return None
        missing[segment.name] = more
    return missing


def _goals(design: Design, findings: Findings) -> list[float] | None:
    """Give the bound on the mean squared error that each segment is to reach."""
    if design.targets is not None:
        return [target**2 for target in design.targets]
    bound = loss_bound(design, findings)
    if design.epsilon is None or not math.isfinite(bound):
        return None
    factor = design.epsilon / bound if bound > 0 else 1.0
    return [factor * finding.upper for finding in findings if finding is not None]


def _more(finding: Finding, goal: float) -> int | None:
    if finding.upper <= goal:
        return 0
    if not math.isfinite(finding.upper):
        return None
    needed: float = finding.asked * (finding.upper / goal) ** (1 / _power(finding))
    return max(1, math.ceil(needed) - finding.asked)


def _power(finding: Finding) -> float:
    """Give the power of the answers by which the bound has been falling."""
    known = [(n, upper) for n, upper in finding.trail if 0 < upper < math.inf]
    if len(known) < 2:
        return 1.0
    logs = np.log(np.array(known, dtype=np.float64))
    away = logs - logs.mean(axis=0)
    slope = float(away[:, 0] @ away[:, 1] / (away[:, 0] @ away[:, 0]))
    return float(np.clip(-slope, SLOWEST, FASTEST))
