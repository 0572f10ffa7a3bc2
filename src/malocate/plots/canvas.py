"""What all pictures share: matplotlib if it is there, colours for every eye, labels apart."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle

import numpy as np

from malocate.errors import MissingDependency
from malocate.problem.arrays import Floats

try:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage
    from matplotlib.lines import Line2D
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
except ImportError as error:
    raise MissingDependency(
        "Pictures need matplotlib, which is not installed: pip install 'malocate[plots]'"
    ) from error

__all__ = ["Axes", "AxesImage", "Figure", "Line2D"]

BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, BLACK = COLOURS = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#333333",
)
"""Okabe and Ito's colours, told apart by colour-blind readers, but for yellow, too pale here."""

GREY, REST = "#666666", "#d9d9d9"
DASHES = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))


def literal(text: str) -> str:
    r"""Give a text that is drawn as it is, dollar signs too, and not as mathematics.

    >>> print(literal("$x_$"))
    \$x_\$
    """
    return text.replace("$", r"\$")


def nothing_asked(title: str = "") -> Figure:
    """Give the picture of runs that never asked: it says so."""
    figure = Figure(figsize=(8, 3), layout="constrained")
    figure.text(0.5, 0.5, "nobody was asked", ha="center", va="center", color=GREY)
    if title:
        figure.suptitle(title)
    return figure


def tidy(panel: Axes) -> None:
    """Take off what says nothing: the upper and the right frame line; draw a light grid."""
    panel.spines[["top", "right"]].set_visible(False)
    panel.grid(visible=True, which="major", color="#e6e6e6", linewidth=0.7)
    panel.set_axisbelow(True)


def thousands(panel: Axes, axis: str = "x") -> None:
    """Write numbers of answers as people do, 20,000, and few enough of them to stand apart."""
    side = panel.xaxis if axis == "x" else panel.yaxis
    side.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10], integer=True))
    side.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def plain_decades(panel: Axes) -> None:
    """Write a logarithmic axis in plain numbers, in between as well where decades are few."""
    low, high = panel.get_ylim()
    subs = (1, 1.5, 2, 3, 5, 7) if high / low < 10 else (1, 2, 5) if high / low < 300 else (1,)
    panel.yaxis.set_major_locator(LogLocator(subs=subs, numticks=20))
    panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    panel.yaxis.set_minor_formatter(NullFormatter())


def positive(values: object) -> Floats:
    """Give numbers as a logarithmic axis can show them: NaN where they are not above zero."""
    numbers = np.asarray(values, dtype=np.float64)
    return np.where(np.isfinite(numbers) & (numbers > 0), numbers, np.nan)


def styles(count: int) -> list[tuple[str, object]]:
    """Give a colour and a dash for each of several lines; no pair comes twice.

    >>> len(set(map(str, styles(28))))
    28
    """
    pairs = [(colour, dash) for dash in DASHES for colour in COLOURS]
    return [pair for pair, _ in zip(cycle(pairs), range(count), strict=False)]


def apart(places: Sequence[float], gap: float) -> list[float]:
    """Move places as little as it takes until neighbours are `gap` apart; they keep their order.

    Places that would overlap become a block around their common middle.

    >>> [round(place, 2) for place in apart([5.0, 0.1, 0.0], gap=1.0)]
    [5.0, 0.55, -0.45]
    """
    order = np.argsort(places, kind="stable")
    blocks: list[list[float]] = []
    for place in order:
        blocks.append([float(places[place])])
        while len(blocks) > 1 and _ends(blocks[-1], gap)[0] - _ends(blocks[-2], gap)[1] < gap:
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    moved = np.empty(len(places))
    moved[order] = [
        spot for block in blocks for spot in np.linspace(*_ends(block, gap), len(block))
    ]
    return [float(spot) for spot in moved]


def _ends(block: list[float], gap: float) -> tuple[float, float]:
    """Give the lowest and the highest spot of places that are set `gap` apart."""
    middle, half = float(np.mean(block)), gap * (len(block) - 1) / 2
    return middle - half, middle + half
