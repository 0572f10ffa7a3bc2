"""Changes that are rare: amendments, answers brought along, and erasure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, bindparam, delete, select, update
from sqlalchemy import null as sql_null

from malocate.store import log
from malocate.store.draws import Drawn, add
from malocate.store.schema import campaigns, draws, extras, memories


@dataclass(frozen=True)
class Amended:
    """What a campaign is to go on with: texts, memories, and draws that are given up for it."""

    version: int
    design: str
    caveats: str
    state: str
    event: Mapping[str, Any]
    memories: Mapping[int, bytes] = field(default_factory=dict)
    given_up: Sequence[int] = ()


@dataclass(frozen=True)
class Erased:
    """Draws whose answers go, and events whose bodies go or are rewritten without a name."""

    draws: Sequence[int]
    redacted: Mapping[int, str | None]
    design: str


_here = draws.c.campaign == bindparam("of")
_every = select(*(draws.c[name] for name in Drawn.__dataclass_fields__)).where(_here)
_in_order = _every.order_by(draws.c.id)
_amend = (
    update(campaigns)
    .where(campaigns.c.id == bindparam("of"), campaigns.c.version == bindparam("before"))
    .values(
        version=campaigns.c.version + 1,
        design=bindparam("text"),
        caveats=bindparam("said"),
        state=bindparam("to"),
    )
    .returning(campaigns.c.id)
)
_give_up = (
    update(draws)
    .where(_here, draws.c.id == bindparam("draw"), draws.c.state == "open")
    .values(state="given up")
    .returning(draws.c.id)
)
_remember = (
    update(memories)
    .where(memories.c.campaign == bindparam("of"), memories.c.segment == bindparam("place"))
    .values(body=bindparam("kept"))
)
_caveats = (
    update(campaigns)
    .where(campaigns.c.id == bindparam("of"))
    .values(caveats=bindparam("said"), version=campaigns.c.version + 1)
)
_erase = (
    update(draws)
    .where(_here, draws.c.id == bindparam("draw"))
    .values(state="erased", value=sql_null(), who=sql_null(), deadline=sql_null())
)
_drop_extras = delete(extras).where(
    extras.c.campaign == bindparam("of"), extras.c.draw == bindparam("draw")
)
_rename = (
    update(campaigns)
    .where(campaigns.c.id == bindparam("of"))
    .values(design=bindparam("text"), version=campaigns.c.version + 1)
)


def every_draw(connection: Connection, campaign: int) -> Iterator[Drawn]:
    """Give all draws of a campaign in order, not all in memory at once."""
    streamed = connection.execution_options(stream_results=True, yield_per=5_000)
    for row in streamed.execute(_in_order, {"of": campaign}):
        yield Drawn(*row)


def amend(connection: Connection, campaign: int, amended: Amended, now: float) -> bool:
    """Change the design; tell whether it was still the version that the change was made for."""
    told = {"of": campaign, "before": amended.version, "text": amended.design}
    told |= {"said": amended.caveats, "to": amended.state}
    if connection.execute(_amend, told).first() is None:
        return False
    for segment, body in amended.memories.items():
        connection.execute(_remember, {"of": campaign, "place": segment, "kept": body})
    rows = [{"of": campaign, "draw": each} for each in amended.given_up]
    given_up = [row["draw"] for row in rows if connection.execute(_give_up, row).first()]
    if given_up:
        log.append(connection, campaign, now, "given up", {"draws": given_up})
    log.append(connection, campaign, now, "amended", amended.event)
    return True


def bring(
    connection: Connection,
    campaign: int,
    brought: Sequence[Drawn],
    caveats: str,
    events: Sequence[Mapping[str, Any]],
    now: float,
) -> None:
    """Add answers that were there before the campaign."""
    add(connection, campaign, brought)
    connection.execute(_caveats, {"of": campaign, "said": caveats})
    log.append(connection, campaign, now, "imported", *events)


def erase(connection: Connection, campaign: int, erased: Erased, now: float) -> None:
    """Remove answers and what the log says of them; what the chain needs stays."""
    rows = [{"of": campaign, "draw": each} for each in erased.draws]
    if rows:
        connection.execute(_erase, rows)
        connection.execute(_drop_extras, rows)
    log.redact(connection, campaign, erased.redacted)
    connection.execute(_rename, {"of": campaign, "text": erased.design})
    body = {"draws": list(erased.draws), "events": sorted(erased.redacted)}
    log.append(connection, campaign, now, "erased", body)
