"""All rows of a database as lines, and back: the same lines for SQLite and PostgreSQL, at any revision.

Each table is a header with its columns, then one line for each row, tables in the order of their foreign keys. A time
is text in UTC, and JSON is text as it is stored, so that nothing depends on the program's own types.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, cast

import psycopg
from sqlalchemy import JSON, Boolean, Connection, DateTime, Inspector, inspect, text

from shared.errors import FleetFault

AT_ONCE = 500
"""Rows in memory at once."""
_REVISION = "alembic_version"
_TIME = "YYYY-MM-DD HH24:MI:SS.US"


def tables(connection: Connection) -> list[str]:
    """The tables of the database, each after those that its foreign keys refer to; without that of the revision."""
    found = inspect(connection).get_sorted_table_and_fkc_names()
    return [name for name, _ in found if name and name != _REVISION]


def lines_of_rows(connection: Connection, counts: dict[str, int]) -> Iterator[bytes]:
    """The lines, each with its newline. `counts` gets the number of rows of each table."""
    inspector = inspect(connection)
    for table in tables(connection):
        columns = inspector.get_columns(table)
        yield _line({"table": table, "columns": [column["name"] for column in columns]})
        truths = [place for place, column in enumerate(columns) if isinstance(column["type"], Boolean)]
        counts[table] = 0
        for row in _rows(connection, table, columns):
            values = list(row)
            for place in truths:
                values[place] = None if values[place] is None else bool(values[place])
            yield _line(values)
            counts[table] += 1


def count_rows(lines: Iterable[bytes]) -> dict[str, int]:
    """The number of rows of each table in these lines. Raises ValueError if they are not lines of rows."""
    return {table: sum(1 for _ in rows) for table, _, rows in _by_table(lines)}


def load_rows(connection: Connection, lines: Iterable[bytes]) -> None:
    """Replace all rows of the database with these, within the caller's transaction.

    Raises FleetFault (`E-RESTORE-ROWS`) if the database refuses one.
    """
    sqlite = connection.dialect.name == "sqlite"
    for table in reversed(tables(connection)):
        connection.exec_driver_sql(f"DELETE FROM {_quoted(table)}")  # noqa: S608 - names from the database
    if sqlite:
        # An agent may come before its boss.
        connection.exec_driver_sql("PRAGMA defer_foreign_keys = ON")
    load: Callable[..., None] = _insert if sqlite else _copy
    for table, columns, rows in _by_table(lines):
        load(connection, table, columns, rows)
    if not sqlite:
        _continue_sequences(connection)


def _rows(connection: Connection, table: str, columns: list[Any]) -> Iterable[Any]:
    shown = [_selected(column, connection.dialect.name) for column in columns]
    statement = f"SELECT {', '.join(shown)} FROM {_quoted(table)}"  # noqa: S608 - names from the database
    options = {"stream_results": True, "yield_per": AT_ONCE}
    return connection.exec_driver_sql(statement, execution_options=options)


def _selected(column: Any, dialect: str) -> str:
    """The column as it is stored on SQLite, and on PostgreSQL in the same form."""
    name = _quoted(column["name"])
    if dialect == "sqlite":
        return name
    if isinstance(column["type"], DateTime):
        return f"to_char({name} AT TIME ZONE 'UTC', '{_TIME}')"
    return f"CAST({name} AS TEXT)" if isinstance(column["type"], JSON) else name


def _by_table(lines: Iterable[bytes]) -> Iterator[tuple[str, list[str], Iterator[list[Any]]]]:
    """Table, columns and rows, which must be read before the next table. Raises ValueError for other lines."""
    values = (json.loads(line) for line in lines)
    headers = [header for header in [next(values, None)] if header is not None]
    while headers:
        header = headers.pop()
        if not isinstance(header, dict):
            raise ValueError("a row without a table")
        yield header["table"], header["columns"], _until_header(values, headers)


def _until_header(values: Iterator[Any], headers: list[Any]) -> Iterator[list[Any]]:
    """The rows up to the next header, which is added to `headers`."""
    for value in values:
        if isinstance(value, dict):
            headers.append(value)
            return
        yield value


def _insert(connection: Connection, table: str, columns: list[str], rows: Iterator[list[Any]]) -> None:
    names, marks = ", ".join(map(_quoted, columns)), ", ".join("?" for _ in columns)
    statement = f"INSERT INTO {_quoted(table)} ({names}) VALUES ({marks})"  # noqa: S608 - names from the database
    while some := [tuple(row) for row in islice(rows, AT_ONCE)]:
        connection.exec_driver_sql(statement, some)


def _copy(connection: Connection, table: str, columns: list[str], rows: Iterator[list[Any]]) -> None:
    """By COPY: one statement for each table, at whose end the foreign keys within it are checked."""
    driver = cast("psycopg.Connection[Any]", connection.connection.driver_connection)
    names = ", ".join(map(_quoted, columns))
    try:
        with driver.cursor() as cursor:
            cursor.execute("SET LOCAL TIME ZONE 'UTC'")
            with cursor.copy(f"COPY {_quoted(table)} ({names}) FROM STDIN".encode()) as copy:
                for row in rows:
                    copy.write_row(row)
    except psycopg.Error as error:
        raise FleetFault(
            f"the rows of the table {table} could not be written",
            code="E-RESTORE-ROWS",
            why=str(error).split("\n", 1)[0][:300],
            next="fix the database server, and repeat the command: nothing was changed",
        ) from error


def _continue_sequences(connection: Connection) -> None:
    """New rows get numbers after those of the restored ones."""
    inspector: Inspector = inspect(connection)
    for table in tables(connection):
        for column in inspector.get_columns(table):
            if not column.get("autoincrement"):
                continue
            last = f"SELECT MAX({_quoted(column['name'])}) FROM {_quoted(table)}"  # noqa: S608 - as above
            newest = connection.exec_driver_sql(last).scalar()
            sequence = text("SELECT setval(pg_get_serial_sequence(:table, :column), :newest)")
            if newest is not None:
                connection.execute(sequence, {"table": table, "column": column["name"], "newest": newest})


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _line(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"
