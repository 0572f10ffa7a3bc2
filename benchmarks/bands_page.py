"""docs/coverage.md and its picture, written from the rows of `bands.py`."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from statistics import median
from typing import Any

import folds
import tables
import widths

DOCS = tables.HERE.parent / "docs"
DELTA = 0.05
SIZES = (500, 1500, 5000)
Row = dict[str, str]

ORDER = ("betting", "bernstein", "hoeffding", "moment", "skew", "normal", "paper")
PROMISES = {
    "betting": "proven",
    "bernstein": "proven",
    "hoeffding": "proven",
    "moment": "proven given E v² ≤ 10 (E v)²",
    "skew": "approximate",
    "normal": "approximate; for allocation",
    "paper": "the paper's constants",
}
BREAKS = {
    "betting": "answers off the declared scale; draws that are not uniform; replicates whose "
    "errors tend to cancel",
    "bernstein": "the same as `betting`",
    "hoeffding": "the same as `betting`",
    "moment": "squared misses with E v² above 10 (E v)²: heavy tails, or errors in a few cells",
    "skew": "few answers, most of the error in few cells",
    "normal": "few answers, skewed misses; a fixed level at every look",
    "paper": "entries that were trained on (`once_vs_multi`); it is wide enough to hide it",
}

INTRO = """# How often the bands hold

Simulated campaigns with a known truth: a 50 × 50 matrix of rank 3, asked about up to 5,000
times; every tenth draw re-asks the one before it. SoftImpute is judged by 5 folds, and the bounds
are of their average; LowRankLeastSquares, re-tuned at every look, by a hold-out of 20 %. The
chance of error is .05. *Held at n* takes the whole of it for that one look. *Held at all looks*
is the share of campaigns in which no look ever failed (50 looks for ratings, 25 elsewhere): with
the chance of error shared out over the looks (`Anytime`), and, for warning, with the whole of
it taken at every look. *Width* is the bound over the true error, median of the campaigns.

Everything on this page was seen in simulation; what is proven is on the page
[The mathematics](mathematics.md). `python benchmarks/bands.py` makes the page, from the rows
in `benchmarks/results/coverage.csv`, `folds.csv` and `widths.csv` (`make coverage` makes all).
"""

FOLDS = """## Which folds

Five folds of a fifth judge by every draw; folds of a tenth or a twentieth leave more to learn from
and less to judge by. Ratings 1–5; *off by* is the root mean square of the estimate's miss, over
the error of the fold average that it is of. Small folds make the fold average nearly as good as
the refit, but with so few judges in each fold the certified bound is wider: five folds are the
default, and `CrossFit(4, 0.05)` is for those who want estimates of models almost as good as the
refit and no certificate."""


WIDTHS = """## How wide, by estimator

