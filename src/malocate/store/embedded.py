"""The usual ask and the usual tell on SQLite, by its own driver: half the time under the lock.

As in `functions`, an unusual case changes nothing and gives nothing, and the way for all cases is
taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from malocate.store import log
from malocate.store.draws import Asked, Drawn
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
    (found,) = lend_each(database, campaign, [Asked(most, who, until)], now)
    return found


def lend_each(
    database: Database, campaign: int, asked: Sequence[Asked], now: float
) -> list[tuple[int, list[Drawn]]]:
    """Lend to several in one transaction, each as `lend` does."""
    halves = [log.halves_of({"who": each.who, "until": each.until}) for each in asked]
    with database.in_one_go() as connection:
        pairs = zip(asked, halves, strict=True)
        rows = [_lent(connection, campaign, each, now, said) for each, said in pairs]
    return [((lent[0][-1] if lent else 0), [_drawn(row) for row in lent]) for lent in rows]


def _lent(
    connection: Any, campaign: int, asked: Asked, now: float, halves: tuple[str, str]
) -> list[tuple[Any, ...]]:
    told = {"of": campaign, "asker": asked.who, "now": now, "until": asked.until}
    lent: list[tuple[Any, ...]] = connection.execute(_LEND, told | {"most": asked.most}).fetchall()
    if lent:
        lent.sort()
        draws = ",".join([f"[{row[0]},{row[_ATTEMPT]}]" for row in lent])
        body = f'{halves[0]},"draws":[{draws}]{halves[1]}'
        connection.execute(_NOTE, (campaign, now, "lent", body))
    return lent


def _drawn(row: tuple[Any, ...]) -> Drawn:
    *values, _ = row
    values[_LATE] = bool(values[_LATE])
    return Drawn(*values)


def tell(database: Database, campaign: int, answer: Answer, now: float) -> Outcome | None:
    """Record the first answer on a ticket that is out; give nothing if it is not that."""
    return tell_each(database, campaign, [answer], now)[0]


def tell_each(
    database: Database, campaign: int, answers: Sequence[Answer], now: float
) -> list[Outcome | None]:
    """Record several answers in one transaction, each as `tell` does."""
    halves = [
        log.halves_of({"draw": each.draw, "try": each.attempt, "value": each.value})
        for each in answers
    ]
    with database.in_one_go() as connection:
        pairs = zip(answers, halves, strict=True)
        return [_told(connection, campaign, each, now, said) for each, said in pairs]


def _told(
    connection: Any, campaign: int, answer: Answer, now: float, halves: tuple[str, str]
) -> Outcome | None:
    told = {"of": campaign, "draw": answer.draw, "try": answer.attempt, "now": now}
    found = connection.execute(_TELL, told | {"answer": answer.value}).fetchone()
    if found is None:
        return None
    late, who = found
    marked = ',"late":true' if late else ""
    body = f'{halves[0]},"who":{who}{marked}{halves[1]}'
    connection.execute(_NOTE, (campaign, now, "told", body))
    return "late" if late else "answered"
