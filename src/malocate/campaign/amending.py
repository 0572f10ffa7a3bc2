"""Amendments: what may change while a campaign runs, and what is said about it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from malocate.campaign import memory
from malocate.campaign.importing import doubted
from malocate.campaign.stepping import Caveats
from malocate.design import Design
from malocate.errors import Conflict, InvalidInput, InvalidType, NotFound
from malocate.problem import Segment
from malocate.rounds import Finding
from malocate.store import Amended, Look

Lines = Mapping[str, Iterable[Hashable]]
CellsOf = Mapping[str, Iterable[tuple[Hashable, Hashable]]]


@dataclass(frozen=True)
class Amendment:
    """What is to change: limits and goals, more segments, rows, columns, and cells to mask.

    `rows` and `columns` are new labels by segment (where it has none, as many names as there are
    new lines), `mask` the cells, by label, that are not to be asked any more.
    """

    budget: float | None = None
    epsilon: float | None = None
    rmse: float | Mapping[str, float] | None = None
    segments: Sequence[Segment] = ()
    rows: Lines = field(default_factory=dict)
    columns: Lines = field(default_factory=dict)
    mask: CellsOf = field(default_factory=dict)

    def of(self, design: Design) -> Design:
        """Give the design after the change."""
        names = [segment.name for segment in design.segments]
        for side in ("rows", "columns"):
            for name, lines in getattr(self, side).items():
                _check_lines(side, name, lines)
        for name in {*self.rows, *self.columns, *self.mask}:
            if name not in names:
                raise NotFound(f"There is no segment {name!r}; there is {', '.join(names)}.")
        segments = tuple(self._segment(segment) for segment in design.segments)
        changes: dict[str, Any] = {"segments": (*segments, *self.segments)}
        for name in ("budget", "epsilon", "rmse"):
            if getattr(self, name) is not None:
                changes[name] = getattr(self, name)
        if self.segments and isinstance(design.loss.weights, tuple):
            raise InvalidInput(
                "The loss has one weight for each segment, so none can be added; give the weights "
                "to the segments instead, in a new design."
            )
        return replace(design, **changes)

    def caveats(self, design: Design, caveats: Caveats, planned: Mapping[str, int]) -> Caveats:
        """Give what is to be said of the segments from now on; `planned` counts their draws."""
        for segment in design.segments:
            name = segment.name
            if name in {*self.rows, *self.columns, *self.mask}:
                since = caveats.since | {name: planned.get(name, 0)}
                reason = f"Its cells were changed after {planned.get(name, 0):,} draws."
                caveats = doubted(replace(caveats, since=since), name, reason)
            if self.segments:
                added = ", ".join(each.name for each in self.segments)
                reason = f"Segments were added ({added}); the chance of error had been shared out."
                caveats = doubted(caveats, name, reason)
        return caveats

    def _segment(self, segment: Segment) -> Segment:
        if segment.name not in {*self.rows, *self.columns, *self.mask}:
            return segment
        more = [list(side.get(segment.name, ())) for side in (self.rows, self.columns)]
        shape = (segment.shape[0] + len(more[0]), segment.shape[1] + len(more[1]))
        labels = segment.labels
        if labels is not None:
            labels = ((*labels[0], *more[0]), (*labels[1], *more[1]))
        mask = np.zeros(shape, dtype=np.bool_)
        if segment.mask is not None:
            mask[: segment.shape[0], : segment.shape[1]] = segment.mask
        sides = _places(labels, shape)
        for cell in self.mask.get(segment.name, ()):
            mask[_placed(sides, segment.name, cell)] = True
        settings = {n: getattr(segment, n) for n in ("scale", "weight", "cost", "cap", "floor")}
        kept = mask if mask.any() else None
        return Segment(segment.name, shape, labels=labels, mask=kept, **settings)


def prepared(look: Look, change: Amendment, why: str, who: str) -> Amended:
    """Give all that an amendment changes; a campaign that has ended goes on."""
    if look.held.state == "finished":
        words = f"is finished ({look.held.why}); begin a new one"
        raise Conflict(f"Campaign {look.held.name!r} {words}.")
    state = "open" if look.held.state == "done" else look.held.state
    return amended(look, Design.from_toml(look.held.design), change, why, who, state)


def amended(
    look: Look, before: Design, change: Amendment, why: str, who: str, state: str
) -> Amended:
    """Give all that an amendment of the design `before` changes."""
    caveats = Caveats.read(look.held.caveats)
    after = change.of(before)
    each = enumerate(zip(before.segments, after.segments, strict=False))
    changed = [place for place, (one, two) in each if changed_cells(one, two)]
    kept = carried_over(before, after, memory.unpack_all(look.memories(), before))
    planned, masked = _counted(look, after)
    caveats = change.caveats(after, caveats, planned)
    told = {"why": why, "who": who, "design": after.to_toml(), "state": state}
    return Amended(
        design=after.to_toml(),
        caveats=caveats.text(),
        state=state,
        event=told | {"caveats": caveats.to_plain()},
        memories={place: memory.pack(f) for place in changed if (f := kept[place]) is not None},
        given_up=masked,
    )


def _check_lines(side: str, name: str, lines: Any) -> None:
    """Refuse one name in the place of several: a text would be taken letter by letter."""
    if isinstance(lines, str | bytes) or not isinstance(lines, Iterable):
        raise InvalidType(f"{side} of segment {name!r} are {lines!r}; give a list of names.")


def _counted(look: Look, after: Design) -> tuple[dict[str, int], list[int]]:
    """Count each segment's draws, and list those to be asked at cells that are masked by now."""
    planned: dict[str, int] = {}
    masked: list[int] = []
    for each in look.every_draw():
        segment = after.segments[each.segment]
        planned[segment.name] = planned.get(segment.name, 0) + (each.id >= 0)
        unaskable = segment.mask is not None and segment.mask[each.row, each.col]
        if unaskable and each.state in ("open", "lent"):
            masked.append(each.id)
    return planned, masked


