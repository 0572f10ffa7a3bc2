"""Erasure: a person's answers go, with what the log says of them; the chain stays valid."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from malocate.campaign.presence import Presence
from malocate.design import Design
from malocate.errors import InvalidInput, NotFound
from malocate.problem import Segment
from malocate.store import Drawn, Erased, Event, Look

NAMELESS = "(erased {})"


@dataclass(frozen=True)
class Gone:
    """What is to be erased, and the cells that may not be asked any more."""

    erased: Erased
    mask: dict[str, list[tuple[Hashable, Hashable]]]


def prepared(look: Look, who: str | None, segment: str | None, row: Hashable) -> Gone:
    """Find all that is known of an asker, or of a row; refuse where there is nothing."""
    if (who is None) == (segment is None or row is None):
        raise InvalidInput("Name who is to be erased, or a segment and a row; not both.")
    design = Design.from_toml(look.held.design)
    if who is not None:
        gone = erase_asker(look.events(), look.every_draw(), who, look.held.design)
        if not gone.draws and not gone.redacted:
            raise NotFound(f"Nobody called {who!r} was ever asked; check the spelling.")
        return Gone(gone, {})
    ((place, (number,)),) = Presence.of(design, [row], segment).rows.items()
    gone = erase_row(look.events(), look.every_draw(), design, place, number)
    return Gone(gone, _cells_of(nameless(design, place, number).segments[place], number))


def _cells_of(segment: Segment, row: int) -> dict[str, list[tuple[Hashable, Hashable]]]:
    """Give the cells of a row, unless nothing would be left to ask."""
    sides = segment.labels or (range(segment.shape[0]), range(segment.shape[1]))
    cells = [(sides[0][row], column) for column in sides[1]]
    here = len(cells) if segment.mask is None else int((~segment.mask[row]).sum())
    return {segment.name: cells} if segment.n_askable > here else {}


def erase_asker(events: Iterable[Event], draws: Iterable[Drawn], who: str, design: str) -> Erased:
    """Erase what somebody was lent and answered."""
    redacted: dict[int, str | None] = {}
    theirs: set[tuple[int, int]] = set()
    for event in events:
        told = event.told
        if event.kind == "lent" and told.get("who") == who:
            theirs |= {(draw, attempt) for draw, attempt in told["draws"]}
            redacted[event.id] = json.dumps(told | {"who": ""}, ensure_ascii=False)
        elif event.kind in ("corrected", "turned", "amended") and told.get("who") == who:
            redacted[event.id] = json.dumps(told | {"who": ""}, ensure_ascii=False)
        elif (told.get("draw"), told.get("try")) in theirs:
            redacted[event.id] = None
    gone = {each.id for each in draws if (each.id, each.told_attempt) in theirs}
    return Erased(sorted(gone), redacted, design)


def erase_row(
    events: Iterable[Event], draws: Iterable[Drawn], design: Design, place: int, row: int
) -> Erased:
    """Erase all answers about one row of a segment, and its label."""
    gone = {each.id for each in draws if (each.segment, each.row) == (place, row)}
    redacted = dict(_about_row(events, gone, design, place, row))
    return Erased(sorted(gone), redacted, nameless(design, place, row).to_toml())


def _about_row(
    events: Iterable[Event], gone: set[int], design: Design, place: int, row: int
) -> Iterator[tuple[int, str | None]]:
    name = design.segments[place].name
    for event in events:
        told = event.told
        imported = event.kind == "imported" and (told["segment"], told["row"]) == (place, row)
        if imported or told.get("draw") in gone:
            yield event.id, None
        elif "design" in told:
            without = nameless(Design.from_toml(told["design"]), place, row, name)
            changed = told | {"design": without.to_toml()}
            yield event.id, json.dumps(changed, ensure_ascii=False)


def nameless(design: Design, place: int, row: int, name: str | None = None) -> Design:
    """Give the design without the label of one row."""
    if place >= len(design.segments) or row >= design.segments[place].shape[0]:
        return design
    segment = design.segments[place]
    if segment.labels is None or (name is not None and segment.name != name):
        return design
    rows: list[Any] = list(segment.labels[0])
    rows[row] = NAMELESS.format(row)
    settings = {n: getattr(segment, n) for n in ("scale", "mask", "weight", "cost", "cap", "floor")}
    changed = Segment(segment.name, labels=(rows, segment.labels[1]), **settings)
    segments = (*design.segments[:place], changed, *design.segments[place + 1 :])
    return replace(design, segments=segments)
