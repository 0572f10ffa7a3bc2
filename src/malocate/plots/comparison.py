"""The picture of strategies side by side: how the loss fell, who was asked, what it brought."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from malocate.errors import InvalidInput
from malocate.plots.canvas import (
    BLUE,
    COLOURS,
    GREY,
    ORANGE,
    Axes,
    Figure,
    literal,
    nothing_asked,
    plain_decades,
    positive,
    thousands,
    tidy,
)
from malocate.plots.run import shortened
from malocate.problem.arrays import Floats

if TYPE_CHECKING:
    import pandas

Frames = Mapping[str, "pandas.DataFrame"]

SHOWN = 15
"""Segments that get a line of their own: those with the largest errors."""

_ORDER = (BLUE, ORANGE, *(colour for colour in COLOURS if colour not in (BLUE, ORANGE)))


def comparison_picture(
    frames: Frames, names: Sequence[str], *, beyond: pandas.DataFrame | None = None, title: str = ""
) -> Figure:
    """Draw runs on the same segments side by side; the first is what the others are held against.

    Left, the true loss against what was spent; in the middle, each segment's answers at the end;
    right, its true error (a dot) and the bound on it (the line's end). `beyond` is the frame of the
    last one's run with a larger budget: it shows what reaching the first one's loss would take.

    >>> import pandas
    >>> one = pandas.DataFrame(
    ...     {"spent": [9, 20], "loss": [4.0, 2.0], "n_a": [9, 20], "error_a": 1.0, "upper_a": 2.0}
    ... )
    >>> figure = comparison_picture({"MALocate": one, "uniform": one.assign(loss=4.0)}, ["a"])
    >>> [panel.get_title() for panel in figure.axes]
    ['loss', 'answers', 'RMSE and its bound']
    """
    if not frames:
        raise InvalidInput("frames is empty; a comparison needs at least one run.")
    if any(frame.empty for frame in frames.values()):
        return nothing_asked(title)
    shown = _worst(frames, names)
    figure = Figure(figsize=(13, 1.9 + max(2.9, 0.42 * len(shown))), layout="constrained")
    losses, answers, errors = figure.subplots(1, 3, width_ratios=[1.25, 1, 1])
    _draw_losses(losses, frames, beyond)
    _draw_bars(answers, frames, shown)
    _draw_errors(errors, frames, shown)
    errors.set_yticklabels([])
    handles, labels = losses.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    if title:
        figure.suptitle(title)
    return figure


def _worst(frames: Frames, names: Sequence[str]) -> list[str]:
    """Give the segments to show: in their order, of many those with the largest errors."""
    if len(names) <= SHOWN:
        return list(names)
    largest = {
        name: max(np.nan_to_num(_last(frame, "error_", [name]))[0] for frame in frames.values())
        for name in names
    }
    worst = set(sorted(names, key=lambda name: -largest[name])[:SHOWN])
    return [name for name in names if name in worst]


def _last(frame: pandas.DataFrame, prefix: str, names: Sequence[str]) -> Floats:
    """Give what the last round says of some segments."""
    columns = [f"{prefix}{name}" for name in names]
    return frame[columns].iloc[-1].to_numpy(dtype=np.float64)


def _draw_losses(panel: Axes, frames: Frames, beyond: pandas.DataFrame | None) -> None:
    for (label, frame), colour in zip(frames.items(), _ORDER, strict=False):
        panel.plot(
            frame["spent"], positive(frame["loss"]), color=colour, label=literal(label), lw=1.8
        )
        panel.plot(frame["spent"].iloc[-1], frame["loss"].iloc[-1], "o", color=colour, ms=6)
    panel.set_yscale("log")
    if beyond is not None:
        _draw_beyond(panel, frames, beyond)
    panel.set(title="loss", xlabel="spent")
    panel.set_xlim(left=0)
    tidy(panel)
    plain_decades(panel)
    thousands(panel)


def _draw_beyond(panel: Axes, frames: Frames, beyond: pandas.DataFrame) -> None:
    """Go on where the last run ended, and measure how far it is to the first one's loss."""
    (first, *_), (*_, (label, last)) = frames.values(), frames.items()
    end, goal = float(last["spent"].iloc[-1]), float(first["loss"].iloc[-1])
    later = beyond[beyond["spent"] > end]
    spent = np.append(end, later["spent"])
    loss = positive(np.append(last["loss"].iloc[-1], later["loss"]))
    colour = _ORDER[(len(frames) - 1) % len(_ORDER)]
    words = literal(f"{label}, going on")
    panel.plot(spent, loss, color=colour, ls=(0, (2, 1.5)), lw=1.5, label=words)
    panel.set_ylim(bottom=min(panel.get_ylim()[0], goal / 1.25))  # room for the words below
    there = float(spent[-1])
    begun = float(first["spent"].iloc[-1])
    panel.annotate("", (there, goal), (begun, goal), arrowprops={"arrowstyle": "->", "color": GREY})
    more = "" if loss[-1] <= goal else "more than "
    panel.annotate(
        f"{more}{there - begun:,.0f} more",
        ((begun + there) / 2, goal),
        xytext=(0, -4),
        textcoords="offset points",
        ha="center",
        va="top",
        color=GREY,
        fontsize=9,
    )


def _rows(panel: Axes, names: Sequence[str]) -> Floats:
    """Give each segment a line, the first on top, with its name."""
    places = np.arange(len(names), dtype=np.float64)
    panel.set_yticks(places, [shortened(name) for name in names])
    panel.set_ylim(len(names) - 0.4, -0.6)
    tidy(panel)
    panel.grid(visible=False, axis="y")
    panel.tick_params(axis="y", length=0)
    return places


def _offsets(count: int) -> list[float]:
    return [0.76 / count * (place - (count - 1) / 2) for place in range(count)]


def _draw_bars(panel: Axes, frames: Frames, names: Sequence[str]) -> None:
    places, height = _rows(panel, names), 0.76 / len(frames)
    each = zip(frames.values(), _ORDER, _offsets(len(frames)), strict=False)
    for frame, colour, offset in each:
        panel.barh(places + offset, _last(frame, "n_", names), height * 0.92, color=colour)
    panel.set(title="answers")
    thousands(panel)


def _draw_errors(panel: Axes, frames: Frames, names: Sequence[str]) -> None:
    places = _rows(panel, names)
    for frame, colour, offset in zip(frames.values(), _ORDER, _offsets(len(frames)), strict=False):
        error, upper = (np.sqrt(_last(frame, prefix, names)) for prefix in ("error_", "upper_"))
        upper = np.where(np.isfinite(upper), upper, np.nan)
        panel.hlines(places + offset, np.nan_to_num(error), upper, color=colour, lw=1.2)
        panel.plot(upper, places + offset, "|", color=colour, ms=8, mew=1.6)
        panel.plot(error, places + offset, "o", color=colour, ms=6)
    panel.set(title="RMSE and its bound")
    panel.set_xlim(left=0)
