"""The picture of a plan: each segment's error against the budget, with ranges and the target."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from malocate.plots.canvas import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    VERMILION,
    Axes,
    Figure,
    literal,
    plain_decades,
    positive,
    thousands,
    tidy,
)
from malocate.plots.run import shortened

if TYPE_CHECKING:
    import pandas

COLOURS = (BLUE, ORANGE, GREEN)
DASHES = ("-", (0, (5, 1.5)), (0, (1, 1)))
SHOWN = 8
"""Segments that get a panel, beside the one of the worst; of more, those with large errors."""


def plan_picture(
    frame: pandas.DataFrame,
    names: Sequence[str],
    *,
    budget: float,
    targets: Mapping[str, float] | None = None,
    prices: Mapping[str, tuple[float, float, float]] | None = None,
    title: str = "",
) -> Figure:
    """Draw what a plan foretells: a panel for the worst segment, and one for each segment.

    `frame` has the columns strategy, segment, spent, middle, low and high, as `SurveyPlan.frame`
    gives it. The first strategy's range is shaded, the others' ends are thin lines. `targets` are
    dashed; below that of the worst segment, dots with lines are what meeting it costs.

    >>> import pandas
    >>> rows = [("MALocate", name, spent, 9 / spent, 8 / spent, 11 / spent)
    ...         for name in ("worst", "north") for spent in (10, 20)]
    >>> columns = ["strategy", "segment", "spent", "middle", "low", "high"]
    >>> figure = plan_picture(pandas.DataFrame(rows, columns=columns), ["north"], budget=20)
    >>> [panel.get_title() for panel in figure.axes]
    ['worst segment', 'north']
    """
    shown = ["worst", *_largest(frame, names)]
    columns = 2 if len(shown) == 4 else min(3, len(shown))
    rows = -(-len(shown) // columns)
    figure = Figure(figsize=(4.1 * columns + 0.4, 3.1 * rows + 0.9), layout="constrained")
    panels = figure.subplots(rows, columns, sharey=True, squeeze=False)
    goals = {"worst": _common(targets or {})} | dict(targets or {})
    for panel, name in zip(panels.flat, shown, strict=False):
        _draw(panel, frame[frame["segment"] == name], budget, goals.get(name))
        panel.set_title("worst segment" if name == "worst" else shortened(name), fontsize=11)
    _draw_prices(panels.flat[0], goals["worst"], prices or {})
    for panel in panels.flat[len(shown) :]:
        panel.remove()
    _finish(figure, list(panels.flat)[: len(shown)], title)
    return figure


def _largest(frame: pandas.DataFrame, names: Sequence[str]) -> list[str]:
    """Give the segments to show, in their order."""
    ends = frame.groupby("segment")["middle"].last()
    chosen = set(sorted(names, key=lambda name: -float(ends[name]))[:SHOWN])
    return [name for name in names if name in chosen]


def _common(targets: Mapping[str, float]) -> float | None:
    """Give the target of all segments, where they have one."""
    goals = set(targets.values())
    return goals.pop() if len(goals) == 1 else None


def _draw(panel: Axes, frame: pandas.DataFrame, budget: float, target: float | None) -> None:
    styles = zip(frame.groupby("strategy", sort=False), COLOURS, DASHES, strict=False)
    for place, ((strategy, own), colour, dash) in enumerate(styles):
        spent = own["spent"].to_numpy(dtype=np.float64)
        middle, low, high = (positive(own[name]) for name in ("middle", "low", "high"))
        label = literal(str(strategy))
        panel.plot(spent, middle, color=colour, ls=dash, lw=1.8, label=label, zorder=3)
        if place == 0:
            panel.fill_between(spent, low, high, color=colour, alpha=0.18, lw=0)
        else:
            panel.plot(spent, low, spent, high, color=colour, ls=dash, lw=0.6, alpha=0.7)
    panel.axvline(budget, color=GREY, lw=0.8, zorder=1)
    if target is not None and math.isfinite(target):
        panel.axhline(target, color=VERMILION, ls=(0, (4, 2)), lw=1.1, label="target", zorder=2)
    tidy(panel)


def _draw_prices(
    panel: Axes, target: float | None, prices: Mapping[str, tuple[float, float, float]]
) -> None:
    """Mark what meeting the target costs, and between which ends."""
    if target is None:
        return
    furthest = 1.1 * max(
        (n for each in prices.values() for n in each if math.isfinite(n)), default=0
    )
    for place, ((middle, low, high), colour) in enumerate(
        zip(prices.values(), COLOURS, strict=False)
    ):
        if math.isfinite(middle):
            level = target * 0.94 ** (place + 1)  # one below the other
            panel.hlines(level, low, min(high, furthest), color=colour, lw=1.6, zorder=4)
            panel.plot(middle, level, "o", color=colour, ms=5, zorder=5)
            if math.isinf(high):
                panel.plot(furthest, level, ">", color=colour, ms=5, zorder=5)


def _finish(figure: Figure, panels: Sequence[Axes], title: str) -> None:
    """Give all panels their axes, and the figure its legend and its title."""
    first = panels[0]
    first.set_yscale("log")
    plain_decades(first)
    for panel in panels:
        thousands(panel)
        panel.set_xlabel("spent")
    figure.supylabel("RMSE", fontsize=10)
    handles, labels = first.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    if title:
        figure.suptitle(title)
