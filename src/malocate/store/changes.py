"""Changes that are rare: amendments, answers brought along, and erasure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, bindparam, delete, select, update
from sqlalchemy import null as sql_null

from malocate.store import log
from malocate.store.bulk import Imported, write_imported
from malocate.store.draws import Drawn
from malocate.store.schema import campaigns, draws, extras, memories
from malocate.store.schema import log as events


@dataclass(frozen=True)
class Amended:
    """What a campaign is to go on with: texts, memories, and draws that are given up for it."""

    design: str
    caveats: str
    state: str
    event: Mapping[str, Any]
    memories: Mapping[int, bytes] = field(default_factory=dict)
    given_up: Sequence[int] = ()


@dataclass(frozen=True)
class Brought:
    """Answers that were there before the campaign, with their events and what is said of them."""

    answers: Sequence[Imported]
    caveats: str
    events: Sequence[Mapping[str, Any]]

    @property
    def count(self) -> int:
        """How many answers these are."""
        return sum(len(each.draw) for each in self.answers)


@dataclass(frozen=True)
class Redacted:
    """What an event says from now on, None for nothing; the digest of what it said stays."""

    event: int
    left: bytes
    instead: str | None


@dataclass(frozen=True)
class Erased:
    """Draws whose answers go, and events whose bodies go or are rewritten without a name.

    An `asker` is forgotten wherever the draws name them, and what they have is taken back;
    `extras` are answers of theirs that were kept aside, by draw and ticket. `amended` is what the
    campaign is to go on with where cells may not be asked any more.
    """

    draws: Sequence[int]
    redacted: Sequence[Redacted]
    design: str
    asker: str | None = None
    extras: Sequence[tuple[int, int]] = ()
    amended: Amended | None = None


_here = draws.c.campaign == bindparam("of")
_every = select(*(draws.c[name] for name in Drawn.__dataclass_fields__)).where(_here)
_in_order = _every.order_by(draws.c.id)
_amend = (
    update(campaigns)
    .where(campaigns.c.id == bindparam("of"))
    .values(
        version=campaigns.c.version + 1,
        design=bindparam("text"),
        caveats=bindparam("said"),
        state=bindparam("to"),
    )
)
_give_up = (
    update(draws)
    .where(_here, draws.c.id == bindparam("draw"))
    .values(state="given up", who=sql_null(), deadline=sql_null())
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
_drop_extra = delete(extras).where(
    extras.c.campaign == bindparam("of"),
    extras.c.draw == bindparam("draw"),
    extras.c.attempt == bindparam("try"),
)
_take_back = (
    update(draws)
    .where(_here, draws.c.state == "lent", draws.c.who == bindparam("asker"))
    .values(state="open", who=sql_null(), deadline=sql_null())
    .returning(draws.c.id, draws.c.attempt)
)
_forget = update(draws).where(_here, draws.c.who == bindparam("asker")).values(who=sql_null())
_redact = (
    update(events)
    .where(events.c.id == bindparam("event"))
    .values(body=bindparam("instead"), digest=bindparam("left"))
)
_rename = (
    update(campaigns)
    .where(campaigns.c.id == bindparam("of"))
    .values(design=bindparam("text"), version=campaigns.c.version + 1)
)


def every_draw(connection: Connection, campaign: int) -> Iterator[Drawn]:
    """Give all draws of a campaign in order, not all in memory at once."""
    options = {"stream_results": True, "yield_per": 5_000}
    for row in connection.execute(_in_order, {"of": campaign}, execution_options=options):
        yield Drawn(*row)


def amend(connection: Connection, campaign: int, amended: Amended, now: float) -> None:
    """Change the design, and give up what is not to be asked any more."""
    told = {"of": campaign, "text": amended.design}
    connection.execute(_amend, told | {"said": amended.caveats, "to": amended.state})
    for segment, body in amended.memories.items():
        connection.execute(_remember, {"of": campaign, "place": segment, "kept": body})
    if amended.given_up:
        rows = [{"of": campaign, "draw": each} for each in amended.given_up]
        connection.execute(_give_up, rows)
        log.append(connection, campaign, now, "given up", {"draws": list(amended.given_up)})
    log.append(connection, campaign, now, "amended", amended.event)


def bring(connection: Connection, campaign: int, brought: Brought, now: float) -> None:
    """Add answers that were there before the campaign."""
    for each in brought.answers:
        write_imported(connection, campaign, each)
    connection.execute(_caveats, {"of": campaign, "said": brought.caveats})
    log.append(connection, campaign, now, "imported", *brought.events)


def erase(connection: Connection, campaign: int, erased: Erased, now: float) -> None:
    """Remove answers and what the log says of them; what the chain needs stays."""
    rows = [{"of": campaign, "draw": each} for each in erased.draws]
    if rows:
        connection.execute(_erase, rows)
        connection.execute(_drop_extras, rows)
    if aside := [{"of": campaign, "draw": d, "try": t} for d, t in erased.extras]:
        connection.execute(_drop_extra, aside)
    if erased.asker is not None:
        _forget_asker(connection, campaign, erased.asker, now)
    if redacted := [vars(each) for each in erased.redacted]:
        connection.execute(_redact, redacted)
    if erased.amended is not None:
        amend(connection, campaign, erased.amended, now)
    else:
        connection.execute(_rename, {"of": campaign, "text": erased.design})
    changed = sorted(each.event for each in erased.redacted)
    body = {"draws": list(erased.draws), "events": changed}
    log.append(connection, campaign, now, "erased", body)


def _forget_asker(connection: Connection, campaign: int, asker: str, now: float) -> None:
    """Take back what somebody has, and leave no draw with their name."""
    told = {"of": campaign, "asker": asker}
    back = sorted((row[0], row[1]) for row in connection.execute(_take_back, told))
    bodies = [{"draw": draw, "try": attempt} for draw, attempt in back]
    log.append(connection, campaign, now, "released", *bodies)
    connection.execute(_forget, told)
