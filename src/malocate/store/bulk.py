"""Many rows in one statement: a server takes them as JSON, SQLite as plain tuples.

Written as SQL, because what SQLAlchemy does for each row takes longer than what SQLite does.
"""

from __future__ import annotations

import json
from typing import NamedTuple

from sqlalchemy import Connection, text

_ANSWER = """
    UPDATE draws SET state = 'answered', value = ?, told = ?, told_attempt = ?, late = ?,
        deadline = NULL
    WHERE campaign = ? AND id = ?
"""
_answers = text("""
    UPDATE draws SET state = 'answered', value = given.value, told = :now,
        told_attempt = given.attempt, late = given.late, deadline = NULL
    FROM json_to_recordset(CAST(:given AS json))
        AS given (draw bigint, attempt integer, value double precision, late boolean)
    WHERE draws.campaign = :of AND draws.id = given.draw
""")
_EVENT = "INSERT INTO log (campaign, at, kind, body) VALUES (?, ?, ?, ?)"
_events = text("""
    INSERT INTO log (campaign, at, kind, body)
    SELECT :campaign, :at, :kind, given.body
    FROM json_array_elements_text(CAST(:bodies AS json)) WITH ORDINALITY AS given (body, place)
    ORDER BY place
""")


class Given(NamedTuple):
    """An answer to be written."""

    draw: int
    attempt: int
    value: float
    late: bool


def write_answers(connection: Connection, campaign: int, now: float, given: list[Given]) -> None:
    """Write answers to draws of a campaign, all told at the same time."""
    if connection.dialect.name == "postgresql":
        rows = json.dumps([each._asdict() for each in given])
        connection.execute(_answers, {"of": campaign, "now": now, "given": rows})
        return
    written = [(each.value, now, each.attempt, each.late, campaign, each.draw) for each in given]
    connection.exec_driver_sql(_ANSWER, written)


def write_events(
    connection: Connection, campaign: int, at: float, kind: str, bodies: list[str]
) -> None:
    """Write events of one kind, in this order."""
    if connection.dialect.name == "postgresql":
        told = {"campaign": campaign, "at": at, "kind": kind, "bodies": json.dumps(bodies)}
        connection.execute(_events, told)
        return
    connection.exec_driver_sql(_EVENT, [(campaign, at, kind, body) for body in bodies])
