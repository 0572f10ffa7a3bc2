"""A completed matrix as a heat map: labelled, sorted, and some rows and columns at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Literal, get_args

import numpy as np
from markupsafe import Markup

from malocate.problem.arrays import Floats, Int64s
from malocate.rounds import Finding

ROWS, COLUMNS = 40, 25
"""The most rows and columns on one page."""

STEPS = 9
"""Shades; the style sheet has a class for each."""

LISTED = 5

LEVEL = 0.9
"""Of intervals for single cells; they are approximate."""

Order = Literal["given", "high", "low"]
ORDERS: tuple[Order, ...] = get_args(Order)
_ORDER_WORDS: dict[Order, str] = {
    "given": "as in the design",
    "high": "highest mean first",
    "low": "lowest mean first",
}


@dataclass(frozen=True)
class Means:
    """The means of a completion's rows and columns, and its range."""

    rows: Floats
    columns: Floats
    low: float
    high: float


def means_of(finding: Finding) -> Means:
    """Compute the means of rows and columns, block by block."""
    done = finding.completion
    sums, rows, low, high = np.zeros(done.shape[1]), [], np.inf, -np.inf
    for _, block in done.blocks():
        sums += block.sum(axis=0)
        rows.append(block.mean(axis=1))
        low, high = min(low, float(block.min())), max(high, float(block.max()))
    return Means(np.concatenate(rows), sums / done.shape[0], low, high)


@dataclass(frozen=True)
class Cell:
    """A completed value, its shade, and what is said of it."""

    value: str
    shade: int
    words: str


@dataclass(frozen=True)
class Line:
    """A row of the heat map."""

    label: str
    mean: str
    cells: Sequence[Cell]


@dataclass(frozen=True)
class Heat:
    """A window on a completed matrix."""

    lines: Sequence[Line]
    columns: Sequence[tuple[str, str]]
    rows_by: Order
    columns_by: Order
    row_page: int
    row_pages: int
    column_page: int
    column_pages: int
    shape: tuple[int, int]
    low: str
    high: str
    judged: bool

    @property
    def orders(self) -> dict[Order, str]:
        """The orders to choose from, and their words."""
        return _ORDER_WORDS


def order_of(text: str) -> Order:
    """Read an order; anything else is the order of the design."""
    return next((order for order in ORDERS if order == text), "given")


def heat_of(
    finding: Finding,
    means: Means,
    scale: tuple[float, float] | None,
    *,
    rows_by: Order = "given",
    columns_by: Order = "given",
    row_page: int = 1,
    column_page: int = 1,
    most: tuple[int, int] = (ROWS, COLUMNS),
) -> Heat:
    """Give a window on a completed matrix, of at most so many rows and columns."""
    done = finding.completion
    rows, row_page, row_pages = _window(means.rows, rows_by, row_page, most[0])
    cols, column_page, column_pages = _window(means.columns, columns_by, column_page, most[1])
    values = done.predict(rows[:, None], cols[None, :])
    half = reach(finding)
    low, high = scale or (means.low, means.high)
    names = done.labels or (range(done.shape[0]), range(done.shape[1]))
    labels = [str(names[1][col]) for col in cols]
    lines = [
        _line(
            str(names[0][row]),
            float(means.rows[row]),
            labels,
            [(value, _said(value, half, scale)) for value in line],
            (low, high),
        )
        for row, line in zip(rows, values.tolist(), strict=True)
    ]
    return Heat(
        lines=lines,
        columns=[(name, f"{means.columns[c]:.2f}") for name, c in zip(labels, cols, strict=True)],
        rows_by=rows_by,
        columns_by=columns_by,
        row_page=row_page,
        row_pages=row_pages,
        column_page=column_page,
        column_pages=column_pages,
        shape=done.shape,
        low=f"{low:.3g}",
        high=f"{high:.3g}",
        judged=math.isfinite(half),
    )


def _window(means: Floats, order: Order, page: int, most: int) -> tuple[Int64s, int, int]:
    """Give the places on one page, its number, and how many pages there are."""
    places = np.arange(len(means), dtype=np.int64)
    if order != "given":
        places = np.argsort(-means if order == "high" else means, kind="stable")
    pages = max(1, -(-len(means) // most))
    page = min(max(page, 1), pages)
    return places[(page - 1) * most : page * most], page, pages


def reach(finding: Finding) -> float:
    """Give how far a cell's own mean may be from what is shown, in about nine of ten cells.

    It takes the cells' errors for normal, with the band's estimate as their mean square: it is
    approximate. Infinite where nobody judged, or nothing can be said.
    """
    if finding.band is None:
        return math.inf
    se = finding.band.se if math.isfinite(finding.band.se) else 0.0
    return NormalDist().inv_cdf((1 + LEVEL) / 2) * math.sqrt(max(finding.band.estimate, se, 0.0))


def _said(value: float, half: float, scale: tuple[float, float] | None) -> str:
    """Say a cell's value and interval."""
    if not math.isfinite(half):
        return f"{value:.2f}"
    low, high = scale or (-math.inf, math.inf)
    ends = (min(max(end, low), high) for end in (value - half, value + half))
    return f"{value:.2f} ({' to '.join(f'{end:.2f}' for end in ends)})"


def _line(
    label: str,
    mean: float,
    columns: Sequence[str],
    cells: Sequence[tuple[float, str]],
    limits: tuple[float, float],
) -> Line:
    shown = [
        Cell(f"{value:.1f}", shade(value, limits), f"{label}, {column}: {said}")
        for column, (value, said) in zip(columns, cells, strict=True)
    ]
    return Line(label, f"{mean:.2f}", shown)


def shade(value: float, limits: tuple[float, float]) -> int:
    """Give the shade of a value, from 0 to the darkest.

    >>> shade(1, (1, 5)), shade(3, (1, 5)), shade(5, (1, 5)), shade(2, (2, 2))
    (0, 4, 8, 4)
    """
    low, high = limits
    share = (value - low) / (high - low) if high > low else 0.5
    return int(min(max(share, 0.0), 1.0) * (STEPS - 1) + 0.5)


@dataclass(frozen=True)
class Liking:
    """A column, its mean, and a bar as long as it is."""

    name: str
    mean: str
    bar: Markup


def likings(
    finding: Finding, means: Means, scale: tuple[float, float] | None
) -> tuple[list[Liking], list[Liking]]:
    """Give the columns with the highest and the lowest means."""
    low, high = scale or (means.low, means.high)
    labels: Any = finding.completion.labels
    order = np.argsort(-means.columns, kind="stable").tolist()
    most = min(LISTED, max(1, len(order) // 2))

    def listed(places: list[int]) -> list[Liking]:
        return [
            Liking(
                str(place if labels is None else labels[1][place]),
                f"{means.columns[place]:.2f}",
                length_bar((float(means.columns[place]) - low) / ((high - low) or 1.0)),
            )
            for place in places
        ]

    return listed(order[:most]), listed(order[: -most - 1 : -1])


def length_bar(share: float) -> Markup:
    """Draw a bar of a length between 0 and 1."""
    wide = f"{100 * min(max(share, 0.0), 1.0):.1f}"
    return Markup(
        '<svg class="bar slim" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="rest" width="100" height="10"/>'
        '<rect class="done" width="{}" height="10"/></svg>'
    ).format(wide)
