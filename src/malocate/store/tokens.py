"""Tokens: who may do what with a campaign over the web. Only their digests are kept."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from sqlalchemy import bindparam, insert, select, update
from sqlalchemy.exc import IntegrityError

from malocate.errors import Conflict
from malocate.store.engines import Database
from malocate.store.schema import tokens


@dataclass(frozen=True)
class Token:
    """What is known of a token; `campaign` 0 is for all campaigns of the database."""

    id: int
    campaign: int
    name: str
    role: str
    digest: bytes
    created: float
    revoked: float | None


_COLUMNS = tuple(tokens.c[name] for name in Token.__dataclass_fields__)
_find = select(*_COLUMNS).where(tokens.c.digest == bindparam("known"))
_listed = select(*_COLUMNS).where(tokens.c.campaign == bindparam("of")).order_by(tokens.c.id)
_named = select(tokens.c.id).where(
    tokens.c.campaign == bindparam("of"), tokens.c.name == bindparam("called")
)
_revoke = (
    update(tokens)
    .where(
        tokens.c.campaign == bindparam("of"),
        tokens.c.name == bindparam("called"),
        tokens.c.revoked.is_(None),
    )
    .values(revoked=bindparam("now"))
    .returning(tokens.c.id)
)


class Tokens:
    """The tokens of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, campaign: int, name: str, role: str, digest: bytes, *, now: float) -> bool:
        """Keep a token's digest; tell whether the name was free."""
        row = {"campaign": campaign, "name": name, "role": role, "digest": digest, "created": now}
        with suppress(Conflict), self._database.writing() as connection:
            if connection.execute(_named, {"of": campaign, "called": name}).first() is not None:
                return False
            try:
                connection.execute(insert(tokens), row)
            except IntegrityError:  # another process has just taken the name
                raise Conflict(name) from None
            return True
        return False

    def find(self, digest: bytes) -> Token | None:
        """Give the token with this digest."""
        with self._database.reading() as connection:
            found = connection.execute(_find, {"known": digest}).first()
        return None if found is None else Token(*found)

    def listed(self, campaign: int) -> list[Token]:
        """Give all tokens of a campaign, the oldest first."""
        with self._database.reading() as connection:
            return [Token(*row) for row in connection.execute(_listed, {"of": campaign})]

    def revoke(self, campaign: int, name: str, *, now: float) -> bool:
        """Let a token open nothing any more; tell whether there was one."""
        told = {"of": campaign, "called": name, "now": now}
        with self._database.writing() as connection:
            return connection.execute(_revoke, told).first() is not None
