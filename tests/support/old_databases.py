"""Databases in the first schema, with a row in each table."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, Boolean, Column, DateTime, Float, Integer, LargeBinary, MetaData, select

from control_plane.db.engine import Database
from control_plane.db.upgrade import apply_migrations

FIRST = "r0001"
Rows = dict[str, list[dict[str, Any]]]


def create_old(url: str) -> None:
    """Create the first schema in this empty database, and a row in each table.

    The rows have the columns that are there, whatever the models of this version have.
    """
    apply_migrations(url, FIRST)
    database, found = Database(url), MetaData()
    try:
        found.reflect(database.engine)
        with database.write() as db:
            for table in found.sorted_tables:
                if table.name != "alembic_version":
                    db.execute(table.insert().values({column.name: _value(column) for column in table.columns}))
    finally:
        database.dispose()


def _value(column: Column[Any]) -> Any:
    """Something that fits; foreign keys name the row of the other table."""
    if column.name == "removed_at":
        return None
    if isinstance(column.type, JSON):
        return {}
    if isinstance(column.type, DateTime):
        return datetime(2026, 11, 22, tzinfo=UTC)
    if isinstance(column.type, LargeBinary):
        return b"7"
    if isinstance(column.type, Boolean):
        return True
    # One word for all ids, so that every reference finds its row; a short one, as some columns are.
    return 7 if isinstance(column.type, Integer | Float) else "7"


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
