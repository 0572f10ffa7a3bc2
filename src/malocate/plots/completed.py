"""The picture of completed tables beside what was answered of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from malocate.confidence.band import Band
from malocate.plots.canvas import Axes, AxesImage, Figure, literal
from malocate.plots.completion import UNSEEN, VALUES
from malocate.problem import Observations
from malocate.problem.arrays import Floats

MOST = 6
"""Segments that are drawn; more would be stamps."""

_NAMED = 30  # rows or columns that have room for their names


def completed_picture(answers: Mapping[str, Observations], bands: Mapping[str, Band]) -> Figure:
    """Draw, for each segment, the mean answers that there are and the completed table.

    Rows and columns stand by their completed means, the highest first. The figure's `savefig`
    writes it to a file.

    >>> from malocate import SoftImpute, Synthetic, error_band
    >>> from malocate.plots import completed_picture
    >>> north = Synthetic.ratings(shape=(12, 6), rank=1, rng=0).observe(90, rng=1)
    >>> figure = completed_picture({"north": north}, {"north": error_band(SoftImpute(2.0), north)})
    >>> figure.axes[0].get_title()
    'north: 74 % of the cells answered'
    """
    names = list(answers)[:MOST]
    heights = [_height(answers[name].shape[0]) for name in names]
    figure = Figure(figsize=(11, sum(heights) + 0.7 * len(names)), layout="constrained")
    grid = figure.subplots(len(names), 2, squeeze=False, height_ratios=heights)
    for name, panels in zip(names, grid, strict=True):
        image = _segment(name, answers[name], bands[name], panels)
        figure.colorbar(image, ax=list(panels), label="answer", pad=0.01)
    if len(answers) > MOST:
        figure.supxlabel(f"{len(answers) - MOST} more segments are not drawn", fontsize=9)
    return figure


def _height(rows: int) -> float:
    return float(np.clip(0.13 * rows, 1.8, 4.0))


def _segment(name: str, answers: Observations, band: Band, panels: Sequence[Axes]) -> AxesImage:
    done = band.completion.dense()
    seen = np.full(answers.shape, np.nan)
    seen[answers.entries.rows, answers.entries.cols] = answers.entries.means
    rows, cols = np.argsort(-done.mean(axis=1)), np.argsort(-done.mean(axis=0))
    limits = answers.scale or tuple(np.quantile(answers.values, [0.01, 0.99]))
    called = f"{literal(name)}: " if name else ""
    titles = f"{called}{100 * answers.share_seen:.0f} % of the cells answered", _bounded(band)
    for panel, matrix, title in zip(panels, (seen, done), titles, strict=True):
        image = _draw(panel, matrix[np.ix_(rows, cols)], limits, title)
        _name(panel, answers.labels, rows, cols)
    panels[0].set_ylabel("" if len(rows) <= _NAMED else f"{len(rows):,} rows")
    panels[1].set_yticks([])
    return image


def _bounded(band: Band) -> str:
    if not math.isfinite(band.upper):
        return f"completed, RMSE about {band.rmse:.2f}, no bound"
    return f"completed, RMSE at most {band.rmse_upper:.2f} ({band.label})"


def _draw(panel: Axes, matrix: Floats, limits: tuple[float, ...], title: str) -> AxesImage:
    image = panel.imshow(
        matrix, aspect="auto", interpolation="nearest", cmap=VALUES, vmin=limits[0], vmax=limits[-1]
    )
    panel.set_facecolor(UNSEEN)
    panel.set_title(title, fontsize=10)
    return image


def _name(panel: Axes, labels: tuple[Any, Any] | None, rows: Any, cols: Any) -> None:
    """Name rows and columns where there is room for it."""
    panel.set(xticks=[], yticks=[])
    if labels is None:
        return
    if len(cols) <= _NAMED:
        named = [literal(str(labels[1][place])) for place in cols]
        turn = 90 if max(map(len, named)) * len(named) > 80 else 0
        panel.set_xticks(range(len(cols)), named, fontsize=7, rotation=turn)
    if len(rows) <= _NAMED:
        panel.set_yticks(range(len(rows)), [literal(str(labels[0][r])) for r in rows], fontsize=6)
