"""The picture of a completion beside the truth."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from malocate.estimators.base import Completion
from malocate.plots.canvas import Axes, AxesImage, Figure
from malocate.problem import Observations

Floats = NDArray[np.float64]
Limits = tuple[float, float]
VALUES, ERRORS, UNSEEN = "cividis", "PuOr", "#eeeeee"  # told apart by colour-blind readers too


def completion_picture(truth: Floats, observations: Observations, completion: Completion) -> Figure:
    """Draw the truth, what was seen of it, the completion, and the completion's error.

    Rows and columns are sorted by the truth's leading pattern, so that structure shows. The
    figure's `savefig` writes it to a file.

    >>> from malocate import Completion, Synthetic
    >>> source = Synthetic.low_rank(shape=(30, 20), rank=2, rng=0)
    >>> exact = Completion(source.left, source.right)
    >>> figure = completion_picture(source.truth, source.observe(200), exact)
    >>> [panel.get_title() for panel in figure.axes[:4]]
    ['truth', 'seen: 29 % of the cells', 'completed, rank 2', 'error: RMSE 0.00']
    """
    seen, error = _mean_answers(observations), completion.dense() - truth
    share, rmse = np.isfinite(seen).mean(), np.sqrt((error**2).mean())
    low, high = observations.scale or np.quantile(truth, [0.005, 0.995])
    widest = float(np.quantile(np.abs(error), 0.995)) or 1.0
    shown = [
        (truth, "truth", VALUES, (low, high)),
        (seen, f"seen: {100 * share:.0f} % of the cells", VALUES, (low, high)),
        (truth + error, f"completed, rank {completion.rank}", VALUES, (low, high)),
        (error, f"error: RMSE {rmse:.2f}", ERRORS, (-widest, widest)),
    ]
    figure = _empty_figure(truth.shape)
    panels = figure.subplots(1, 4, sharex=True, sharey=True)
    order = _leading_order(truth)
    images = [
        _draw(panel, matrix[order], title, colours, limits)
        for panel, (matrix, title, colours, limits) in zip(panels, shown, strict=True)
    ]
    panels[0].set_ylabel("rows")
    figure.colorbar(images[0], ax=list(panels[:3]), label="value", extend=_extend(observations))
    figure.colorbar(images[3], ax=panels[3], label="completed − truth", extend="both")
    return figure


def _empty_figure(shape: tuple[int, ...]) -> Figure:
    height = float(np.clip(2.6 * shape[0] / shape[1], 1.6, 5.0))
    return Figure(figsize=(13, height + 0.8), layout="constrained")


def _draw(panel: Axes, matrix: Floats, title: str, colours: str, limits: Limits) -> AxesImage:
    image = panel.imshow(
        matrix, aspect="auto", interpolation="nearest", cmap=colours, vmin=limits[0], vmax=limits[1]
    )
    panel.set_facecolor(UNSEEN)
    panel.set_title(title)
    panel.set_xlabel("columns")
    panel.set(xticks=[], yticks=[])
    return image


def _mean_answers(observations: Observations) -> Floats:
    matrix = np.full(observations.shape, np.nan)
    entries = observations.entries
    matrix[entries.rows, entries.cols] = entries.means
    return matrix


def _leading_order(matrix: Floats) -> tuple[NDArray[np.intp], ...]:
    left, _, right = np.linalg.svd(matrix - matrix.mean(), full_matrices=False)
    return np.ix_(np.argsort(left[:, 0]), np.argsort(right[0]))


def _extend(observations: Observations) -> str:
    return "both" if observations.scale is None else "neither"
