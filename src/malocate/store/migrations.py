"""Schema versions: a list of small functions, each of which takes a database one version on.

A function is never changed once its version has been released: a kept database file of every
released version proves that it still opens.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection, insert, inspect, select, text, update

from malocate.errors import StoreError
from malocate.store import functions
from malocate.store.schema import about, draws_unusual, metadata, tokens


def _first(connection: Connection) -> None:
    """Version 1: everything."""
    metadata.create_all(connection)
    connection.execute(insert(about).values(name="schema", value="0"))


def _second(connection: Connection) -> None:
    """Version 2: the usual ask and tell as functions of a server."""
    functions.make(connection)


def _third(connection: Connection) -> None:
    """Version 3: tokens, for who comes over the web."""
    tokens.create(connection)


def _fourth(connection: Connection) -> None:
    """Version 4: an index of the draws that did not go as they should, instead of all."""
    connection.execute(text("DROP INDEX IF EXISTS draws_counted"))
    draws_unusual.create(connection, checkfirst=True)


def _fifth(connection: Connection) -> None:
    """Version 5: that index without the imported answers, which are told by their numbers."""
    draws_unusual.drop(connection)
    draws_unusual.create(connection)


MIGRATIONS: tuple[Callable[[Connection], None], ...] = (_first, _second, _third, _fourth, _fifth)


def version_of(connection: Connection) -> int:
    """Give the schema's version; 0 for an empty database, and refuse one of another program."""
    tables = inspect(connection).get_table_names()
    if not tables:
        return 0
    if about.name not in tables:
        listed = ", ".join(sorted(tables)[:5])
        raise StoreError(
            f"The database belongs to another program: it has the tables {listed} and none of "
            "malocate's. Give malocate a database of its own."
        )
    found = connection.execute(select(about.c.value).where(about.c.name == "schema")).scalar_one()
    return int(found)


def upgrade(connection: Connection) -> None:
    """Bring the schema to this program's version, within the caller's transaction."""
    version = version_of(connection)
    if version > len(MIGRATIONS):
        raise StoreError(
            f"The database has schema {version} and this malocate knows up to {len(MIGRATIONS)}; "
            "it was made by a later version. Update malocate to open it."
        )
    if version == len(MIGRATIONS):
        return
    for migrate in MIGRATIONS[version:]:
        migrate(connection)
    connection.execute(
        update(about).where(about.c.name == "schema").values(value=str(len(MIGRATIONS)))
    )
