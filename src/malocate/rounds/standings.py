"""Standings: what each segment's last look says, as a strategy may see it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from malocate.confidence.pooling import pooled_noise
from malocate.design import Design
from malocate.rounds.looks import Finding
from malocate.strategies.base import Standing

Findings = Sequence[Finding | None]
"""What is known of each segment, in the design's order; None before its first look."""


def standings_of(
    design: Design, findings: Findings, errors: Sequence[float | None] | None = None
) -> list[Standing]:
    """Give what a strategy may know; `errors` are the true ones where a simulation knows them."""
    estimates = _estimates(design, findings)
    return [
        Standing(
            name=segment.name,
            entries=segment.n_askable,
            answers=asked(finding),
            batch=0 if done(design, place, finding) else next_batch(design, place, finding),
            room=math.inf if segment.cap is None else segment.cap - asked(finding),
            short=short(design, place, finding),
            multiple=design.schedule.multiple,
            estimate=estimates[place].value,
            se=estimates[place].se,
            upper=math.inf if finding is None else finding.upper,
            error=None if errors is None else errors[place],
            weight=design.weights[place],
            cost=segment.cost,
        )
        for place, (segment, finding) in enumerate(zip(design.segments, findings, strict=True))
    ]


def asked(finding: Finding | None) -> int:
    """Give how many draws a segment was asked for."""
    return 0 if finding is None else finding.asked


def spent(design: Design, findings: Findings) -> float:
    """Give what all draws so far have cost."""
    each = zip(design.segments, findings, strict=True)
    return math.fsum(segment.cost * asked(finding) for segment, finding in each)


def next_batch(design: Design, place: int, finding: Finding | None) -> int:
    """Give how many draws lead to the segment's next look; 0 where its cap is reached."""
    size = design.grids[place].next_size(asked(finding))
    return 0 if size is None else size - asked(finding)


def short(design: Design, place: int, finding: Finding | None) -> int:
    """Give how many answers a segment lacks to its floor."""
    return max(0, design.segments[place].floor - asked(finding))


def done(design: Design, place: int, finding: Finding | None) -> bool:
    """Tell whether a segment has its floor and has reached a target of its own."""
    if design.targets is None or finding is None or short(design, place, finding):
        return False
    return math.sqrt(finding.final) <= design.targets[place]


@dataclass(frozen=True)
class Estimated:
    """An estimated mean squared error and its standard error."""

    value: float
    se: float


_UNKNOWN = Estimated(math.inf, math.inf)


def _estimates(design: Design, findings: Findings) -> list[Estimated]:
    """Give each segment's estimate, its noise level drawn towards all where that is asked for."""
    estimates = [_estimate(finding) for finding in findings]
    judged = {place: each for place, each in enumerate(findings) if each and each.band is not None}
    pools = design.pooled and design.estimate == "residual" and design.noise_variance is None
    if not pools or not judged:
        return estimates
    pooled = pooled_noise(*np.array([finding.noise for finding in judged.values()]).T)
    lent = zip(judged.items(), pooled.values.tolist(), pooled.errors.tolist(), strict=True)
    for (place, finding), value, error in lent:
        estimates[place] = _with_noise(estimates[place], finding, value, error)
    return estimates


def _estimate(finding: Finding | None) -> Estimated:
    band = None if finding is None else finding.band
    return _UNKNOWN if band is None else Estimated(band.estimate, band.se)


def _with_noise(own: Estimated, finding: Finding, value: float, error: float) -> Estimated:
    """Give the estimate with another noise level in the place of the segment's own."""
    if math.isnan(value) or not math.isfinite(own.value):
        return own
    change = finding.noise[0] - value
    return Estimated(own.value + change, math.sqrt(finding.scatter + error**2))
