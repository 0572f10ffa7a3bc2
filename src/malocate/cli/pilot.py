"""A pilot's answers from a file, as a design's segments know their rows and columns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from malocate.cli.campaign.labels import Cells
from malocate.files import Line
from malocate.files.lines import told_at
from malocate.problem.checks import refuse_answer

if TYPE_CHECKING:
    from malocate.design import Design
    from malocate.problem import Observations


def read_pilot(path: Path, design: Design) -> dict[str, Observations]:
    """Read answers by segment; rows and columns go by labels, or numbers from 0 without any.

    A segment may be left out; the column that names it, too, where there is only one. A line
    that does not fit the design is named.
    """
    from malocate.files import read_answers

    cells = Cells(design)
    found: dict[str, list[tuple[int, int, float]]] = {}
    frame = read_answers(path).answered
    names = ["line", "segment", "row", "column", "value"]
    for number, name, row, column, value in frame[names].itertuples(index=False):
        with told_at(int(number)):
            segment = cells.segment(Line(int(number), {"segment": name}))
            at = [cells.place(segment, side, str(each)) for side, each in enumerate((row, column))]
            if segment.scale is not None and not segment.scale[0] <= value <= segment.scale[1]:
                refuse_answer("value", value, segment.scale)
            found.setdefault(segment.name, []).append((at[0], at[1], float(value)))
    known = {segment.name: segment for segment in design.segments}
    return {name: known[name].observations(*zip(*own, strict=True)) for name, own in found.items()}
