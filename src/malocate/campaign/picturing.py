"""A campaign's segments in pictures: what became of questions, and how bounds came down."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from malocate.campaign.history import Look, Loss
from malocate.campaign.status import SegmentStatus
from malocate.drawing.charts import Point, band_chart, share_bar
from malocate.drawing.numbers import number
from malocate.problem.counting import counted

COUNTS = {
    "asked": "asked",
    "answered": "answered",
    "late": "late",
    "expired": "expired",
    "refused": "refused",
    "given_up": "given up",
    "erased": "erased",
    "imported": "imported",
}
"""What became of questions; `asked` are all but those that wait."""


def counts_of(each: SegmentStatus) -> dict[str, int]:
    """Count what became of a segment's questions."""
    asked = {"asked": each.planned - each.open}
    return asked | {name: getattr(each, name) for name in COUNTS if name != "asked"}


def counts_bar(each: SegmentStatus, most: int) -> Markup:
    """Draw what became of a segment's questions, out of the `most` that any segment has."""
    unanswered = each.refused + each.given_up + each.erased
    shares = [
        ("done", each.answered, f"{each.answered:,} answered"),
        ("lost", unanswered, f"{unanswered:,} without an answer"),
        ("out", each.lent, f"{each.lent:,} out"),
        ("open", each.open, f"{each.open:,} to be asked"),
    ]
    title = f"{each.name}: " + ", ".join(words for _, _, words in shares)
    return share_bar([(kind, float(size), words) for kind, size, words in shares], most, title)


def looks_chart(name: str, looks: Sequence[Look], goal: float | None, width: int = 340) -> Markup:
    """Draw a segment's band over time, as root mean squared errors."""
    points = []
    for look in looks:
        upper, estimate = math.sqrt(look.upper), math.sqrt(max(0.0, look.estimate))
        hint = (
            f"After {counted(look.asked, 'question')}: at most {number(upper)} ({look.label}), "
            f"estimate {number(estimate)}"
        )
        points.append(Point(look.asked, upper, estimate, look.label, hint))
    title = f"{name}: the error's estimate and bound against questions asked"
    return band_chart(points, title=title, across="questions", goal=goal, width=width)


def loss_chart(losses: Sequence[Loss], **shape: Any) -> Markup:
    """Draw the bound on the loss against what was spent of the budget."""
    points = [Point(each.spent, each.bound, None, each.label, _loss_hint(each)) for each in losses]
    title = "The bound on the loss against what was spent of the budget"
    return band_chart(points, title=title, across="budget spent", **shape)


def verdict_of(audit: str) -> str:
    """Give the conclusion of an audit's words.

    >>> verdict_of("Looked at 9 draws. So nothing speaks against the assumption.")
    'Nothing speaks against the assumption.'
    """
    _, found, verdict = audit.rpartition(" So ")
    return verdict[:1].upper() + verdict[1:] if found else audit


def _loss_hint(loss: Loss) -> str:
    return f"After {number(loss.spent)} of the budget: at most {number(loss.bound)} ({loss.label})"
