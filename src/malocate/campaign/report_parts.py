"""What the page of a report shows, put together: nothing here writes, plans or fits."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import tomli_w
from markupsafe import Markup

from malocate.campaign.history import Decision, History, Loss, thinned
from malocate.campaign.picturing import (
    COUNTS,
    counts_bar,
    counts_of,
    looks_chart,
    loss_chart,
    verdict_of,
)
from malocate.campaign.reporting import Report
from malocate.campaign.status import SegmentStatus
from malocate.confidence.band import Band
from malocate.design import Design
from malocate.design.tables import to_table
from malocate.drawing.heat import Heat, Liking, heat_of, likings, means_of
from malocate.problem import Segment
from malocate.rounds import Finding
from malocate.store import Held

LARGEST = (120, 30)
"""Rows and columns of a matrix that is shown cell by cell."""

MOST_SEGMENTS = 24
"""Segments whose charts and tables are shown; counts and bounds are those of all."""

LISTED = 12
"""Lines of the table behind the chart of the loss."""

ALWAYS = ("asked", "answered", "late", "refused", "expired")
LONGEST_DESIGN = 20_000
"""Letters of a design that is shown with its labels and masks."""


@dataclass(frozen=True)
class Part:
    """A segment as the report shows it."""

    segment: Segment
    status: SegmentStatus
    counts: dict[str, int]
    bar: Markup
    band: Band | None
    certainty: float
    left: int | None
    asks: int
    goal: float | None
    verdict: str

    @property
    def share(self) -> float | None:
        """The bound as a share of the scale, where there are both."""
        if self.segment.scale is None or not math.isfinite(self.status.upper):
            return None
        low, high = self.segment.scale
        return self.status.rmse_upper / (high - low)

    @property
    def noise(self) -> float:
        """By how much one answer scatters."""
        return math.sqrt(max(0.0, self.band.noise)) if self.band is not None else math.nan


@dataclass(frozen=True)
class Shown:
    """What is shown of a segment beside its numbers: its chart, its columns, its cells."""

    part: Part
    chart: Markup
    best: Sequence[Liking]
    worst: Sequence[Liking]
    heat: Heat | None
    completed: bool


@dataclass(frozen=True)
class Facts:
    """Everything on the page."""

    report: Report
    design: Design
    parts: Sequence[Part]
    shown: Sequence[Shown]
    counted: dict[str, str]
    totals: dict[str, int]
    losses: Sequence[Loss]
    charts: tuple[Markup, Markup]
    decision: Decision | None
    written: str
    cut: bool
    fingerprint: str

    @property
    def worst(self) -> Sequence[Part]:
        """The segments by their bounds, the widest first, as many as a summary takes."""
        return sorted(self.parts, key=lambda part: -part.status.upper)[:8]

    @property
    def labels(self) -> set[str]:
        """The kinds of bounds that there are."""
        return {part.status.label for part in self.parts if math.isfinite(part.status.upper)}

    @property
    def affordable(self) -> bool:
        """Whether the budget leaves as much as the goal is foretold to take."""
        more = math.fsum(part.segment.cost * (part.left or 0) for part in self.parts)
        return self.report.status.spent + more <= self.design.budget

    @property
    def footing(self) -> dict[str, list[str]]:
        """What bands are given, and the segments for which it is that."""
        said: dict[str, list[str]] = {}
        for part in self.parts:
            if part.band is not None:
                said.setdefault(part.band.given, []).append(part.status.name)
        return said


def facts_of(
    report: Report,
    design: Design,
    findings: Sequence[Finding | None],
    history: History,
    held: Held,
) -> Facts:
    """Put together what the page shows."""
    decision = next(iter(history.latest()), None)
    parts = _parts(report, design, findings, decision)
    chosen = list(zip(parts, findings, strict=True))[:MOST_SEGMENTS]
    losses = history.losses_until(held)
    written, cut = written_out(design)
    axes = {"goal": design.epsilon, "until": design.budget}
    totals = {name: sum(part.counts[name] for part in parts) for name in COUNTS}
    return Facts(
        report=report,
        design=design,
        parts=parts,
        shown=[_shown(part, finding, history, held) for part, finding in chosen],
        counted={n: words for n, words in COUNTS.items() if n in ALWAYS or totals[n]},
        totals=totals,
        losses=thinned(losses, LISTED),
        charts=(
            loss_chart(losses, width=700, height=230, **axes),
            loss_chart(losses, width=340, height=220, **axes),
        ),
        decision=decision,
        written=written,
        cut=cut,
        fingerprint=hashlib.sha256(design.to_toml().encode()).hexdigest(),
    )


def _parts(
    report: Report,
    design: Design,
    findings: Sequence[Finding | None],
    decision: Decision | None,
) -> list[Part]:
    status = report.status
    most = max((each.planned for each in status.segments), default=0)
    targets = design.targets or (math.inf,) * len(design.segments)
    parts = []
    for segment, each, finding, target in zip(
        design.segments, status.segments, findings, targets, strict=True
    ):
        band = None if finding is None else finding.band
        parts.append(
            Part(
                segment=segment,
                status=each,
                counts=counts_of(each),
                bar=counts_bar(each, most),
                band=band,
                certainty=1 - design.delta if band is None else band.certainty,
                left=(status.answers_left or {}).get(each.name),
                asks=0 if decision is None else decision.asks.get(each.name, 0),
                goal=target if math.isfinite(target) else None,
                verdict=verdict_of(each.audit),
            )
        )
    return parts


def _shown(part: Part, finding: Finding | None, history: History, held: Held) -> Shown:
    looks = history.looks_until(held, part.status.name)
    chart = looks_chart(part.status.name, looks, part.goal)
    if finding is None:
        return Shown(part, chart, (), (), None, completed=False)
    means = means_of(finding)
    best, worst = likings(finding, means, part.segment.scale)
    fits = all(size <= most for size, most in zip(part.segment.shape, LARGEST, strict=True))
    shown = heat_of(finding, means, part.segment.scale, most=LARGEST) if fits else None
    if part.segment.shape[1] < 2:
        best, worst = [], []
    return Shown(part, chart, best, worst, shown, completed=True)


def written_out(design: Design) -> tuple[str, bool]:
    """Give a design as text, and whether labels and masks had to be left out for its length."""
    whole = in_few_lines(design.to_toml())
    if len(whole) <= LONGEST_DESIGN:
        return whole, False
    table: dict[str, Any] = to_table(design)
    for segment in table["segments"]:
        segment.pop("labels", None)
        segment.pop("mask", None)
    return in_few_lines(tomli_w.dumps(table))[:LONGEST_DESIGN], True


def in_few_lines(text: str) -> str:
    """Give TOML as it is written here with each list on a line of its own.

    Texts in it have no line breaks of their own: TOML writes those as signs.

    >>> text = Design([Segment("north", (60, 40))], budget=9).to_toml()
    >>> in_few_lines(text).splitlines()[-5:-2]
    ['name = "north"', 'shape = [60, 40]', 'weight = 1.0']
    """
    lines: list[str] = []
    for line in text.split("\n"):  # not splitlines, which knows breaks that TOML does not
        said = line.lstrip(" ")
        if said in ("]", "],"):
            lines[-1] = lines[-1].removesuffix(",") + said
        elif said != line:
            lines[-1] += said if lines[-1].endswith("[") else f" {said}"
        else:
            lines.append(line)
    return "\n".join(lines)
