"""Erasure: a person's answers go, with what the log says of them; the chain stays valid."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from malocate.campaign.amending import Amendment, amended
from malocate.campaign.presence import Presence
from malocate.design import Design
from malocate.errors import InvalidInput, NotFound
from malocate.problem import Segment
from malocate.store import Amended, Drawn, Erased, Event, Look, Redacted
from malocate.store.log import body_digest

NAMELESS = "(erased {})"


def prepared(look: Look, who: str | None, segment: str | None, row: Hashable) -> Erased:
    """Find all that is known of an asker, or of a row; refuse where there is nothing."""
    if (who is None) == (segment is None or row is None):
        raise InvalidInput("Name who is to be erased, or a segment and a row; not both.")
    if who is not None:
        gone = erase_asker(look.events(), look.every_draw(), who, look.held.design)
        if not gone.draws and not gone.redacted:
            raise NotFound(f"Nobody called {who!r} was ever asked; check the spelling.")
        return gone
    design = Design.from_toml(look.held.design)
    ((place, (number,)),) = Presence.of(design, [row], segment).rows.items()
    gone = erase_row(look.events(), look.every_draw(), design, place, number)
    return replace(gone, amended=_not_asked_again(look, design, place, number))


def _not_asked_again(look: Look, design: Design, place: int, row: int) -> Amended | None:
    """Give the amendment that masks an erased row, in a campaign that stays as it is."""
    without = nameless(design, place, row)
    mask = _cells_of(without.segments[place], row)
    if not mask:
        return None
    why, state = "a row was erased", look.held.state
    found = amended(look, without, Amendment(mask=mask), why, "", state)
    return replace(found, given_up=())  # they are erased


def _cells_of(segment: Segment, row: int) -> dict[str, list[tuple[Hashable, Hashable]]]:
    """Give the cells of a row, unless nothing would be left to ask."""
    sides = segment.labels or (range(segment.shape[0]), range(segment.shape[1]))
    cells = [(sides[0][row], column) for column in sides[1]]
    here = len(cells) if segment.mask is None else int((~segment.mask[row]).sum())
    return {segment.name: cells} if segment.n_askable > here else {}


def erase_asker(events: Iterable[Event], draws: Iterable[Drawn], who: str, design: str) -> Erased:
    """Erase what somebody was lent and answered."""
    redacted: list[Redacted] = []
    lent: set[tuple[int, int]] = set()
    answered: set[int] = set()
    aside: list[tuple[int, int]] = []
    for event in events:
        told = event.told
        ticket = told.get("draw"), told.get("try")
        if event.kind == "lent" and told.get("who") == who:
            lent |= {(draw, attempt) for draw, attempt in told["draws"]}
        if event.kind == "told" and ticket in lent:
            answered.add(told["draw"])
        if event.kind == "extra" and ticket in lent:
            aside.append((told["draw"], told["try"]))
        of_answer = event.kind == "corrected" and told.get("draw") in answered
        if of_answer or (event.kind in ("told", "extra", "conflict") and ticket in lent):
            redacted.append(_without_all(event))
        elif event.kind == "declined" and ticket in lent:
            redacted.append(_rewritten(event, reason=""))
        elif told.get("who") == who:
            redacted.append(_rewritten(event, who=""))
    gone = {each.id for each in draws if (each.id, each.told_attempt) in lent}
    return Erased(sorted(gone), redacted, design, asker=who, extras=aside)


def erase_row(
    events: Iterable[Event], draws: Iterable[Drawn], design: Design, place: int, row: int
) -> Erased:
    """Erase all answers about one row of a segment, and its label."""
    gone = {each.id for each in draws if (each.segment, each.row) == (place, row)}
    redacted = list(_about_row(events, gone, design, place, row))
    return Erased(sorted(gone), redacted, nameless(design, place, row).to_toml())


def _about_row(
    events: Iterable[Event], gone: set[int], design: Design, place: int, row: int
) -> Iterator[Redacted]:
    name = design.segments[place].name
    for event in events:
        told = event.told
        imported = event.kind == "imported" and (told.get("segment"), told.get("row"))
        if imported == (place, row) or told.get("draw") in gone:
            yield _without_all(event)
        elif "design" in told:
            without = nameless(Design.from_toml(told["design"]), place, row, name)
            yield _rewritten(event, design=without.to_toml())


def _without_all(event: Event) -> Redacted:
    return Redacted(event.id, body_digest(event), None)


def _rewritten(event: Event, **changes: Any) -> Redacted:
    """Change an event, without its salt: with it, a name could be guessed from the digest."""
    kept = {name: value for name, value in event.told.items() if name != "salt"}
    return Redacted(event.id, body_digest(event), json.dumps(kept | changes, ensure_ascii=False))


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
