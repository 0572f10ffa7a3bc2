"""The usual ask and the usual tell on a server, each in one round trip.

Two functions on the server do what `Store.lend` and `Store.tell` do in the case that is by far the
most frequent: somebody without a ticket asks, and nothing has run out; or an answer is the first
on the ticket that is out. In any other case they change nothing and give nothing, and the way for
all cases is taken. What `malocate_lend` gives are the columns of `Drawn`: whoever changes these
makes it anew in a migration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.dialects import postgresql

from malocate.store import log
from malocate.store.draws import Asked, Drawn
from malocate.store.engines import Database
from malocate.store.schema import draws
from malocate.store.telling import Answer, Outcome

_NAMES = tuple(Drawn.__dataclass_fields__)
_GIVEN = ", ".join(
    f"given_{name} {draws.c[name].type.compile(dialect=postgresql.dialect())}"  # type: ignore[no-untyped-call]
    for name in _NAMES
)
_COLUMNS = ", ".join(f'lent."{name}"' for name in _NAMES)

LEND = f"""
CREATE FUNCTION malocate_lend(
    of_campaign bigint, most integer, asker text, asked_at double precision,
    lent_until double precision, said text, more text
) RETURNS TABLE (given_version integer, {_GIVEN}) LANGUAGE plpgsql AS $$
DECLARE
    current_version integer;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(of_campaign);
    PERFORM pg_advisory_xact_lock(of_campaign::integer, hashtext(asker));
    SELECT version INTO current_version FROM campaigns WHERE id = of_campaign AND state = 'open';
    IF NOT FOUND
        OR EXISTS (SELECT FROM draws
            WHERE campaign = of_campaign AND state = 'lent' AND who = asker)
        OR EXISTS (SELECT FROM draws
            WHERE campaign = of_campaign AND state = 'lent' AND deadline < asked_at)
    THEN RETURN; END IF;
    RETURN QUERY
    WITH lent AS (
        UPDATE draws
        SET state = 'lent', attempt = attempt + 1, who = asker, deadline = lent_until
        WHERE campaign = of_campaign AND id = ANY (ARRAY(
            SELECT id FROM draws WHERE campaign = of_campaign AND state = 'open'
            ORDER BY id LIMIT most FOR UPDATE SKIP LOCKED))
        RETURNING *
    ), noted AS (
        INSERT INTO log (campaign, at, kind, body)
        SELECT of_campaign, asked_at, 'lent',
            said || string_agg('[' || id || ',' || attempt || ']', ',' ORDER BY id) || more
        FROM lent HAVING count(*) > 0
    )
    SELECT current_version, {_COLUMNS} FROM lent ORDER BY lent.id;
