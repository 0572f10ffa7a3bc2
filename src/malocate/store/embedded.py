"""The usual ask and the usual tell on SQLite, by its own driver: half the time under the lock.

As in `functions`, an unusual case changes nothing and gives nothing, and the way for all cases is
taken.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from malocate.store import log
from malocate.store.draws import Drawn
from malocate.store.telling import Answer, Outcome

_NAMES = tuple(Drawn.__dataclass_fields__)
_LATE = _NAMES.index("late")
_COLUMNS = ", ".join(f'"{name}"' for name in _NAMES)

_STANDS = """
SELECT version FROM campaigns WHERE id = :of AND state = 'open'
AND NOT EXISTS (SELECT 1 FROM draws WHERE campaign = :of AND state = 'lent' AND who = :asker)
AND NOT EXISTS (SELECT 1 FROM draws WHERE campaign = :of AND state = 'lent' AND deadline < :now)
"""
_LEND = f"""
UPDATE draws SET state = 'lent', attempt = attempt + 1, who = :asker, deadline = :until
WHERE campaign = :of AND id IN (
    SELECT id FROM draws WHERE campaign = :of AND state = 'open' ORDER BY id LIMIT :most)
RETURNING {_COLUMNS}
"""  # noqa: S608  # the names are those of our own columns
_TELL = """
UPDATE draws SET state = 'answered', value = :answer, told = :now, told_attempt = :try,
    late = :now > deadline, deadline = NULL
WHERE campaign = :of AND id = :draw AND state = 'lent' AND attempt = :try
RETURNING who, late
"""
_NOTE = "INSERT INTO log (campaign, at, kind, body) VALUES (?, ?, ?, ?)"


def lend(
    connection: Any, campaign: int, most: int, who: str, now: float, until: float
) -> tuple[int, list[Drawn]]:
    """Lend draws to somebody without any; give the design's version, and nothing if unusual."""
    told = {"of": campaign, "asker": who, "now": now, "until": until, "most": most}
    stands = connection.execute(_STANDS, told).fetchone()
    if stands is None:
        return 0, []
    lent = sorted(connection.execute(_LEND, told).fetchall())
    if lent:
        draws = [[row[0], row[_NAMES.index("attempt")]] for row in lent]
        body = log.text_of({"who": who, "until": until, "draws": draws})
        connection.execute(_NOTE, (campaign, now, "lent", body))
    return stands[0], [replace(Drawn(*row), late=bool(row[_LATE])) for row in lent]


def tell(connection: Any, campaign: int, answer: Answer, now: float) -> Outcome | None:
    """Record the first answer on a ticket that is out; give nothing if it is not that."""
    told = {"of": campaign, "draw": answer.draw, "try": answer.attempt, "now": now}
    found = connection.execute(_TELL, told | {"answer": answer.value}).fetchone()
    if found is None:
        return None
    body = {"draw": answer.draw, "try": answer.attempt, "value": answer.value, "who": found[0]}
    late = {"late": True} if found[1] else {}
    connection.execute(_NOTE, (campaign, now, "told", log.text_of(body | late)))
    return "late" if found[1] else "answered"
