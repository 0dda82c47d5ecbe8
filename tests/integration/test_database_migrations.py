"""The migrations, on a real database of each kind."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import select, text

from control_plane.db import migrations
from control_plane.db.engine import Database
from control_plane.db.models import Counter, Organization, Row
from shared.errors import Precondition


def test_models_and_migrations_agree(database: Database) -> None:
    with database.read() as db:
        context = MigrationContext.configure(db.connection(), opts={"compare_type": True})
        differences = compare_metadata(context, Row.metadata)
    assert differences == []


def test_an_empty_database_is_brought_up_to_date_and_the_second_time_nothing_is_done(empty_database_url: str) -> None:
    first = migrations.upgrade(empty_database_url)
    second = migrations.upgrade(empty_database_url)
    assert first == ["0001", "0002"]
    assert second == []


def test_of_several_that_migrate_at_once_one_does_it_and_the_others_find_it_done(empty_database_url: str) -> None:
    with ThreadPoolExecutor(4) as pool:
        applied = list(pool.map(migrations.upgrade, [empty_database_url] * 4))
    assert sorted(applied) == [[], [], [], ["0001", "0002"]]


def test_a_migrated_database_has_the_organization_default_and_the_counter_of_orders(database: Database) -> None:
    with database.read() as db:
        assert db.scalars(select(Organization.name)).all() == ["default"]
        assert db.scalar(select(Counter.value).where(Counter.name == "orders")) == 0


def test_a_database_without_tables_names_the_command_that_makes_them(empty_database_url: str) -> None:
    database = Database(empty_database_url)
    with pytest.raises(Precondition) as refusal:
        migrations.require_current(database)
    database.dispose()
    assert refusal.value.code == "E-DB-SCHEMA"
    assert refusal.value.next == "fleet db upgrade"


def test_a_query_before_the_migration_says_so_too(empty_database_url: str) -> None:
    database = Database(empty_database_url)
    with pytest.raises(Precondition, match="has not the tables"), database.read() as db:
        db.scalars(select(Organization.name)).all()
    database.dispose()


def test_a_database_of_a_newer_version_is_left_alone(database: Database, database_url: str) -> None:
    with database.write() as db:
        db.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(Precondition) as refusal:
        migrations.upgrade(database_url)
    assert refusal.value.code == "E-DB-NEWER"
