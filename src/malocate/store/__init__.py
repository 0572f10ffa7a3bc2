"""The store: all the SQL. SQLite in one file, or PostgreSQL, behind one contract."""

from malocate.store.bulk import Imported
from malocate.store.changes import Amended, Brought, Erased, Redacted
from malocate.store.draws import Asked, Cell, Drawn
from malocate.store.log import Event, Seal
from malocate.store.looking import Held, Look
from malocate.store.planning import Planned
from malocate.store.store import Lent, Store
from malocate.store.telling import Answer, Outcome
from malocate.store.tokens import Token, Tokens

__all__ = [
    "Amended",
    "Answer",
    "Asked",
    "Brought",
    "Cell",
    "Drawn",
    "Erased",
    "Event",
    "Held",
    "Imported",
    "Lent",
    "Look",
    "Outcome",
    "Planned",
    "Redacted",
    "Seal",
    "Store",
    "Token",
    "Tokens",
]
