"""The migrations, on a real database of each kind."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Engine, event, inspect, select, text

from control_plane.db.base import Row
from control_plane.db.engine import Database
from control_plane.db.installation import Counter, Organization
from control_plane.db.metadata import METADATA
from control_plane.db.upgrade import apply_migrations, require_current
from shared.errors import Precondition
from tests.support.old_databases import create_old, rows_of
from tests.support.refusals import code_of

REVISIONS = ["r0001", "r0002", "r0003"]
GONE = {("projects", "budget_usd_day")}
"""Columns that later revisions remove."""


class PowerCut(Exception):
    """Ends an upgrade in the middle."""


@pytest.mark.dialects
def test_models_and_migrations_agree(database: Database) -> None:
    with database.read() as db:
        context = MigrationContext.configure(db.connection(), opts={"compare_type": True})
        differences = compare_metadata(context, METADATA)
        inspector, kind = inspect(db.connection()), db.connection().dialect.name
        made = {
            index["name"]
            for table in METADATA.tables
            for index in inspector.get_indexes(table)
            if f"{kind}_where" in index.get("dialect_options", {})
        }
    assert differences == []
    # Alembic does not compare the conditions of indexes.
    indexes = [index for table in METADATA.tables.values() for index in table.indexes]
    assert made == {index.name for index in indexes if index.dialect_options[kind]["where"] is not None} != set()


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
def test_a_database_without_tables_or_from_before_the_first_release_or_of_a_newer_one_is_refused_as_it_is(
    empty_database_url: str,
) -> None:
    database = Database(empty_database_url)
    with pytest.raises(Precondition) as refusal:
        require_current(database)
    assert (refusal.value.code, refusal.value.next) == ("E-DB-SCHEMA", "fleet db upgrade")
    with pytest.raises(Precondition), database.read() as db:
        db.scalars(select(Organization.name)).all()
    with database.write() as db:
        db.execute(text("CREATE TABLE alembic_version (version_num VARCHAR(32))"))
        db.execute(text("CREATE TABLE organizations (name VARCHAR(64))"))
        db.execute(text("INSERT INTO alembic_version VALUES ('')"))
    for revision, code in (("0001", "E-DB-UNRELEASED"), ("0042", "E-DB-UNRELEASED"), ("r9999", "E-DB-NEWER")):
        with database.write() as db:
            db.execute(text("UPDATE alembic_version SET version_num = :revision"), {"revision": revision})
        for start in (lambda: apply_migrations(empty_database_url), lambda: require_current(database)):
            assert (revision, code_of(start)) == (revision, code)
        with database.read() as db:
            assert inspect(db.connection()).get_table_names() == ["alembic_version", "organizations"]
    database.dispose()


@pytest.mark.dialects
def test_rows_of_the_first_revision_are_all_there_after_the_upgrade_and_as_they_were_after_one_that_was_cut_off(
    empty_database_url: str,
) -> None:
    create_old(empty_database_url)
    before = rows_of(empty_database_url)
    statements: list[str] = []

    def cut(*arguments: Any) -> None:
        statements.append(str(arguments[2]))
        if "version_num" in statements[-1] and statements[-1].startswith("UPDATE"):
            raise PowerCut

    event.listen(Engine, "after_cursor_execute", cut)
    try:
        with pytest.raises(PowerCut):
            apply_migrations(empty_database_url)
    finally:
        event.remove(Engine, "after_cursor_execute", cut)
    assert any("projects" in statement for statement in statements)
    assert rows_of(empty_database_url) == before

    assert apply_migrations(empty_database_url) == REVISIONS[1:]
    after = rows_of(empty_database_url)
    for name, rows in before.items():
        kept = [{column: value for column, value in row.items() if (name, column) not in GONE} for row in rows]
        assert (name, [{column: row[column] for column in kept[0]} for row in after[name]]) == (name, kept)
    database = Database(empty_database_url)
    with database.read() as db:
        assert all(db.scalars(select(mapper.class_)).all() for mapper in Row.registry.mappers)
    database.dispose()
