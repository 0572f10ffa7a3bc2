"""The picture of a run: what the error was and was known to be, and who was asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from malocate.plots.canvas import (
    BLACK,
    BLUE,
    GREY,
    REST,
    VERMILION,
    Axes,
    Figure,
    apart,
    literal,
    nothing_asked,
    plain_decades,
    positive,
    styles,
    thousands,
    tidy,
)

if TYPE_CHECKING:
    import pandas

SHOWN = 7
"""Segments that get a line and a name of their own; the others are grey."""

_LOSSES = (
    ("bound", "bound", VERMILION, "--"),
    ("estimate", "estimate", BLUE, "-"),
    ("loss", "truth", BLACK, "-"),
)


def run_picture(frame: pandas.DataFrame, names: Sequence[str], title: str = "") -> Figure:
    """Draw a run: above the loss as it was, was estimated and was bounded; below who was asked.

    `frame` is that of `Run.frame`, `names` are the segments'. What is not known is not drawn. Of
    many segments, those with the most answers have a name and the others are one grey band.

    >>> import pandas
    >>> frame = pandas.DataFrame(
    ...     {"spent": [10, 20], "loss": [4.0, 2.0], "estimate": [5.0, 2.0], "bound": [9.0, 6.0],
    ...      "n_north": [5, 15], "n_south": [5, 5]}
    ... )
    >>> upper, lower = run_picture(frame, ["north", "south"]).axes
    >>> [line.get_label() for line in upper.lines]
    ['bound', 'estimate', 'truth']
    """
    if frame.empty:
        return nothing_asked(title)
    figure = Figure(figsize=(8, 6.4), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[1.15, 1])
    draw_losses(upper, frame)
    draw_answers(lower, frame, names)
    lower.set_xlabel("spent")
    if title:
        figure.suptitle(title)
    return figure


def draw_losses(panel: Axes, frame: pandas.DataFrame) -> None:
    """Draw bound, estimate and truth of the loss, each where it is known, on a log scale."""
    for column, label, colour, dash in _LOSSES:
        values = positive(frame[column])
        if np.isfinite(values).any():
            marker = "o" if np.isfinite(values).sum() < 60 else None
            panel.plot(frame["spent"], values, dash, color=colour, label=label, marker=marker, ms=3)
    panel.set_ylabel("loss")
    tidy(panel)
    if panel.lines:
        panel.set_yscale("log")
        plain_decades(panel)
        panel.legend(frameon=False)
    else:
        panel.text(0.5, 0.5, "no loss is known", transform=panel.transAxes, ha="center")


def draw_answers(panel: Axes, frame: pandas.DataFrame, names: Sequence[str]) -> None:
    """Draw how many answers each segment has got, as lines with their names at the end."""
    spent = frame["spent"].to_numpy(dtype=np.float64)
    counts = {name: frame[f"n_{name}"].to_numpy(dtype=np.float64) for name in names}
    ranked = sorted(names, key=lambda name: -counts[name][-1])
    named = ranked if len(ranked) <= SHOWN + 1 else ranked[:SHOWN]
    others = [counts[name] for name in ranked[len(named) :]]
    ends = []
    for name, (colour, dash) in zip(named, styles(len(named)), strict=True):
        panel.step(spent, counts[name], where="post", color=colour, linestyle=dash, label=name)
        ends.append((name, float(counts[name][-1]), colour))
    if others:
        edges = np.min(others, axis=0), np.max(others, axis=0)
        panel.fill_between(spent, *edges, step="post", color=REST, lw=0, zorder=1)
        ends.append((f"{len(others)} others", float(np.median([n[-1] for n in others])), GREY))
    panel.set_ylabel("answers")
    panel.set_ylim(bottom=0)
    tidy(panel)
    thousands(panel, "x")
    thousands(panel, "y")
    _name_lines(panel, ends)


def _name_lines(panel: Axes, ends: list[tuple[str, float, str]]) -> None:
    """Write each line's name right of its end, in its colour, none over another."""
    low, high = panel.get_ylim()
    spots = apart([value for _, value, _ in ends], gap=0.075 * (high - low))
    lift = max(0.0, low - min(spots)) + min(0.0, high - max(spots))
    for (name, _, colour), spot in zip(ends, spots, strict=True):
        panel.annotate(
            shortened(name),
            (1.0, spot + lift),
            xytext=(6, 0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            color=colour,
            va="center",
            fontsize=9,
            annotation_clip=False,
        )


def shortened(name: str, longest: int = 18) -> str:
    """Give a name that fits beside a panel, to be drawn as it is.

    >>> shortened("Provence-Alpes-Côte d'Azur")
    'Provence-Alpes-Cô…'
    """
    return literal(name if len(name) <= longest else name[: longest - 1] + "…")
