"""The paper's figures: both losses against the answers, mean and interval over the runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from malocate.confidence.tails import student_reach
from malocate.plots.canvas import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    PURPLE,
    VERMILION,
    Axes,
    Figure,
    Line2D,
    plain_decades,
    thousands,
    tidy,
)
from malocate.problem.arrays import Floats

if TYPE_CHECKING:
    import pandas

LOSSES = {
    "loss_1": ("$L^1$: all squared errors", "floor-1"),
    "loss_inf": ("$L^\\infty$: the largest squared error", "floor-inf"),
}
"""The title of each loss's panel, and the floor that belongs to it."""

RECIPES = {
    "paper": "the paper's recipe",
    "conservative": "with a wider bound",
    "best": "malocate's defaults",
}
FLOOR = ("floor: ranks known", PURPLE, (0, (5, 1, 1, 1)))
STRATEGIES = {
    "malocate-1": ("MALocate, p = 1", BLUE, "-"),
    "malocate-inf": ("MALocate, p = ∞", VERMILION, "-"),
    "uniform": ("uniform", BLACK, (0, (5, 1.5))),
    "oracle": ("oracle", GREEN, (0, (1, 1))),
}
RING: dict[str, Any] = {"marker": "o", "ms": 8, "mfc": "white", "mew": 1.7, "ls": ""}


def experiment_picture(frame: pandas.DataFrame, title: str = "") -> Figure:
    """Draw the paper's figure: left the loss L¹, right L^∞; one row of panels for each recipe.

    `frame` has the columns recipe, run, strategy, spent, loss_1 and loss_inf. Lines are means over
    the runs, bands are 95 % intervals of the mean (Student's t on the log scale; none for a single
    run). Where there is a column `capped`, a ring shows when the hardest matrix reached its cap.
    The floors "floor-1" and "floor-inf" are drawn where they belong.

    >>> import pandas
    >>> rows = [("paper", run, "uniform", spent, 90.0 / spent + run, 9.0 / spent + run)
    ...         for run in (1, 2) for spent in (10, 20)]
    >>> columns = ["recipe", "run", "strategy", "spent", "loss_1", "loss_inf"]
    >>> figure = experiment_picture(pandas.DataFrame(rows, columns=columns), "Experiment 1")
    >>> len(figure.axes), figure.get_suptitle()
    (2, 'Experiment 1')
    """
    recipes = [name for name in RECIPES if name in set(frame["recipe"])]
    recipes += sorted(set(frame["recipe"]) - set(recipes))
    figure = Figure(figsize=(11, 0.9 + 3.9 * len(recipes)), layout="constrained")
    panels = figure.subplots(len(recipes), 2, sharex=True, sharey="col", squeeze=False)
    for row, recipe in zip(panels, recipes, strict=True):
        words = f", {RECIPES.get(recipe, recipe)}" if len(recipes) > 1 else ""
        for panel, loss in zip(row, LOSSES, strict=True):
            _draw(panel, frame[frame["recipe"] == recipe], loss)
            panel.set_title(LOSSES[loss][0] + words)
    for panel in panels[-1]:
        panel.set_xlabel("answers")
    _legend(figure)
    if title:
        figure.suptitle(title)
    return figure


@dataclass(frozen=True, eq=False)
class Curve:
    """A mean over runs with an interval, against what was spent."""

    spent: Floats
    mean: Floats
    low: Floats
    high: Floats

    def at(self, spent: float) -> float:
        """Give the mean between two points, as the logarithmic picture shows it."""
        return float(np.exp(np.interp(spent, self.spent, np.log(self.mean))))


def mean_curve(rows: pandas.DataFrame, loss: str) -> Curve:
    """Give the mean over runs and its 95 % interval wherever every run has a value.

    Between its looks a run keeps its last loss, so that runs need not look at the same times. The
    interval is Student's on the log scale, where losses scatter evenly: it reaches as many times
    above the mean as below, and never to zero. A single run has none.

    >>> import pandas
    >>> rows = pandas.DataFrame({"run": [1, 1, 2, 2], "spent": [1, 2, 1, 3], "x": [4, 2, 6, 4.0]})
    >>> curve = mean_curve(rows, "x")
    >>> curve.spent.tolist(), curve.mean.tolist()
    ([1.0, 2.0, 3.0], [5.0, 4.0, 3.0])
    """
    table = rows.pivot_table(index="spent", columns="run", values=loss, aggfunc="last")
    table = table.sort_index().ffill().dropna()
    values = table.to_numpy(dtype=np.float64)
    mean = values.mean(axis=1)
    smallest = np.finfo(np.float64).tiny
    reach = np.exp(np.nan_to_num(student_reach(np.log(np.maximum(values, smallest)))))
    return Curve(table.index.to_numpy(dtype=np.float64), mean, mean / reach, mean * reach)


def _draw(panel: Axes, rows: pandas.DataFrame, loss: str) -> None:
    panel.set_yscale("log")
    for name, (label, colour, dash) in (STRATEGIES | {LOSSES[loss][1]: FLOOR}).items():
        own = rows[rows["strategy"] == name]
        if own.empty:
            continue
        curve = mean_curve(own, loss)
        panel.fill_between(curve.spent, curve.low, curve.high, color=colour, alpha=0.2, lw=0)
        marker = "D" if len(curve.spent) < 20 else None
        panel.plot(
            curve.spent, curve.mean, color=colour, ls=dash, lw=1.7, marker=marker, ms=4, label=label
        )
        if (cap := capped_at(own)) is not None:
            panel.plot(cap, curve.at(cap), mec=colour, zorder=5, **RING)
    tidy(panel)
    plain_decades(panel)
    thousands(panel)


def capped_at(rows: pandas.DataFrame) -> float | None:
    """Give what was spent, on average, when the hardest matrix reached its cap.

    None where most runs did not get there, or nobody noted it.
    """
    if "capped" not in rows:
        return None
    first = rows[rows["capped"].astype(bool)].groupby("run")["spent"].min()
    return float(first.mean()) if 2 * len(first) > rows["run"].nunique() else None


def _legend(figure: Figure) -> None:
    """Give one legend for all panels, each strategy once, and the ring where there is one."""
    found: dict[str, Any] = {}
    for panel in figure.axes:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    if any(line.get_marker() == RING["marker"] for panel in figure.axes for line in panel.lines):
        found["hardest matrix at its cap"] = Line2D([], [], mec=GREY, **RING)
    figure.legend(
        found.values(),
        found.keys(),
        loc="outside lower center",
        ncols=min(6, len(found)),
        frameon=False,
        columnspacing=1.4,
        handletextpad=0.6,
    )
