"""The usual ask and the usual tell on SQLite, by its own driver: half the time under the lock.

As in `functions`, an unusual case changes nothing and gives nothing, and the way for all cases is
taken.
"""

from __future__ import annotations

from typing import Any

from malocate.store import log
from malocate.store.draws import Drawn
from malocate.store.engines import Database
from malocate.store.telling import Answer, Outcome

_NAMES = tuple(Drawn.__dataclass_fields__)
_ATTEMPT, _LATE = _NAMES.index("attempt"), _NAMES.index("late")
_COLUMNS = ", ".join(f'"{name}"' for name in _NAMES)

_LEND = f"""
UPDATE draws SET state = 'lent', attempt = attempt + 1, who = :asker, deadline = :until
WHERE campaign = :of AND id IN (
    SELECT id FROM draws WHERE campaign = :of AND state = 'open'
    AND EXISTS (SELECT 1 FROM campaigns WHERE id = :of AND state = 'open')
    AND NOT EXISTS (SELECT 1 FROM draws WHERE campaign = :of AND state = 'lent' AND who = :asker)
    AND NOT EXISTS (SELECT 1 FROM draws WHERE campaign = :of AND state = 'lent' AND deadline < :now)
    ORDER BY id LIMIT :most)
RETURNING {_COLUMNS}, (SELECT version FROM campaigns WHERE id = :of)
"""  # noqa: S608  # the names are those of our own columns
_TELL = """
UPDATE draws SET state = 'answered', value = :answer, told = :now, told_attempt = :try,
    late = :now > deadline, deadline = NULL
WHERE campaign = :of AND id = :draw AND state = 'lent' AND attempt = :try
RETURNING late, json_quote(who)
"""
_NOTE = "INSERT INTO log (campaign, at, kind, body) VALUES (?, ?, ?, ?)"


def lend(
    database: Database, campaign: int, most: int, who: str, now: float, until: float
) -> tuple[int, list[Drawn]]:
    """Lend draws to somebody without any; give the design's version, and nothing if unusual."""
    told = {"of": campaign, "asker": who, "now": now, "until": until, "most": most}
    said, more = log.halves_of({"who": who, "until": until})
    with database.in_one_go() as connection:
        lent = connection.execute(_LEND, told).fetchall()
        if lent:
            lent.sort()
            draws = ",".join([f"[{row[0]},{row[_ATTEMPT]}]" for row in lent])
            body = f'{said},"draws":[{draws}]{more}'
            connection.execute(_NOTE, (campaign, now, "lent", body))
    return (lent[0][-1] if lent else 0), [_drawn(row) for row in lent]


def _drawn(row: tuple[Any, ...]) -> Drawn:
    *values, _ = row
    values[_LATE] = bool(values[_LATE])
    return Drawn(*values)


def tell(database: Database, campaign: int, answer: Answer, now: float) -> Outcome | None:
    """Record the first answer on a ticket that is out; give nothing if it is not that."""
    told = {"of": campaign, "draw": answer.draw, "try": answer.attempt, "now": now}
    told["answer"] = answer.value
    said, more = log.halves_of({"draw": answer.draw, "try": answer.attempt, "value": answer.value})
    with database.in_one_go() as connection:
        found = connection.execute(_TELL, told).fetchone()
        if found is not None:
            late, who = found
            marked = ',"late":true' if late else ""
            body = f'{said},"who":{who}{marked}{more}'
            connection.execute(_NOTE, (campaign, now, "told", body))
    if found is None:
        return None
    return "late" if late else "answered"
