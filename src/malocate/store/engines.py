"""Engines: SQLite in one file, or PostgreSQL, with transactions that wait their turn.

A *writing* transaction on SQLite takes a lock on a file beside the database before it begins:
SQLite's own waiting is unfair, and under a crowd lets some wait for seconds. An acknowledged
commit is on the disk (`synchronous=FULL`). Readers never wait for writers.
"""

from __future__ import annotations

import math
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    PoolProxiedConnection,
    create_engine,
    event,
    make_url,
)
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    DisconnectionError,
    NoSuchModuleError,
    SQLAlchemyError,
)
from sqlalchemy.pool import QueuePool

from malocate.errors import InvalidInput, MissingDependency, StoreError

try:
    import fcntl
except ImportError:  # Windows, where SQLite's own waiting has to do
    fcntl = None  # type: ignore[assignment]

BUSY_SECONDS = 30
IDLE_SECONDS = 1.0


def parsed(url: str) -> URL:
    """Give the parts of a database's address; a plain path is that of an SQLite file."""
    if not isinstance(url, str | os.PathLike) or not str(url):
        raise InvalidInput(f"The database's address is {url!r}; give a path or a URL.")
    text = str(url)
    if "://" not in text:
        text = f"sqlite:///{text}"
    try:
        found = make_url(text)
    except (ArgumentError, ValueError):
        shown = re.sub(r"://.*@", "://***@", text)  # a password belongs into no message
        raise InvalidInput(f"{shown!r} is no address of a database; {_KINDS}.") from None
    if found.get_backend_name() == "postgresql":
        return found.set(drivername="postgresql+psycopg")
    if found.get_backend_name() != "sqlite" or not found.database or found.database == ":memory:":
        raise InvalidInput(
            f"{_shown(found)!r} is no database that a campaign can live in; {_KINDS}."
        )
    return found.set(drivername="sqlite")


_KINDS = "give the path of an SQLite file, sqlite:///path, or postgresql://user@host/name"


def _shown(url: URL) -> str:
    """Give an address without its password, wherever it stands."""
    hidden = {name: "***" for name in url.query if "password" in name}
    return url.update_query_dict(hidden).render_as_string(hide_password=True)


