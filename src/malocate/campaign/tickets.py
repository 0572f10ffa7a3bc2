"""Tickets: a question lent to somebody, under a name that cannot be guessed."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Hashable
from dataclasses import asdict, dataclass
from typing import Any

from malocate.design import Design
from malocate.errors import NotFound
from malocate.store import Drawn

AGAIN = "asked again on purpose: it measures the noise"


@dataclass(frozen=True)
class Ticket:
    """One question, lent until `deadline` (seconds since 1970).

    `row` and `column` are labels where the segment has any, else numbers from 0. `note` says why
    a question comes a second time, where it does.

    >>> Ticket("0-5-1-ab", "north", "Al", "red", "tablet-3", 60.0, 5).column
    'red'
    """

    id: str
    segment: str
    row: Hashable
    column: Hashable
    who: str
    deadline: float
    draw: int
    note: str = ""

    def to_plain(self) -> dict[str, Any]:
        """Give it as a table of plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Stub:
    """What a ticket's name says: its segment's place, the draw, and which lending it was."""

    segment: int
    draw: int
    attempt: int


def ticket_of(design: Design, secret: bytes, drawn: Drawn) -> Ticket:
    """Give the ticket of a draw that is lent."""
    segment = design.segments[drawn.segment]
    row, column = drawn.row, drawn.col
    if segment.labels is not None:
        row, column = segment.labels[0][row], segment.labels[1][column]
    stub = Stub(drawn.segment, drawn.id, drawn.attempt)
    return Ticket(
        id=named(secret, stub),
        segment=segment.name,
        row=row,
        column=column,
        who=drawn.who or "",
        deadline=drawn.deadline or 0.0,
        draw=drawn.number,
        note=AGAIN if drawn.repeats >= 0 else "",
    )


def named(secret: bytes, stub: Stub) -> str:
    """Give a ticket's name: what it says, and a code that only this campaign can make.

    >>> named(b"secret", Stub(0, 5, 1)).split("-")[:3]
    ['0', '5', '1']
    """
    said = f"{stub.segment}-{stub.draw}-{stub.attempt}"
    code = hashlib.blake2b(said.encode(), key=secret, digest_size=8).hexdigest()
    return f"{said}-{code}"


def read(secret: bytes, name: object) -> Stub:
    """Read a ticket's name; refuse one that this campaign has not made."""
    parts = str(name).split("-")
    if len(parts) == 4 and all(part.isdecimal() and len(part) < 19 for part in parts[:3]):
        stub = Stub(int(parts[0]), int(parts[1]), int(parts[2]))
        given = str(name).encode(errors="replace")
        if hmac.compare_digest(named(secret, stub).encode(), given):
            return stub
    raise NotFound(f"There is no ticket {name!r} in this campaign; copy it as `ask` gave it.")


def id_of(ticket: str | Ticket) -> str:
    """Give a ticket's text."""
    return ticket.id if isinstance(ticket, Ticket) else str(ticket)


def not_out(ticket: str | Ticket, done: str) -> str:
    """Say that a ticket can no longer be renewed, released or declined."""
    return (
        f"Ticket {id_of(ticket)} is not out any more: it was settled, or it ran out and its "
        f"question went to somebody else. It was not {done}."
    )