END $$
"""  # noqa: S608  # the names are those of our own columns

TELL = """
CREATE FUNCTION malocate_tell(
    of_campaign bigint, draw bigint, ticket integer, answer double precision,
    told_at double precision, said text, more text
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    asker text;
    is_late boolean;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(of_campaign);
    UPDATE draws
    SET state = 'answered', value = answer, told = told_at, told_attempt = ticket,
        late = told_at > deadline, deadline = NULL
    WHERE campaign = of_campaign AND id = draw AND state = 'lent' AND attempt = ticket
    RETURNING who, late INTO asker, is_late;
    IF NOT FOUND THEN RETURN NULL; END IF;
    INSERT INTO log (campaign, at, kind, body)
    VALUES (of_campaign, told_at, 'told', said || ',"who":' || to_json(asker)
        || CASE WHEN is_late THEN ',"late":true' ELSE '' END || more);
    RETURN CASE WHEN is_late THEN 'late' ELSE 'answered' END;
END $$
"""

_STATEMENTS = {
    "malocate_lend": "SELECT * FROM malocate_lend($1, $2, $3, $4, $5, $6, $7)",
    "malocate_tell": "SELECT malocate_tell($1, $2, $3, $4, $5, $6, $7)",
}
_NOT_PREPARED = b"26000"
_LEND_ONE = "SELECT * FROM malocate_lend(%s, %s, %s, %s, %s, %s, %s)"
_TELL_ONE = "SELECT malocate_tell(%s, %s, %s, %s, %s, %s, %s)"


def _if_any(read: Callable[[bytes], Any]) -> Callable[[bytes | None], Any]:
    return lambda said: None if said is None else read(said)


_READERS: Mapping[str, Callable[[bytes], Any]] = {
    "int": int, "float": float, "str": bytes.decode, "bool": lambda said: said == b"t",
}  # fmt: skip
_READ = [
    _if_any(_READERS[str(field.type).partition(" ")[0]])
    for field in Drawn.__dataclass_fields__.values()
]


def make(connection: Connection) -> None:
    """Make both functions, where they can be."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(LEND)
        connection.exec_driver_sql(TELL)


def lend(
    database: Database, campaign: int, most: int, who: str, now: float, until: float
) -> tuple[int, list[Drawn]]:
    """Lend draws to somebody without any; give the design's version, and nothing if unusual."""
    if "\0" in who:
        return 0, []
    said, more = log.halves_of({"who": who, "until": until})
    told = (campaign, most, who, now, until, f'{said},"draws":[', f"]{more}")
    with database.in_one_go() as connection:
        found = run(connection, "malocate_lend", told)
    lent = [
        Drawn(*[read(found.get_value(row, place)) for place, read in enumerate(_READ, start=1)])
        for row in range(found.ntuples)
    ]
    return (int(found.get_value(0, 0)) if lent else 0), lent


def tell(database: Database, campaign: int, answer: Answer, now: float) -> Outcome | None:
    """Record the first answer on a ticket that is out; give nothing if it is not that."""
    said, more = log.halves_of({"draw": answer.draw, "try": answer.attempt, "value": answer.value})
    told = (campaign, answer.draw, answer.attempt, answer.value, now, said, more)
    with database.in_one_go() as connection:
        said = run(connection, "malocate_tell", told).get_value(0, 0)
    outcome: Outcome | None = None if said is None else said.decode()
    return outcome


def run(connection: Any, name: str, told: tuple[float | str, ...]) -> Any:
    """Run a prepared statement by the driver's own driver: a cursor would take twice as long."""
    from psycopg.errors import error_from_result
    from psycopg.pq import DiagnosticField, ExecStatus

    told_as = [str(each).encode() for each in told]
    found = _sent(connection, name, told_as)
    if found.error_field(DiagnosticField.SQLSTATE) == _NOT_PREPARED:
        connection.pgconn.prepare(name.encode(), _STATEMENTS[name].encode())
        found = _sent(connection, name, told_as)
    if found.status != ExecStatus.TUPLES_OK:
        raise error_from_result(found)
    return found


def _sent(connection: Any, name: str, told: list[bytes]) -> Any:
    from psycopg.generators import execute

    connection.pgconn.send_query_prepared(name.encode(), told)
    return connection.wait(execute(connection.pgconn))[-1]


def lend_each(
    database: Database, campaign: int, asked: Sequence[Asked], now: float
) -> list[tuple[int, list[Drawn]]]:
    """Lend to several in one transaction and one round trip, each as `lend` does.

    All take their locks in the order of the askers' names, so that nobody waits in a circle.
    """
    kept = [place for place, each in enumerate(asked) if "\0" not in each.who]
    order = sorted(kept, key=lambda place: asked[place].who)
    told = [_asked(campaign, asked[place], now) for place in order]
    found = dict(zip(order, map(_lent, _together(database, _LEND_ONE, told)), strict=True))
    return [found.get(place, (0, [])) for place in range(len(asked))]


def tell_each(
    database: Database, campaign: int, answers: Sequence[Answer], now: float
) -> list[Outcome | None]:
    """Record several answers in one transaction and one round trip, each as `tell` does."""
    order = sorted(range(len(answers)), key=lambda place: answers[place].draw)
    told = [_answered(campaign, answers[place], now) for place in order]
    rows = _together(database, _TELL_ONE, told)
    found = {place: row[0][0] for place, row in zip(order, rows, strict=True)}
    return [found[place] for place in range(len(answers))]


def _together(
    database: Database, statement: str, told: Sequence[tuple[Any, ...]]
) -> list[list[tuple[Any, ...]]]:
    """Give the rows of one statement with several arguments, sent and committed together."""
    with database.in_one_go() as connection:
        with connection.pipeline(), connection.transaction():
            cursors = [connection.execute(statement, each) for each in told]
        return [cursor.fetchall() for cursor in cursors]


def _asked(campaign: int, asked: Asked, now: float) -> tuple[Any, ...]:
    said, more = log.halves_of({"who": asked.who, "until": asked.until})
    words = (f'{said},"draws":[', f"]{more}")
    return (campaign, asked.most, asked.who, now, asked.until, *words)


def _lent(rows: list[tuple[Any, ...]]) -> tuple[int, list[Drawn]]:
    return (rows[0][0] if rows else 0), [Drawn(*row[1:]) for row in rows]


def _answered(campaign: int, answer: Answer, now: float) -> tuple[Any, ...]:
    said, more = log.halves_of({"draw": answer.draw, "try": answer.attempt, "value": answer.value})
    return (campaign, answer.draw, answer.attempt, answer.value, now, said, more)