def carried_over(
    before: Design, after: Design, findings: Sequence[Finding | None]
) -> list[Finding | None]:
    """Give what is known after a change; fits to other cells are no place to start from."""
    kept: list[Finding | None] = list(findings)
    kept += [None] * (len(after.segments) - len(kept))
    for place, (one, two) in enumerate(zip(before.segments, after.segments, strict=False)):
        finding = kept[place]
        if finding is not None and changed_cells(one, two):
            kept[place] = replace(finding, latest=None)
    return kept


def changed_cells(one: Segment, two: Segment) -> bool:
    """Tell whether a segment's cells are others than before."""
    return one.shape != two.shape or not np.array_equal(
        one.mask if one.mask is not None else np.zeros(one.shape, dtype=np.bool_),
        two.mask if two.mask is not None else np.zeros(two.shape, dtype=np.bool_),
    )


Places = tuple[Mapping[Hashable, int], Mapping[Hashable, int]]


def _places(labels: Any, shape: tuple[int, int]) -> Places:
    """Give the places of rows and of columns by their labels, or numbers where there are none."""
    sides = labels if labels is not None else (range(shape[0]), range(shape[1]))
    rows, columns = ({label: place for place, label in enumerate(side)} for side in sides)
    return rows, columns


def _placed(sides: Places, name: str, cell: Any) -> tuple[int, int]:
    if isinstance(cell, str) or not isinstance(cell, Sequence) or len(cell) != 2:
        words = f"mask of segment {name!r} holds {cell!r}"
        raise InvalidType(f"{words}; give pairs of a row and a column.")
    for side, label, kind in zip(sides, cell, ("row", "column"), strict=True):
        if label not in side:
            raise NotFound(f"Segment {name!r} has no {kind} {label!r}; check its spelling.")
    return sides[0][cell[0]], sides[1][cell[1]]
