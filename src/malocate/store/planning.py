"""Planning as the store keeps it: a lease on what follows a round, rounds, a campaign's state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, update

from malocate.store import draws as drawing
from malocate.store import log
from malocate.store.draws import Drawn
from malocate.store.looking import BY_ID, Held
from malocate.store.schema import campaigns, memories, rounds

TOO_FAR_AHEAD = 600.0
"""Seconds by which another's sign of life may be ahead; more was by a clock that has gone back."""


@dataclass(frozen=True)
class Planned:
    """A round to begin: its number, body and draws, how the segments stand, and what is kept.

    `memories` are what the next planner needs of the segments that have changed.
    """

    number: int
    version: int
    body: str
    standing: str
    event: Mapping[str, Any]
    draws: Sequence[Drawn]
    memories: Mapping[int, bytes]


_this = campaigns.c.id == bindparam("of")
_claim = (
    update(campaigns)
    .where(
        _this,
        campaigns.c.round == bindparam("after"),
        (campaigns.c.planner_until < bindparam("now"))
        | (campaigns.c.planner_until > bindparam("beyond"))
        | (campaigns.c.planner == bindparam("me")),
    )
    .values(planner=bindparam("me"), planner_until=bindparam("until"))
    .returning(campaigns.c.id)
)
_unclaim = (
    update(campaigns)
    .where(_this, campaigns.c.planner == bindparam("me"))
    .values(planner="", planner_until=0.0)
)
_begin = (
    update(campaigns)
    .where(
        _this,
        campaigns.c.state == "open",
        campaigns.c.round == bindparam("number") - 1,
        campaigns.c.version == bindparam("made_for"),
    )
    .values(
        round=bindparam("number"),
        standing=bindparam("stands"),
        planner="",
        planner_until=0.0,
    )
    .returning(campaigns.c.id)
)
_turn = (
    update(campaigns)
    .where(_this)
    .values(state=bindparam("to"), why=bindparam("because"), planner="", planner_until=0.0)
)
_stand = update(campaigns).where(_this).values(standing=bindparam("stands"))
_beat = update(campaigns).where(_this).values(worker_until=bindparam("until"))
_forget = delete(memories).where(
    memories.c.campaign == bindparam("of"), memories.c.segment == bindparam("place")
)


def claim(
    connection: Connection, campaign: int, me: str, after: int, now: float, until: float
) -> bool:
    """Take or keep the lease on planning what follows a round; tell whether it is ours."""
    told = {"of": campaign, "me": me, "after": after, "now": now, "until": until}
    told |= {"beyond": now + TOO_FAR_AHEAD}
    return connection.execute(_claim, told).first() is not None


def unclaim(connection: Connection, campaign: int, me: str) -> None:
    """Give the lease back."""
    connection.execute(_unclaim, {"of": campaign, "me": me})


def beat(connection: Connection, campaign: int, until: float) -> None:
    """Note that a worker plans, at least until then."""
    connection.execute(_beat, {"of": campaign, "until": until})


def begin(connection: Connection, campaign: int, planned: Planned, now: float) -> bool:
    """Begin a round, if it is the one to follow."""
    told = {"of": campaign, "number": planned.number, "stands": planned.standing}
    if connection.execute(_begin, told | {"made_for": planned.version}).first() is None:
        return False
    row = {"campaign": campaign, "number": planned.number, "planned": now}
    connection.execute(insert(rounds), row | {"body": planned.body})
    drawing.add(connection, campaign, planned.draws)
    _remember(connection, campaign, planned)
    log.append(connection, campaign, now, "planned", planned.event)
    return True


def end(connection: Connection, campaign: int, planned: Planned, why: str, now: float) -> bool:
    """End a campaign, if its last round is the one that the end was planned for."""
    held = Held(*connection.execute(BY_ID, {"of": campaign}).one())
    current = (held.round, held.version) == (planned.number - 1, planned.version)
    if not current or held.state not in ("open", "paused"):
        return False
    _remember(connection, campaign, planned)
    connection.execute(_stand, {"of": campaign, "stands": planned.standing})
    connection.execute(_turn, {"of": campaign, "to": "done", "because": why})
    log.append(connection, campaign, now, "stopped", planned.event)
    return True


def turn(
    connection: Connection,
    campaign: int,
    state: str,
    why: str,
    who: str,
    allowed: Sequence[str],
    now: float,
) -> Held:
    """Bring a campaign in an allowed state to another; give it as it was before."""
    held = Held(*connection.execute(BY_ID, {"of": campaign}).one())
    if held.state == state or held.state not in allowed:
        return held
    connection.execute(_turn, {"of": campaign, "to": state, "because": why})
    log.append(connection, campaign, now, "turned", {"to": state, "why": why, "who": who})
    return held


def _remember(connection: Connection, campaign: int, planned: Planned) -> None:
    for segment, body in planned.memories.items():
        connection.execute(_forget, {"of": campaign, "place": segment})
        row = {"campaign": campaign, "segment": segment, "round": planned.number, "body": body}
        connection.execute(insert(memories), row)
