"""Many rows in one statement: a server takes them as arrays or as JSON, SQLite as plain tuples.

Written as SQL, because what SQLAlchemy does for each row takes longer than what SQLite does.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

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


class Imported(NamedTuple):
    """Answers from before the campaign, column by column: no object for each of a million."""

    segment: Sequence[int]
    draw: Sequence[int]
    number: Sequence[int]
    row: Sequence[int]
    col: Sequence[int]
    value: Sequence[float]


def write_imported(connection: Connection, campaign: int, answers: Imported) -> None:
    """Write answers from before the campaign."""
    for first in range(0, len(answers.draw), AT_ONCE):
        some = Imported._make(each[first : first + AT_ONCE] for each in answers)
        if connection.dialect.name == "postgresql":
            rows = zip(*some, strict=True)
            given = json.dumps([dict(zip(Imported._fields, each, strict=True)) for each in rows])
            connection.execute(_imports, {"of": campaign, "given": given})
        else:
            _import_on_file(connection, campaign, some)


def _import_on_file(connection: Connection, campaign: int, answers: Imported) -> None:
    """Write some answers, many in a statement, and one by one what is left over."""
    width, count = len(answers), len(answers.draw)
    filled: list[Any] = [None] * (width * count)
    for place, column in enumerate(answers):
        filled[place::width] = column
    whole = count - count % IN_ONE
    one = _IMPORT_ONE.format(campaign=campaign)
    for many, start, stop in ((IN_ONE, 0, whole), (1, whole, count)):
        parts = range(start * width, stop * width, many * width)
        if parts:
            given = [tuple(filled[at : at + many * width]) for at in parts]
            connection.exec_driver_sql(_IMPORT + ", ".join([one] * many), given)


def write_events(
    connection: Connection, campaign: int, at: float, kind: str, bodies: list[str]
) -> None:
    """Write events of one kind, in this order."""
    if connection.dialect.name == "postgresql":
        told = {"campaign": campaign, "at": at, "kind": kind, "bodies": json.dumps(bodies)}
        connection.execute(_events, told)
        return
    connection.exec_driver_sql(_EVENT, [(campaign, at, kind, body) for body in bodies])