class Database:
    """One database: how to read it and how to write to it, errors told in a sentence."""

    def __init__(self, url: str) -> None:
        self.url = parsed(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self.engine = _sqlite(self.url) if self.is_sqlite else _postgresql(self.url)
        self._refusal: type[Exception] = self.engine.dialect.loaded_dbapi.Error
        self._lock = f"{self.url.database}-lock" if self.is_sqlite and fcntl else None
        self._at_hand: list[tuple[float, PoolProxiedConnection]] = []

    def __str__(self) -> str:
        return _shown(self.url)

    @property
    def exists(self) -> bool:
        """Whether an SQLite file is there; a server is taken to be."""
        return not self.is_sqlite or Path(str(self.url.database)).exists()

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Give a connection in a transaction; it is committed, and on the disk, at the end."""
        with self._told(), self.engine.connect() as connection, self._turn(), connection.begin():
            if self.is_sqlite:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
            yield connection

    @contextmanager
    def in_one_go(self) -> Iterator[Any]:
        """Give the driver's own connection: one statement on a server, a transaction on SQLite.

        What SQLAlchemy does around a statement would take longer than the statement.
        """
        with self._told():
            pooled = self._taken()
            connection: Any = pooled.driver_connection
            try:
                if self.is_sqlite:
                    with self._turn():
                        connection.execute("BEGIN IMMEDIATE")
                        yield connection
                        connection.execute("COMMIT")
                else:
                    yield connection
            except BaseException:
                pooled.invalidate()
                raise
            self._lay_at_hand(pooled)

    def _taken(self) -> PoolProxiedConnection:
        """Give the connection that is at hand; one that lay there for long goes by the pool."""
        with suppress(IndexError):
            since, pooled = self._at_hand.pop()
            if time.monotonic() - since <= IDLE_SECONDS:
                return pooled
            self._give_back(pooled)
        fresh = self.engine.raw_connection()
        if not self.is_sqlite:
            fresh.driver_connection.autocommit = True  # type: ignore[union-attr]
        return fresh

    def _lay_at_hand(self, pooled: PoolProxiedConnection) -> None:
        if self._at_hand:
            self._give_back(pooled)
        else:
            self._at_hand.append((time.monotonic(), pooled))

    def _give_back(self, pooled: PoolProxiedConnection) -> None:
        if not self.is_sqlite:
            pooled.driver_connection.autocommit = False  # type: ignore[union-attr]
        pooled.close()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Give a connection that sees one state of everything, however long it reads."""
        with self._told(), self.engine.connect() as connection:
            if not self.is_sqlite:
                connection.execution_options(isolation_level="REPEATABLE READ")
            with connection.begin():
                if self.is_sqlite:
                    connection.exec_driver_sql("BEGIN")
                yield connection

    def prepare(self) -> None:
        """Let an SQLite file that is ours be read while it is written to; this stays with it."""
        if self.is_sqlite:
            with self._told(), self._turn(), self.engine.connect() as connection:
                connection.exec_driver_sql("PRAGMA journal_mode=WAL").close()

    def scrub(self) -> None:
        """Let an SQLite file forget what was removed: its free pages and its log hold it else."""
        if self.is_sqlite:
            with self._told(), self.engine.connect() as connection, self._turn():
                connection.exec_driver_sql("VACUUM").close()
                connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").close()

    def close(self) -> None:
        """Let go of all connections."""
        while self._at_hand:
            self._at_hand.pop()[1].invalidate()
        self.engine.dispose()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Wait for the turn to write: first come, first served."""
        if self._lock is None:
            yield
            return
        file = os.open(self._lock, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
        finally:
            os.close(file)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Say in a sentence what went wrong with the database."""
        try:
            yield
        except DBAPIError as problem:
            raise StoreError(f"{self}: {_sentence(str(problem.orig))}") from problem
        except self._refusal as problem:
            raise StoreError(f"{self}: {_sentence(str(problem))}") from problem
        except SQLAlchemyError as problem:
            raise StoreError(f"{self}: {problem}") from problem
        except OSError as problem:
            words = f"The file, or its folder, cannot be used ({problem.strerror or problem})"
            raise StoreError(f"{self}: {words}; check its permissions.") from problem


def _sqlite(url: URL) -> Engine:
    engine = create_engine(url, poolclass=QueuePool, connect_args={"timeout": BUSY_SECONDS})
    event.listen(engine, "connect", _prepare)
    return engine


def _prepare(connection: Any, _: Any) -> None:
    """Leave transactions to us, and make commits durable."""
    connection.isolation_level = None
    for pragma in (
        "synchronous=FULL",
        "foreign_keys=ON",
        f"busy_timeout={BUSY_SECONDS * 1000}",
    ):
        connection.execute(f"PRAGMA {pragma}").close()


def _postgresql(url: URL) -> Engine:
    try:
        engine = create_engine(url, connect_args={"client_encoding": "utf8"})
    except (ImportError, NoSuchModuleError):
        raise MissingDependency(
            "A campaign on PostgreSQL needs psycopg; install malocate[campaign]."
        ) from None
    event.listen(engine, "checkin", _laid_down)
    event.listen(engine, "checkout", _picked_up)
    return engine


def _laid_down(_: Any, record: Any) -> None:
    record.info["since"] = time.monotonic()


def _picked_up(connection: Any, record: Any, _: Any) -> None:
    """Replace a connection that broke while nobody used it; asking each time would cost a trip."""
    if time.monotonic() - record.info.get("since", math.inf) > IDLE_SECONDS:
        try:
            connection.execute("SELECT 1")
            connection.rollback()
        except connection.OperationalError:
            raise DisconnectionError from None


_HINTS = {
    "disk is full": "The disk is full; nothing of this step was written. Make room and repeat it",
    "disk I/O error": "The disk refuses to be read or written, such as when it is full; nothing of "
    "this step was written. Make it work and repeat the step",
    "readonly database": "The file, or its folder, cannot be written to; change its permissions",
    "unable to open": "The file cannot be opened; check its folder and its permissions",
    "not a database": "The file is no SQLite database; give another path",
    "malformed": "The file is damaged, such as by copying it while it was in use; "
    "restore a backup made by SQLite's .backup",
    "password authentication failed": "The server refuses the user or the password; check both",
    **dict.fromkeys(
        (
            "onnection refused",
            "closed the connection",
            "terminating connection",
            "timed out",
            "No such file or directory",
            "translate host name",
            "resolve host",
        ),
        "The server cannot be reached, or has stopped; see to it and repeat the step: what was "
        "acknowledged is kept",
    ),
    "does not exist": "The server has no such database or user; make it, or check the address",
    "is locked": "Somebody else has locked the database for long; close other programs that use it",
}


def _sentence(problem: str) -> str:
    said = problem.strip().splitlines()[0] if problem.strip() else "no answer"
    for part, hint in _HINTS.items():
        if part in problem:
            return f"{hint} ({said})."
    return f"{said.rstrip('.')}."