One look at ratings 1–5 of a 200 × 200 matrix of rank 10 after 5,000 answers, `betting`, chance of
error .05; R is the true mean squared error, U the bound, medians of the seeds.
(`ProjectedLeastSquares` is made for many answers per cell.)"""


def write() -> None:
    """Write the page and the picture from the rows on disk."""
    (DOCS / "coverage.md").write_text(page())
    draw(tables.read(tables.RESULTS / "coverage.csv"))


def page() -> str:
    """What the rows on disk say, as a page."""
    rows, of_folds, of_widths = (
        tables.read(tables.RESULTS / f"{name}.csv") for name in ("coverage", "folds", "widths")
    )
    parts = [INTRO.rstrip(), about(rows), "![Campaigns in which no look failed](coverage.svg)"]
    for world, estimator in dict.fromkeys((row["world"], row["estimator"]) for row in rows):
        ours = [row for row in rows if (row["world"], row["estimator"]) == (world, estimator)]
        parts += [f"## {world}, {estimator}", tables.markdown(summary(ours))]
    parts += ["## What would break each bound", tables.markdown(reasons()), NOTES]
    parts += [WIDTHS, tables.markdown(widths.summary(of_widths))]
    parts += [FOLDS, tables.markdown(folds.summary(of_folds))]
    return "\n\n".join(parts) + "\n"


NOTES = """Replicates whose errors are alike hide noise: what they hide is counted as error, so the
bounds get wider and hold. Replicates whose errors tend to cancel show more noise than there is,
and every estimate that takes off the noise is too small. No bound can tell: re-ask so that the
second answer does not know of the first."""


def about(rows: Sequence[Row]) -> str:
    last = rows[-1]
    names = ("processor", "python", "malocate", "numpy", "scipy", "numba", "date")
    return "Measured with " + ", ".join(f"{name} {last[name]}" for name in names) + "."


def summary(rows: Sequence[Row]) -> list[dict[str, Any]]:
    by_bound = defaultdict(list)
    for row in rows:
        by_bound[row["bound"]].append(row)
    return [line(bound, by_bound[bound]) for bound in ORDER if bound in by_bound]


def line(bound: str, rows: Sequence[Row]) -> dict[str, Any]:
    """One bound: its single looks, all looks, and widths."""
    made: dict[str, Any] = {"bound": f"`{bound}`", "promise": PROMISES[bound]}
    for size in SIZES:
        made[f"held at n = {size:,}"] = share(sum(int(row[f"held_{size}"]) for row in rows), rows)
    for kind, words in (("spent", "shared out"), ("fixed", ".05 at each")):
        held = sum(row[f"failed_{kind}"] == "0" for row in rows)
        made[f"held at all looks, {words}"] = share(held, rows)
    for size in SIZES:
        made[f"width at n = {size:,}"] = width(rows, size)
    return made | {"campaigns": len(rows)}


def share(held: int, rows: Sequence[Row]) -> str:
    return f"{held / len(rows):.2f}"


def width(rows: Sequence[Row], size: int) -> str:
    middle = median(float(row[f"width_{size}"]) for row in rows)
    return "∞" if math.isinf(middle) else f"{middle:.3g}"


def reasons() -> list[dict[str, str]]:
    return [
        {"bound": f"`{bound}`", "promise": PROMISES[bound], "what would break it": BREAKS[bound]}
        for bound in ORDER
    ]


def draw(rows: Sequence[Row]) -> None:
    """Coverage at all looks against width, a point for each bound in each world."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "malocate"
    from matplotlib import pyplot as plt

    worlds = list(dict.fromkeys(row["world"] for row in rows if row["estimator"] == "SoftImpute"))
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), sharey=True, constrained_layout=True)
    for axis, kind, title in (
        (axes[0], "spent", "Chance of error shared out over the looks"),
        (axes[1], "fixed", ".05 at every look"),
    ):
        for place, bound in enumerate(ORDER):
            marks(axis, rows, worlds, bound, kind, f"C{place}")
        axis.axvline(1 - DELTA, color="grey", lw=1, ls="--")
        axis.set(title=title, xlabel="campaigns in which no look failed", xlim=(-0.02, 1.03))
    axes[0].set_yticks(range(len(worlds)), worlds)
    axes[0].invert_yaxis()
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=7)
    figure.savefig(DOCS / "coverage.svg", metadata={"Date": None})
    plt.close(figure)


def marks(
    axis: Any, rows: Sequence[Row], worlds: Sequence[str], bound: str, kind: str, colour: str
) -> None:
    """One bound's share of unbroken campaigns, world by world."""
    xs, ys = [], []
    for place, world in enumerate(worlds):
        key = (world, "SoftImpute", bound)
        ours = [row for row in rows if (row["world"], row["estimator"], row["bound"]) == key]
        if ours:
            xs.append(sum(row[f"failed_{kind}"] == "0" for row in ours) / len(ours))
            ys.append(place + 0.1 * (ORDER.index(bound) - 3))
    axis.plot(xs, ys, "o", color=colour, ms=6, label=bound, clip_on=False)
