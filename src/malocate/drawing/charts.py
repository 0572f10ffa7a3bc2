"""Charts as SVG, drawn here: no script is needed, and a table always stands behind them.

Certified bounds are filled circles on a solid line, approximate ones hollow diamonds on a dashed
one: they can be told apart without colour. Colours come from the style sheet, by class.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

LEFT, RIGHT, TOP, BOTTOM = 46, 12, 12, 36
MOST_MARKS = 60
STEEP = 40.0
"""Ratio of the largest to the smallest value from which an axis is logarithmic."""


@dataclass(frozen=True)
class Point:
    """A bound, the estimate below it where there is one, and what is said on hovering."""

    x: float
    upper: float
    estimate: float | None
    label: str
    hint: str

    @property
    def shown(self) -> bool:
        """Whether there is a bound to show."""
        return math.isfinite(self.upper)


@dataclass(frozen=True)
class Frame:
    """Where numbers are on a chart.

    >>> frame = Frame(300, 200, 0.0, 100.0, 0.0, 1.0, steep=False)
    >>> frame.x(0.0), frame.y(0.0)
    (46.0, 164.0)
    """

    width: int
    height: int
    x_low: float
    x_high: float
    y_low: float
    y_high: float
    steep: bool

    def x(self, value: float) -> float:
        """Give the place of a value along the horizontal axis."""
        share = (value - self.x_low) / (self.x_high - self.x_low)
        return round(LEFT + share * (self.width - LEFT - RIGHT), 1)

    def y(self, value: float) -> float:
        """Give the place of a value along the vertical axis."""
        low, high = self.y_low, self.y_high
        if self.steep:
            value, low, high = (math.log(max(each, self.y_low)) for each in (value, low, high))
        share = (value - low) / (high - low)
        return round(self.height - BOTTOM - share * (self.height - TOP - BOTTOM), 1)


def band_chart(
    points: Sequence[Point],
    *,
    title: str,
    across: str,
    goal: float | None = None,
    until: float = 0.0,
    width: int = 340,
    height: int = 210,
) -> Markup:
    """Draw how a bound has come down, with the estimate below it and the goal, if there is one.

    The horizontal axis goes to `until`, or to the last point where that is further.

    >>> chart = band_chart([Point(10, 0.5, 0.2, "certified", "…")], title="North", across="answers")
    >>> chart.count("<circle"), "style=" in chart
    (1, False)
    """
    shown = [point for point in points if point.shown]
    if not shown:
        return Markup("")
    frame = _frame(shown, goal, until, (width, height))
    parts = [_axes(frame, across), *_goal(frame, goal), *_estimates(frame, shown)]
    parts += [*_bounds(frame, shown), *_marks(frame, shown)]
    opening = Markup('<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}">').format(
        width, height, title
    )
    return opening + Markup("").join(parts) + Markup("</svg>")


def _frame(
    points: Sequence[Point], goal: float | None, until: float, size: tuple[int, int]
) -> Frame:
    values = [point.upper for point in points] + ([goal] if goal else [])
    positive = [value for value in values if value > 0]
    steep = bool(positive) and max(positive) > STEEP * min(positive)
    high = max(values) * 1.08 or 1.0
    low = min(positive) / 1.5 if steep else 0.0
    last = max(until, *(point.x for point in points))
    return Frame(*size, 0.0, last * 1.02 or 1.0, low, high, steep)


def _axes(frame: Frame, across: str) -> Markup:
    floor, right = frame.height - BOTTOM, frame.width - RIGHT
    parts = []
    for value in _ticks(frame.y_low, frame.y_high, frame.steep):
        at = frame.y(value)
        parts.append(
            Markup(
                '<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/>'
                '<text class="tick" x="{}" y="{}" text-anchor="end">{}</text>'
            ).format(LEFT, right, at, at, LEFT - 6, at + 4, f"{value:,.4g}")
        )
    parts += [
        Markup('<text class="tick" x="{}" y="{}" text-anchor="middle">{}</text>').format(
            frame.x(value), floor + 15, _short(value)
        )
        for value in _ticks(frame.x_low, frame.x_high, steep=False)
    ]
    parts.append(
        Markup(
            '<line class="axis" x1="{}" x2="{}" y1="{}" y2="{}"/>'
            '<text class="tick" x="{}" y="{}" text-anchor="end">{}</text>'
        ).format(LEFT, right, floor, floor, right, frame.height - 5, across)
    )
    return Markup("").join(parts)


def _ticks(low: float, high: float, steep: bool) -> list[float]:
    """Give round numbers along an axis.

    >>> _ticks(0, 0.9, steep=False), _ticks(0.5, 200, steep=True)
    ([0.0, 0.2, 0.4, 0.6, 0.8], [1.0, 10.0, 100.0])
    """
    if steep:
        first, last = math.ceil(math.log10(low)), math.floor(math.log10(high))
        return [10.0**power for power in range(first, last + 1)] or [high / 1.08]
    rough = (high - low) / 4
    unit = 10.0 ** math.floor(math.log10(rough))
    step = next(each * unit for each in (1, 2, 2.5, 5, 10) if each * unit >= rough * 0.85)
    return [float(f"{step * place:.6g}") for place in range(math.floor(high / step + 1e-9) + 1)]


def _short(value: float) -> str:
    """Give a number of answers in few letters.

    >>> _short(25_000), _short(1_500_000), _short(0.5)
    ('25k', '1.5M', '0.5')
    """
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= size:
            return f"{value / (1e3 if letter == 'k' else size):.4g}{letter}"
    return f"{value:,.4g}"


def _goal(frame: Frame, goal: float | None) -> list[Markup]:
    if not goal or not math.isfinite(goal):
        return []
    at, right = frame.y(goal), frame.width - RIGHT
    return [
        Markup(
            '<line class="goal" x1="{}" x2="{}" y1="{}" y2="{}"/>'
            '<text class="goal-name" x="{}" y="{}">goal {}</text>'
        ).format(LEFT, right, at, at, LEFT + 4, at - 4, f"{goal:,.3g}")
    ]


def _estimates(frame: Frame, points: Sequence[Point]) -> list[Markup]:
    known = [(p, p.estimate) for p in points if p.estimate is not None]
    known = [(p, max(0.0, e)) for p, e in known if math.isfinite(e)]
    if len(known) < 2:
        return []
    below = [f"{frame.x(p.x)},{frame.y(e)}" for p, e in known]
    above = [f"{frame.x(p.x)},{frame.y(p.upper)}" for p, _ in reversed(known)]
    return [
        Markup('<polygon class="between" points="{}"/>').format(" ".join(below + above)),
        Markup('<polyline class="estimate" points="{}"/>').format(" ".join(below)),
    ]


def _bounds(frame: Frame, points: Sequence[Point]) -> list[Markup]:
    """Draw the bound in stretches, each in the line of its worse end."""
    stretches: list[tuple[bool, list[Point]]] = []
    for before, after in pairwise(points):
        sure = before.label == after.label == "certified"
        if stretches and stretches[-1][0] == sure:
            stretches[-1][1].append(after)
        else:
            stretches.append((sure, [before, after]))
    return [
        Markup('<polyline class="bound {}" points="{}"{}/>').format(
            "certified" if sure else "approximate",
            " ".join(f"{frame.x(p.x)},{frame.y(p.upper)}" for p in stretch),
            Markup("") if sure else Markup(' stroke-dasharray="5 4"'),
        )
        for sure, stretch in stretches
    ]


def _marks(frame: Frame, points: Sequence[Point]) -> list[Markup]:
    step = math.ceil(len(points) / MOST_MARKS)
    chosen = [*points[:-1:step], points[-1]]
    return [_mark(frame.x(p.x), frame.y(p.upper), p) for p in chosen]


def _mark(x: float, y: float, point: Point) -> Markup:
    hint = Markup("<title>{}</title>").format(point.hint)
    if point.label == "certified":
        return Markup('<circle class="mark certified" cx="{}" cy="{}" r="4">{}</circle>').format(
            x, y, hint
        )
    path = f"M{x} {y - 5:.1f}l5 5l-5 5l-5 -5z"
    return Markup('<path class="mark approximate" d="{}">{}</path>').format(path, hint)


def share_bar(shares: Sequence[tuple[str, float, str]], whole: float, title: str) -> Markup:
    """Draw a bar of parts, each with a class and words, out of a whole.

    >>> share_bar([("answered", 3, "3 answered")], 4, "North").count("<rect")
    2
    """
    at, parts = 0.0, [Markup('<rect class="rest" x="0" y="0" width="100" height="10"/>')]
    for kind, size, words in shares:
        wide = 100 * size / whole if whole else 0.0
        if wide > 0:
            parts.append(
                Markup(
                    '<rect class="{}" x="{}" y="0" width="{}" height="10"><title>{}</title></rect>'
                ).format(kind, f"{at:.3f}", f"{wide:.3f}", words)
            )
        at += wide
    opening = Markup(
        '<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" '
        'aria-label="{}">'
    )
    return opening.format(title) + Markup("").join(parts) + Markup("</svg>")
