"""The tables of a campaign's database, as they are now; `migrations` makes and upgrades them."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

metadata = MetaData()

_key = BigInteger().with_variant(Integer, "sqlite")  # what SQLite numbers by itself

about = Table(
    "malocate_about",
    metadata,
    Column("name", String(40), primary_key=True),
    Column("value", Text, nullable=False),
)

campaigns = Table(
    "campaigns",
    metadata,
    Column("id", _key, primary_key=True, autoincrement=True),
    Column("name", Text, nullable=False, unique=True),
    Column("secret", LargeBinary, nullable=False),
    Column("design", Text, nullable=False),
    Column("version", Integer, nullable=False),
    Column("caveats", Text, nullable=False),
    Column("standing", Text, nullable=False),
    Column("state", String(10), nullable=False),
    Column("why", Text, nullable=False),
    Column("round", Integer, nullable=False),
    Column("planner", Text, nullable=False),
    Column("planner_until", Float, nullable=False),
    Column("worker_until", Float, nullable=False),
    Column("created", Float, nullable=False),
)

rounds = Table(
    "rounds",
    metadata,
    Column("campaign", _key, ForeignKey("campaigns.id"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("planned", Float, nullable=False),
    Column("body", Text, nullable=False),
    PrimaryKeyConstraint("campaign", "number"),
)

draws = Table(
    "draws",
    metadata,
    Column("campaign", _key, nullable=False),
    Column("id", _key, nullable=False),
    Column("round", Integer, nullable=False),
    Column("segment", Integer, nullable=False),
    Column("number", _key, nullable=False),
    Column("row", Integer, nullable=False),
    Column("col", Integer, nullable=False),
    Column("repeats", _key, nullable=False),
    Column("probability", Float),
    Column("state", String(8), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("expired", Integer, nullable=False),
    Column("who", Text),
    Column("deadline", Float),
    Column("value", Float),
    Column("told", Float),
    Column("told_attempt", Integer),
    Column("late", Boolean, nullable=False),
    PrimaryKeyConstraint("campaign", "id"),
    UniqueConstraint("campaign", "segment", "number"),
    ForeignKeyConstraint(["campaign", "round"], ["rounds.campaign", "rounds.number"]),
)

_IS_OPEN = text("state = 'open'")
_IS_LENT = text("state = 'lent'")
UNUSUAL = text("(state NOT IN ('answered', 'imported') OR late OR expired > 0)")
"""Of a draw: it was asked and not answered in time and at its first lease, or not yet; or it is
erased."""

Index(
    "draws_open",
    draws.c.campaign,
    draws.c.id,
    sqlite_where=_IS_OPEN,
    postgresql_where=_IS_OPEN,
)
Index(
    "draws_of",
    draws.c.campaign,
    draws.c.who,
    draws.c.id,
    sqlite_where=_IS_LENT,
    postgresql_where=_IS_LENT,
)
Index(
    "draws_due",
    draws.c.campaign,
    draws.c.deadline,
    sqlite_where=_IS_LENT,
    postgresql_where=_IS_LENT,
)
draws_unusual = Index(
    "draws_unusual",
    draws.c.campaign,
    draws.c.segment,
    draws.c.state,
    draws.c.late,
    draws.c.expired,
    draws.c.number,
    sqlite_where=UNUSUAL,
    postgresql_where=UNUSUAL,
)

extras = Table(
    "extras",
    metadata,
    Column("campaign", _key, nullable=False),
    Column("draw", _key, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("value", Float, nullable=False),
    PrimaryKeyConstraint("campaign", "draw", "attempt"),
    ForeignKeyConstraint(["campaign", "draw"], ["draws.campaign", "draws.id"]),
)

memories = Table(
    "memories",
    metadata,
    Column("campaign", _key, ForeignKey("campaigns.id"), nullable=False),
    Column("segment", Integer, nullable=False),
    Column("round", Integer, nullable=False),
    Column("body", LargeBinary, nullable=False),
    PrimaryKeyConstraint("campaign", "segment"),
)

log = Table(
    "log",
    metadata,
    Column("id", _key, primary_key=True, autoincrement=True),
    Column("campaign", _key, ForeignKey("campaigns.id"), nullable=False),
    Column("at", Float, nullable=False),
    Column("kind", String(12), nullable=False),
    Column("body", Text),
    Column("digest", LargeBinary),
    sqlite_autoincrement=True,
)
Index("log_of", log.c.campaign, log.c.id)

blocks = Table(
    "blocks",
    metadata,
    Column("campaign", _key, ForeignKey("campaigns.id"), nullable=False),
    Column("number", Integer, nullable=False),
    Column("last", _key, nullable=False),
    Column("rows", Integer, nullable=False),
    Column("digest", LargeBinary, nullable=False),
    PrimaryKeyConstraint("campaign", "number"),
)

later = MetaData()
"""Tables that came after the first version; each is made by a migration of its own."""

tokens = Table(
    "tokens",
    later,
    Column("id", _key, primary_key=True, autoincrement=True),
    Column("campaign", _key, nullable=False),
    Column("name", Text, nullable=False),
    Column("role", String(8), nullable=False),
    Column("digest", LargeBinary, nullable=False, unique=True),
    Column("created", Float, nullable=False),
    Column("revoked", Float),
    UniqueConstraint("campaign", "name"),
)
