"""The migrations, on a real database of each kind."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import JSON, Boolean, Column, Float, Inspector, Integer, LargeBinary, Table, inspect, select, text
from sqlalchemy import column as light_column
from sqlalchemy import table as light_table

from control_plane.db.base import Row
from control_plane.db.engine import Database
from control_plane.db.installation import Counter, Organization
from control_plane.db.metadata import METADATA
from control_plane.db.spending import Budget, SpendingBlock
from control_plane.db.types import UtcDateTime
from control_plane.db.upgrade import apply_migrations, require_current
from shared.errors import Precondition

REVISIONS = [f"{number:04}" for number in range(1, 43)]


@pytest.mark.dialects
def test_models_and_migrations_agree(database: Database) -> None:
    with database.read() as db:
        context = MigrationContext.configure(db.connection(), opts={"compare_type": True})
        differences = compare_metadata(context, METADATA)
    assert differences == []


@pytest.mark.dialects
def test_of_several_that_migrate_at_once_one_does_it_and_the_others_find_it_done(empty_database_url: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        applied = list(pool.map(apply_migrations, [empty_database_url] * 4))
    assert sorted(applied) == [[], [], [], REVISIONS]
    database = Database(empty_database_url)
    with database.read() as db:
        assert db.scalars(select(Organization.name)).all() == ["default"]
        assert db.scalar(select(Counter.value).where(Counter.name == "orders")) == 0
    database.dispose()


@pytest.mark.dialects
def test_a_database_without_tables_names_the_command_that_makes_them_and_a_newer_one_is_left_alone(
    empty_database_url: str,
) -> None:
    empty = Database(empty_database_url)
    with pytest.raises(Precondition) as refusal:
        require_current(empty)
    assert (refusal.value.code, refusal.value.next) == ("E-DB-SCHEMA", "fleet db upgrade")
    with pytest.raises(Precondition), empty.read() as db:
        db.scalars(select(Organization.name)).all()
    with empty.write() as db:
        db.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32))"))
        db.execute(text("INSERT INTO alembic_version VALUES ('9999')"))
    empty.dispose()
    with pytest.raises(Precondition) as refusal:
        apply_migrations(empty_database_url)
    assert refusal.value.code == "E-DB-NEWER"


@pytest.mark.dialects
def test_rows_of_the_first_revision_are_all_there_and_readable_after_the_upgrade(empty_database_url: str) -> None:
    apply_migrations(empty_database_url, "0001")
    database = Database(empty_database_url)
    with database.write() as db:
        inspector = inspect(db.connection())
        old = {name: {each["name"] for each in inspector.get_columns(name)} for name in tables(inspector)}
        for table in (table for table in METADATA.sorted_tables if table.name in old):
            values = filled(table, old[table.name])
            # Not the table itself, whose defaults would name columns of later revisions.
            bare = light_table(table.name, *(light_column(name, table.columns[name].type) for name in values))
            db.execute(bare.insert().values(values))
        db.execute(text("UPDATE projects SET removed_at = NULL"))
    counted = {name: count(database, name) for name in old}

    assert apply_migrations(empty_database_url) == REVISIONS[1:]
    assert {name: count(database, name) for name in old} == counted
    mappers = [mapper for mapper in Row.registry.mappers if mapper.local_table in old_tables(old)]
    with database.read() as db:
        read = [db.scalars(select(mapper.class_)).all() for mapper in mappers]
        blocks = db.execute(select(SpendingBlock.run_id, SpendingBlock.spent_nusd, SpendingBlock.closed_at)).all()
        budgets = db.scalars(select(Budget)).all()
    database.dispose()
    assert all(read)
    assert [tuple(row) for row in blocks] == [("7", 7_000_000_000, datetime(2026, 11, 22, tzinfo=UTC))]
    assert [(each.kind, each.target_id, each.limit_nusd) for each in budgets] == [("project", "7", 7_000_000_000)]


def tables(inspector: Inspector) -> list[str]:
    """Those that the database has."""
    there = set(inspector.get_table_names())
    return [table.name for table in METADATA.sorted_tables if table.name in there]


def old_tables(names: Collection[str]) -> list[Table]:
    return [METADATA.tables[name] for name in names]


def filled(table: Table, columns: set[str]) -> dict[str, Any]:
    """A row with something in each of these columns; foreign keys name the row of the other table."""
    return {column.name: value_for(column) for column in table.columns if column.name in columns}


def value_for(column: Column[Any]) -> Any:
    if isinstance(column.type, JSON):
        return {}
    if isinstance(column.type, UtcDateTime):
        return datetime(2026, 11, 22, tzinfo=UTC)
    if isinstance(column.type, LargeBinary):
        return b"7"
    if isinstance(column.type, Boolean):
        return True
    # One word for all ids, so that every reference finds its row; a short one, as some columns are.
    return 7 if isinstance(column.type, Integer | Float) else "7"


def count(database: Database, name: str) -> int:
    with database.read() as db:
        return int(db.scalar(text(f"SELECT count(*) FROM {name}")) or 0)
