"""The report: what was asked, how sure one can be, what comes next, and what all rests on."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import malocate
from malocate.campaign.status import SegmentStatus, Status
from malocate.design import Design
from malocate.problem.counting import counted
from malocate.problem.plain import finite
from malocate.rounds import Finding
from malocate.store import Store

LISTED = 3


@dataclass(frozen=True)
class Liking:
    """A column of a segment and the mean of its completed values."""

    column: Any
    mean: float


@dataclass(frozen=True)
class Report:
    """A campaign for its readers; `str` is the text, `to_plain` what a machine reads."""

    status: Status
    bands: dict[str, str]
    likings: dict[str, list[Liking]]
    why: str
    seed: int
    digest: str

    def to_plain(self) -> dict[str, Any]:
        """Give it as a table that JSON can hold."""
        likings = {
            name: [{"column": each.column, "mean": each.mean} for each in listed]
            for name, listed in self.likings.items()
        }
        told: dict[str, Any] = {"status": self.status.to_plain(), "bands": self.bands}
        told |= {"columns": likings, "why": self.why, "seed": self.seed, "log_digest": self.digest}
        plain: dict[str, Any] = finite(told | {"malocate": malocate.__version__})
        return plain

    def __str__(self) -> str:
        lines = [*self._head(), ""]
        for each in self.status.segments:
            lines += [*self._segment(each), ""]
        lines += ["What this rests on", *self._footing()]
        return "\n".join(lines)

    def _head(self) -> list[str]:
        status = self.status
        lines = [status.name, "=" * len(status.name), status.words]
        spent = f"{status.spent:,g} of {status.budget:,g} of the budget planned or spent"
        lines.append(f"{counted(status.answered, 'answer')}; {spent}.")
        if math.isfinite(status.bound):
            lines.append(f"The loss is at most {status.bound:.4g} ({status.label} bounds).")
        if status.answers_left:
            each = ", ".join(f"{name} {left:,}" for name, left in status.answers_left.items())
            lines.append(f"Answers left to the goal, foretold without promise: {each}.")
        if self.why and status.state == "open":
            lines.append(f"Why this round: {self.why}.")
        return lines

    def _segment(self, each: SegmentStatus) -> list[str]:
        counted = [
            f"{number:,} {name}"
            for name, number in (
                ("answered", each.answered),
                ("late", each.late),
                ("refused", each.refused),
                ("given up", each.given_up),
                ("erased", each.erased),
                ("leases run out", each.expired),
                ("imported", each.imported),
            )
            if number or name == "answered"
        ]
        lines = [each.name, "-" * len(each.name), ", ".join(counted) + "."]
        lines.append(self.bands.get(each.name, "It has not been looked at yet."))
        listed = self.likings.get(each.name, [])
        if len(listed) > 1:
            lines.append(f"Highest on average: {_listed(listed[:LISTED])}.")
            lines.append(f"Lowest on average: {_listed(listed[: -LISTED - 1 : -1])}.")
        return lines

    def _footing(self) -> list[str]:
        lines = [f"{each.name}: {each.audit}" for each in self.status.segments if each.audit]
        lines = lines or ["Nothing has been audited yet."]
        lines.append(
            f"malocate {malocate.__version__}, seed {self.seed}, log digest {self.digest[:16]}; "
            "`malocate verify` checks that all of this follows from the answers."
        )
        return lines


def reported(
    store: Store,
    campaign: int,
    design: Design,
    status: Status,
    findings: Sequence[Finding | None],
) -> Report:
    """Put a report together; the log is sealed first, so that its digest is that of all events."""
    store.seal(campaign)
    rounds = store.rounds(campaign, after=status.round - 1)
    why = json.loads(rounds[0][2]).get("why", "") if rounds and status.round else ""
    with store.looking(campaign) as look:
        digest = look.digest
    known = [(s, f) for s, f in zip(design.segments, findings, strict=True) if f is not None]
    bands = {segment.name: str(f.band) for segment, f in known if f.band is not None}
    likings = {segment.name: _likings(finding) for segment, finding in known}
    return Report(status, bands, likings, why, design.seed, digest)


def _likings(finding: Finding) -> list[Liking]:
    """Give the columns by their mean completed value, the highest first."""
    done = finding.completion
    total, count = None, 0
    for rows, block in done.blocks():
        sums = block.sum(axis=0)
        total = sums if total is None else total + sums
        count += rows.stop - rows.start
    if total is None:
        return []
    names = done.labels[1] if done.labels is not None else range(len(total))
    means = [Liking(name, float(each) / count) for name, each in zip(names, total, strict=True)]
    return sorted(means, key=lambda each: -each.mean)


def _listed(likings: Sequence[Liking]) -> str:
    return ", ".join(f"{each.column} {each.mean:.3g}" for each in likings)
