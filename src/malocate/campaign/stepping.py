"""From the answers of one round to the draws of the next: what planner and verifier both do."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from malocate.compute import Compute
from malocate.design import Design
from malocate.problem import Observations
from malocate.problem.plain import finite
from malocate.rounds import (
    Batch,
    Finding,
    Round,
    Stop,
    answers_left,
    begin,
    bounds_label,
    close,
    loss_bound,
    plan,
    questions,
    spent,
)
from malocate.rounds.looks import Cells
from malocate.store import Drawn
from malocate.strategies.base import Allocation


@dataclass(frozen=True)
class Caveats:
    """What has happened to a campaign's segments, by name.

    `since` is the first draw after the last change of a segment's cells: earlier ones are not
    repeated. `doubts` are the reasons why no band may be called certified.
    """

    since: dict[str, int] = field(default_factory=dict)
    doubts: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, text: str) -> Caveats:
        """Read them from JSON."""
        told = json.loads(text)
        return cls(told.get("since", {}), told.get("doubts", {}))

    def to_plain(self) -> dict[str, Any]:
        """Give them as a table."""
        return {"since": self.since, "doubts": self.doubts}

    def text(self) -> str:
        """Give them as JSON."""
        return json.dumps(self.to_plain(), ensure_ascii=False)


@dataclass(frozen=True)
class Stage:
    """Where a campaign stands: the round that is out, and what was found before it."""

    design: Design
    caveats: Caveats
    number: int
    batches: tuple[Batch, ...]
    findings: list[Finding | None]
    version: int = 0

    @classmethod
    def first(cls, design: Design) -> Stage:
        """Give the stage before anybody is asked."""
        return cls(design, Caveats(), 0, (), begin(design))


@dataclass(frozen=True)
class Step:
    """What comes after a round: its findings, and another round or the end."""

    findings: list[Finding | None]
    next: Round | Stop


def advance(
    stage: Stage,
    answers: Mapping[str, Observations],
    unanswered: Mapping[str, Cells],
    compute: Compute | None = None,
) -> Step:
    """Close the round that is out, and plan the next."""
    design, findings = stage.design, stage.findings
    if stage.batches:
        over = Round(stage.batches, (), Allocation((), ()), "")
        findings = close(
            design,
            over,
            findings,
            answers,
            unanswered=unanswered,
            doubts=stage.caveats.doubts,
            compute=compute,
        )
    return Step(findings, plan(design, findings))


CellsAsked = Callable[[int, Sequence[int]], Mapping[int, tuple[int, int, float | None]]]
"""Gives the row, column and chance at which draws of a segment were asked, by their numbers."""


def draws_of(
    stage: Stage, batches: Sequence[Batch], first: int, cells_asked: CellsAsked
) -> list[Drawn]:
    """Give the draws of the next round, numbered from `first`, its segments in turn.

    One that repeats a draw of an earlier round asks where that one was asked: it may have been
    moved to who was present.
    """
    found: list[tuple[float, Drawn]] = []
    for batch in batches:
        segment = stage.design.segments[batch.place]
        since = stage.caveats.since.get(segment.name, 0)
        asked = questions(stage.design, segment, batch.first, batch.stop, since)
        earlier = asked.repeats[(asked.repeats >= 0) & (asked.repeats < batch.first)]
        known = cells_asked(batch.place, np.unique(earlier).tolist()) if len(earlier) else {}
        columns = (asked.draws, asked.rows, asked.cols, asked.repeats)
        each = zip(*(column.tolist() for column in columns), strict=True)
        for place, (number, row, col, repeats) in enumerate(each):
            turn = (place + 0.5) / len(batch)
            at = known.get(repeats, (row, col, None))
            found.append((turn, _open(stage.number + 1, batch.place, number, repeats, *at)))
    found.sort(key=lambda pair: (pair[0], pair[1].segment))
    return [_numbered(drawn, first + place) for place, (_, drawn) in enumerate(found)]


def _open(
    number: int, segment: int, draw: int, repeats: int, row: int, col: int, chance: float | None
) -> Drawn:
    place = (0, number, segment, draw, row, col, repeats, chance)
    return Drawn(*place, "open", 0, None, None, None, None, False)


def _numbered(drawn: Drawn, number: int) -> Drawn:
    return Drawn(number, *(getattr(drawn, name) for name in list(Drawn.__dataclass_fields__)[1:]))


def decision(stage: Stage, step: Step) -> dict[str, Any]:
    """Give what was found and decided as a table: the same for the same answers."""
    found = {batch.segment: found_of(step.findings[batch.place]) for batch in stage.batches}
    told: dict[str, Any] = {"round": stage.number + 1, "found": found}
    told |= {
        "spent": spent(stage.design, step.findings),
        "bound": loss_bound(stage.design, step.findings),
        "label": bounds_label(step.findings),
    }
    if isinstance(step.next, Stop):
        end = {"why": step.next.why, "reached": step.next.reached, "label": step.next.label}
        return _plain(told | {"stop": end})
    batches = [[each.segment, each.first, each.stop] for each in step.next.batches]
    index = {
        standing.name: number
        for standing, number in zip(step.next.standings, step.next.allocation.index, strict=True)
        if len(step.next.standings) <= MOST_LISTED or standing.name in found
    }
    return _plain(told | {"why": step.next.why, "batches": batches, "index": index})


MOST_LISTED = 50
"""Segments up to which a round's record lists every one's index, rather than who changed."""


def standing(stage: Stage, step: Step) -> dict[str, Any]:
    """Give how every segment stands as a table, for whoever looks at the campaign."""
    each = zip(stage.design.segments, step.findings, strict=True)
    segments = {segment.name: found_of(finding) for segment, finding in each if finding is not None}
    return _plain(
        {
            "segments": segments,
            "spent": spent(stage.design, step.findings),
            "bound": loss_bound(stage.design, step.findings),
            "label": bounds_label(step.findings),
            "left": answers_left(stage.design, step.findings),
        }
    )


def found_of(finding: Finding | None) -> dict[str, Any]:
    """Give what a look found as a table; an empty one before the first."""
    if finding is None:
        return {}
    told: dict[str, Any] = {"asked": finding.asked, "looks": finding.number}
    band = finding.band
    if band is None:
        return told | {"estimate": math.inf, "se": math.inf, "upper": math.inf}
    names = ("estimate", "se", "upper", "label", "noise", "answers", "given", "reason")
    told |= {name: getattr(band, name) for name in names}
    return told | {"audit": band.audit.words if band.audit is not None else ""}


def _plain(told: dict[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = finite(told)
    return plain
