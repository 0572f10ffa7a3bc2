"""Many rows in one statement: a server takes them as arrays or as JSON, SQLite as plain tuples.

Written as SQL, because what SQLAlchemy does for each row takes longer than what SQLite does.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from itertools import chain
from typing import NamedTuple

from sqlalchemy import Connection, text


class Standing(NamedTuple):
    """A draw as far as an answer to it is concerned."""

    id: int
    state: str
    attempt: int
    who: str | None
    deadline: float | None
    value: float | None
    told_attempt: int | None


class Given(NamedTuple):
    """An answer to be written."""

    draw: int
    attempt: int
    value: float
    late: bool


_COLUMNS = ", ".join(Standing._fields)
_ON_FILE = f"""
    SELECT {_COLUMNS} FROM draws WHERE campaign = ? AND id IN (SELECT value FROM json_each(?))
"""  # noqa: S608  # the names are those of our own columns
_ON_SERVER = f"""
    SELECT {_COLUMNS}
    FROM unnest(CAST(%s AS bigint[])) WITH ORDINALITY AS given (draw, place), LATERAL (
        SELECT * FROM draws WHERE campaign = %s AND id = given.draw FOR UPDATE) AS found
    ORDER BY place
"""  # noqa: S608  # one by one by the primary key, whatever the server knows of the table as yet
_ANSWER = """
    UPDATE draws SET state = 'answered', value = ?, told = ?, told_attempt = ?, late = ?,
        deadline = NULL
    WHERE campaign = ? AND id = ?
"""
_answers = text("""
    UPDATE draws SET state = 'answered', value = given.value, told = :now,
        told_attempt = given.attempt, late = given.late, deadline = NULL
    FROM unnest(
        CAST(:draws AS bigint[]), CAST(:attempts AS integer[]),
        CAST(:values AS double precision[]), CAST(:lates AS boolean[])
    ) AS given (draw, attempt, value, late)
    WHERE draws.campaign = :of AND draws.id = given.draw
""")
_IMPORT = """
    INSERT INTO draws (campaign, round, repeats, state, attempt, expired, told_attempt, late,
        segment, id, number, row, col, value)
    VALUES """
_IMPORT_ONE = "({campaign:d}, 0, -1, 'imported', 0, 0, 0, 0, ?, ?, ?, ?, ?, ?)"
_imports = text("""
    INSERT INTO draws (campaign, round, repeats, state, attempt, expired, told_attempt, late,
        segment, id, number, "row", col, value)
    SELECT :of, 0, -1, 'imported', 0, 0, 0, FALSE, given.segment, given.draw, given.number,
        given."row", given.col, given.value
    FROM json_to_recordset(CAST(:given AS json)) AS given (
        segment integer, draw bigint, number bigint, "row" integer, col integer,
        value double precision
    )
""")
AT_ONCE = 50_000
"""Rows that are handed over at a time."""

IN_ONE = 100
"""Rows that one statement of SQLite holds; its own work for each statement is then small."""
_EVENT = "INSERT INTO log (campaign, at, kind, body) VALUES (?, ?, ?, ?)"
_events = text("""
    INSERT INTO log (campaign, at, kind, body)
    SELECT :campaign, :at, :kind, given.body
    FROM json_array_elements_text(CAST(:bodies AS json)) WITH ORDINALITY AS given (body, place)
    ORDER BY place
""")


def standings(connection: Connection, campaign: int, draws: Collection[int]) -> dict[int, Standing]:
    """Give draws as they stand, locked on a server in an order that is the same for all."""
    if connection.dialect.name == "postgresql":
        found = connection.exec_driver_sql(_ON_SERVER, (sorted(draws), campaign))
    else:
        found = connection.exec_driver_sql(_ON_FILE, (campaign, json.dumps(sorted(draws))))
    return {row[0]: Standing._make(row) for row in found.all()}


def write_answers(connection: Connection, campaign: int, now: float, given: list[Given]) -> None:
    """Write answers to draws of a campaign, all told at the same time."""
    if connection.dialect.name == "postgresql":
        told = {
            "draws": [each.draw for each in given],
            "attempts": [each.attempt for each in given],
            "values": [float(each.value) for each in given],
            "lates": [each.late for each in given],
        }
        connection.execute(_answers, told | {"of": campaign, "now": now})
        return
    written = [(each.value, now, each.attempt, each.late, campaign, each.draw) for each in given]
    connection.exec_driver_sql(_ANSWER, written)


Imported = tuple[int, int, int, int, int, float]
"""An answer from before the campaign: segment, draw, its number, row, column, value."""

_IMPORTED = ("segment", "draw", "number", "row", "col", "value")


def write_imported(connection: Connection, campaign: int, answers: Sequence[Imported]) -> None:
    """Write answers from before the campaign."""
    for first in range(0, len(answers), AT_ONCE):
        some = answers[first : first + AT_ONCE]
        if connection.dialect.name == "postgresql":
            rows = json.dumps([dict(zip(_IMPORTED, each, strict=True)) for each in some])
            connection.execute(_imports, {"of": campaign, "given": rows})
            continue
        whole = len(some) - len(some) % IN_ONE
        for count, part in ((IN_ONE, some[:whole]), (1, some[whole:])):
            one = _IMPORT_ONE.format(campaign=campaign)
            filled = [
                tuple(chain.from_iterable(part[at : at + count]))
                for at in range(0, len(part), count)
            ]
            if filled:
                connection.exec_driver_sql(_IMPORT + ", ".join([one] * count), filled)


def write_events(
    connection: Connection, campaign: int, at: float, kind: str, bodies: list[str]
) -> None:
    """Write events of one kind, in this order."""
    if connection.dialect.name == "postgresql":
        told = {"campaign": campaign, "at": at, "kind": kind, "bodies": json.dumps(bodies)}
        connection.execute(_events, told)
        return
    connection.exec_driver_sql(_EVENT, [(campaign, at, kind, body) for body in bodies])
