"""Answers of a file on the command line: how they were drawn, and what follows for bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

if TYPE_CHECKING:
    from malocate.files import Answers
    from malocate.problem import Observations

UNKNOWN = (
    "Nobody has said how the cells were chosen that were answered (--uniform declares that each "
    "time every cell had the same chance), so nothing here is proven."
)
"""Why no band of a plain file is certified."""

Scale = Annotated[
    tuple[float, float] | None,
    typer.Option(
        metavar="LEAST LARGEST",
        help="The least and the largest answer that can be given, such as 1 5.",
        show_default=False,
    ),
]
Uniform = Annotated[
    bool,
    typer.Option(
        "--uniform",
        help="Declare that each time every cell had the same chance to be asked; bounds can "
        "then be certified.",
    ),
]
Delta = Annotated[
    float, typer.Option(min=0, max=1, help="The chance of error of all that is said together.")
]


def observed(
    answers: Answers, scale: tuple[float, float] | None, uniform: bool
) -> dict[str, Observations]:
    """Give each segment's answers, by name.

    Where nobody says that cells were drawn by chance, a cell with several answers counts as asked
    again on purpose: all its answers judge together a fit that has seen none of them.
    """
    found = {str(name): each for name, each in answers.observations(scale).items()}
    return found if uniform else {name: _together(each) for name, each in found.items()}


def _together(answers: Observations) -> Observations:
    """Take each further answer at a cell for a designed replicate of the first."""
    from malocate.problem import Observations

    _, first, cell = np.unique(answers.entry_numbers, return_index=True, return_inverse=True)
    origin, places = first[cell], np.arange(len(answers))
    return Observations(
        answers.rows,
        answers.cols,
        answers.values,
        shape=answers.shape,
        scale=answers.scale,
        labels=answers.labels,
        repeats=np.where(origin == places, -1, origin),
    )
