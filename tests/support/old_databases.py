"""Databases written by earlier versions."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import MetaData, select

from control_plane.db.engine import Database, sqlite_url_of
from shared.names import new_id

DUMPS = Path(__file__).parents[1] / "contract" / "databases"
Rows = dict[str, list[dict[str, Any]]]


def load(kind: str, directory: Path, request: pytest.FixtureRequest) -> str:
    """A database written by 4ef72e0; returns its URL."""
    dump = (DUMPS / f"4ef72e0.{kind}.sql").read_text()
    if kind == "sqlite":
        path = directory / "old.db"
        connection = sqlite3.connect(path)
        connection.executescript(dump)
        connection.close()
        return sqlite_url_of(path)
    server, name = request.getfixturevalue("postgres_server"), f"old_{new_id()}"
    server.execute(f"CREATE DATABASE {name}")
    with psycopg.connect(server.url(name)) as connected:
        connected.execute(dump.encode())
    return str(server.url(name))


def rows_of(url: str) -> Rows:
    """All rows of the database, except its revision."""
    database, found = Database(url), MetaData()
    try:
        found.reflect(database.engine)
        with database.read() as db:
            return {
                name: [dict(row._mapping) for row in db.execute(select(table).order_by(*table.primary_key))]
                for name, table in found.tables.items()
                if name != "alembic_version"
            }
    finally:
        database.dispose()
