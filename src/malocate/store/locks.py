"""Who waits for whom: SQLite lets one write at a time; a server lets many, and is told who waits.

On a server, a transaction that writes events of a campaign holds that campaign's lock beside
others. One that needs all of them to be done, because it numbers, seals or changes the campaign
itself, holds it alone. The lock goes with the transaction.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection, text

from malocate.store.engines import Database

_UPGRADING = text("SELECT pg_advisory_xact_lock(0)")
_BESIDE_OTHERS = text("SELECT pg_advisory_xact_lock_shared(:of)")
_ALONE = text("SELECT pg_advisory_xact_lock(:of)")
_ASKING = text("SELECT pg_advisory_xact_lock(CAST(:of AS integer), hashtext(:asker))")


def upgrading(connection: Connection) -> None:
    """Let only one process make or upgrade the tables."""
    if _on_server(connection):
        connection.execute(_UPGRADING)


def beside_others(connection: Connection, campaign: int) -> None:
    """Write events of a campaign while others do."""
    if _on_server(connection):
        connection.execute(_BESIDE_OTHERS, {"of": campaign})


def alone(connection: Connection, campaign: int) -> None:
    """Write events of a campaign while nobody else does."""
    if _on_server(connection):
        connection.execute(_ALONE, {"of": campaign})


def asking(connection: Connection, campaign: int, who: str) -> None:
    """Let somebody ask once at a time, so that they get the same tickets wherever they ask."""
    if _on_server(connection):
        connection.execute(_ASKING, {"of": campaign, "asker": who})


@contextmanager
def nobody_writing(database: Database, campaign: int) -> Iterator[None]:
    """Wait until no event of a campaign is on its way, and hold new ones back for a moment."""
    if database.is_sqlite:
        yield
        return
    with database.engine.connect() as connection, connection.begin():
        alone(connection, campaign)
        yield


def _on_server(connection: Connection) -> bool:
    return connection.dialect.name == "postgresql"
