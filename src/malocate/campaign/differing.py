"""Comparisons in a campaign: what its last looks say of two columns, rows or segments."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from malocate.campaign import answers as answering
from malocate.campaign.stepping import Caveats
from malocate.confidence.difference import Difference, Forward, between, forward, within
from malocate.design import Design
from malocate.errors import InvalidInput, NotFound
from malocate.problem import Observations
from malocate.problem.draws import BEFORE
from malocate.rounds import Finding
from malocate.rounds.looks import CUT, Cells, grid_place
from malocate.store import Look

Things = Sequence[Hashable]


@dataclass(frozen=True, eq=False)
class Question:
    """What is compared: lines of one segment, or segments, there at all cells or at one line."""

    columns: Things | None = None
    rows: Things | None = None
    segments: Sequence[str] | None = None
    segment: str | None = None
    column: Hashable = None
    row: Hashable = None

    def __post_init__(self) -> None:
        things = [each for each in (self.columns, self.rows, self.segments) if each is not None]
        if len(things) != 1 or len(set(things[0])) < max(2, len(things[0])):
            raise InvalidInput("Give at least two columns, rows or segments, each once.")

    def names(self, design: Design) -> list[str]:
        """Give the names of the segments that it is about."""
        known = [segment.name for segment in design.segments]
        names = list(self.segments or filter(None, [self.segment]))
        if not names and len(known) > 1:
            raise InvalidInput(f"There are several segments, {', '.join(known)}; say which.")
        for name in names:
            if name not in known:
                raise NotFound(f"There is no segment {name!r}; there is {', '.join(known)}.")
        return names or known


@dataclass(frozen=True, eq=False)
class Known:
    """A segment's draws up to its last look, and why they may not be called certified."""

    name: str
    seen: Observations
    silent: Cells
    delta: float
    doubts: tuple[str, ...]


def known(look: Look, findings: Sequence[Finding | None], question: Question) -> list[Known]:
    """Read what a question needs, from one state of the campaign."""
    design, caveats = Design.from_toml(look.held.design), Caveats.read(look.held.caveats)
    places = {segment.name: place for place, segment in enumerate(design.segments)}
    found = []
    for name in question.names(design):
        place = places[name]
        segment, finding = design.segments[place], findings[place]
        if finding is None:
            raise InvalidInput(f"Segment {name!r} has not been looked at yet; ask more first.")
        seen, silent = answering.of_segment(look, segment, place, finding.asked)
        seen = seen.take((seen.draws < finding.asked) | (seen.draws >= BEFORE))
        reached, on_grid = grid_place(design, place, finding.asked)
        delta = design.grids[place].delta_at(reached if on_grid else reached + 1)
        doubts = caveats.doubts.get(name, ""), "" if on_grid else CUT
        found.append(Known(name, seen, silent, delta, doubts))
    return found


def differences(design: Design, known: Sequence[Known], question: Question) -> list[Difference]:
    """Compare what a question asks for; each segment spends the share of its last look."""
    held = [_forward(design, each) for each in known]
    certainty = 1 - design.delta
    if question.segments is not None:
        at = {"column": question.column, "row": question.row}
        found = between(held, **at, certainty=certainty)
    elif question.columns is not None:
        found = within(held[0], "column", question.columns, certainty=certainty)
    else:
        found = within(held[0], "row", question.rows or (), certainty=certainty)
    for reason in dict.fromkeys(doubt for each in known for doubt in each.doubts if doubt):
        found = [each.doubted(reason) for each in found]
    return found


def _forward(design: Design, known: Known) -> Forward:
    return forward(
        design.estimator,
        known.seen,
        delta=known.delta,
        unanswered=known.silent,
        salt=design.seed,
        segment=known.name,
    )
