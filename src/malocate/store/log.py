"""The log: every event of a campaign, in order, chained by hashes in sealed blocks.

An event's body is JSON text that nobody changes. A block's digest is that of the block before and
of all events in it, so that no event can be changed, dropped or slipped in without a trace. Blocks
are sealed after the fact: commits never wait for each other's place in the chain. An erased body
leaves its digest behind, salted, so that the chain stays valid and nothing can be guessed from it;
a body may also be rewritten without a name. A later event lists all that was so changed.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import struct
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, func, insert, select

from malocate.store.bulk import write_events
from malocate.store.schema import blocks, log

START = bytes(32)
SEALED_AT_ONCE = 50_000
SALT = 6
"""Bytes of chance in a body, so that it cannot be guessed from its digest."""

_encode = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False, check_circular=False
).encode


class Event(NamedTuple):
    """One line of the log; `body` is None once it was erased.

    A `digest` is there once the body was erased or rewritten: that of the body as it was.
    """

    id: int
    at: float
    kind: str
    body: str | None
    digest: bytes | None = None

    @property
    def told(self) -> dict[str, Any]:
        """The body as a table; empty once it was erased."""
        found: dict[str, Any] = {} if self.body is None else json.loads(self.body)
        return found


@dataclass(frozen=True)
class Seal:
    """What a check of the chain found: events and blocks in order, and events not yet sealed."""

    events: int
    blocks: int
    unsealed: int
    broken: str = ""


_after = (
    select(log.c.id, log.c.at, log.c.kind, log.c.body, log.c.digest)
    .where(log.c.campaign == bindparam("campaign"), log.c.id > bindparam("after"))
    .order_by(log.c.id)
)
_some_after = _after.limit(bindparam("most"))
_last_block = (
    select(blocks.c.number, blocks.c.last, blocks.c.digest)
    .where(blocks.c.campaign == bindparam("campaign"))
    .order_by(blocks.c.number.desc())
    .limit(1)
)
_all_blocks = (
    select(blocks.c.number, blocks.c.last, blocks.c.rows, blocks.c.digest)
    .where(blocks.c.campaign == bindparam("campaign"))
    .order_by(blocks.c.number)
)
_newest = select(func.max(log.c.id)).where(log.c.campaign == bindparam("campaign"))


def append(connection: Connection, campaign: int, at: float, kind: str, *bodies: Any) -> None:
    """Write one event for each body, salted."""
    if bodies:
        write_events(connection, campaign, at, kind, texts_of(bodies))


def events(connection: Connection, campaign: int, after: int = 0) -> Generator[Event, None, None]:
    """Give the events of a campaign after number `after`, in order, not all in memory at once."""
    told = {"campaign": campaign, "after": after}
    options = {"stream_results": True, "yield_per": 5_000}
    with connection.execute(_after, told, execution_options=options) as rows:
        for some in rows.partitions():
            yield from map(Event._make, some)


def newest(connection: Connection, campaign: int) -> int:
    """Give the number of the last event."""
    return int(connection.execute(_newest, {"campaign": campaign}).scalar_one() or 0)


def seal(connection: Connection, campaign: int, at_least: int = 1) -> int:
    """Close a block over the events that are in none, if there are so many; give their number.

    The caller sees to it that no event with a lower number is still on its way.
    """
    number, last, digest = _end_of_chain(connection, campaign)
    told = {"campaign": campaign, "after": last, "most": SEALED_AT_ONCE}
    found = [Event(*row) for row in connection.execute(_some_after, told)]
    if len(found) < max(1, at_least):
        return 0
    connection.execute(
        insert(blocks),
        {
            "campaign": campaign,
            "number": number + 1,
            "last": found[-1].id,
            "rows": len(found),
            "digest": chained(digest, found),
        },
    )
    return len(found)


def check(connection: Connection, campaign: int) -> Seal:
    """Compute the whole chain anew, and say where it breaks."""
    sealed = connection.execute(_all_blocks, {"campaign": campaign}).all()
    with closing(events(connection, campaign)) as stream:
        return _checked(sealed, stream)


def _checked(sealed: Sequence[Any], stream: Iterator[Event]) -> Seal:
    before, count = START, 0
    held = next(stream, None)
    for number, last, rows, digest in sealed:
        chain, ids = hashlib.blake2b(before, digest_size=len(START)), []
        while held is not None and held.id <= last:
            chain.update(_sealed(held))
            ids.append(held.id)
            held = next(stream, None)
        if len(ids) != rows:
            words = f"block {number} was sealed over {rows} events and holds {len(ids)}"
            return Seal(count, number - 1, 0, words)
        if chain.digest() != digest:
            words = f"events {ids[0]} to {ids[-1]} are not what block {number} sealed"
            return Seal(count, number - 1, 0, words)
        before, count = digest, count + rows
    unsealed = (held is not None) + sum(1 for _ in stream)
    return Seal(count + unsealed, len(sealed), unsealed)


def chained(before: bytes, inside: Sequence[Event]) -> bytes:
    """Give a block's digest from that of the block before it."""
    digest = hashlib.blake2b(before, digest_size=len(START))
    for each in inside:
        digest.update(_sealed(each))
    return digest.digest()


def _sealed(event: Event) -> bytes:
    """Give what a block seals of an event."""
    return struct.pack("<qd", event.id, event.at) + event.kind.encode() + body_digest(event)


def body_digest(event: Event) -> bytes:
    """Give the digest of an event's body, which stays when the body goes."""
    if event.digest is not None or event.body is None:
        return bytes(event.digest or b"")
    return hashlib.blake2b(event.body.encode(), digest_size=16).digest()


def head(connection: Connection, campaign: int) -> str:
    """Give the digest of the last sealed block, in hexadecimal."""
    return _end_of_chain(connection, campaign)[2].hex()


def _end_of_chain(connection: Connection, campaign: int) -> tuple[int, int, bytes]:
    found = connection.execute(_last_block, {"campaign": campaign}).first()
    return (0, 0, START) if found is None else (found[0], found[1], bytes(found[2]))


def text_of(body: Mapping[str, Any]) -> str:
    """Give a body as it is written: JSON, salted."""
    return texts_of([body])[0]


def halves_of(body: Mapping[str, Any]) -> tuple[str, str]:
    """Give a body as it is written, parted where more can be written into it.

    >>> before, after = halves_of({"draw": 7})
    >>> before, after[:8]
    ('{"draw":7', ',"salt":')
    """
    said, salt, more = text_of(body).rpartition(',"salt":')
    return said, salt + more


def texts_of(bodies: Sequence[Mapping[str, Any]]) -> list[str]:
    """Give bodies as they are written, each with a salt of its own."""
    salts = secrets.token_hex(SALT * len(bodies))
    starts = range(0, len(salts), 2 * SALT)
    return [
        _encode({**body, "salt": salts[start : start + 2 * SALT]})
        for body, start in zip(bodies, starts, strict=True)
    ]
