"""Lending: which draws somebody gets, and whether a worker plans what comes after them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from malocate.campaign.presence import Presence, places_of
from malocate.design import Design
from malocate.store import Asked, Held, Lent, Store
from malocate.store.planning import TOO_FAR_AHEAD

Rows = Iterable[Hashable]


def lend(
    store: Store,
    campaign: int,
    design: Design,
    asked: Asked,
    now: float,
    segment: str | None = None,
    rows: Rows | None = None,
) -> Lent:
    """Lend draws of all segments or of one, or redrawn to the rows that are present."""
    chosen: dict[str, Any] = {}
    if rows is not None:
        present = Presence.of(design, rows, segment)
        chosen = {"redraw": present.redraw, "note": present.note()}
        chosen["segments"] = list(present.rows)
    elif segment is not None:
        chosen["segments"] = places_of(design, segment)
    return store.lend(campaign, asked.most, asked.who, now=now, until=asked.until, **chosen)


def worker_is_there(held: Held, now: float) -> bool:
    """Tell whether a worker has given a sign of life; one that is far ahead is a wrong clock."""
    return 0 <= held.worker_until - now <= TOO_FAR_AHEAD
