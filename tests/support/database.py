"""Fixtures: migrated databases of both kinds, fresh for each test, and a Core on top of one."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from control_plane.core import Caller, Core
from control_plane.core.lookups.organizations import system_caller
from control_plane.core.settings import FleetSettings
from control_plane.db.engine import Database, sqlite_url_of
from control_plane.db.upgrade import apply_migrations
from control_plane.server.assemble import open_core
from shared.names import new_id
from tests.support.clocks import HandClock
from tests.support.postgres import TEMPLATE, PostgresServer, needs_postgres

NO_BROKER = "redis://control:none@127.0.0.1:1/0"
"""An address where nothing listens, for the Core of tests that need no broker."""
CoreFactory = Callable[..., Core]


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite file to copy."""
    path = tmp_path_factory.mktemp("sqlite") / "template.db"
    apply_migrations(sqlite_url_of(path))
    return path


@pytest.fixture
def sqlite_url(sqlite_template: Path, tmp_path: Path) -> str:
    """A migrated SQLite database for this test."""
    path = tmp_path / "fleet.db"
    shutil.copy(sqlite_template, path)
    return sqlite_url_of(path)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A running PostgreSQL that lends migrated databases."""
    server = PostgresServer.create(needs_postgres())
    try:
        server.start()
        server.execute(f"CREATE DATABASE {TEMPLATE}")
        apply_migrations(server.url(TEMPLATE))
        yield server
    finally:
        server.remove()


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    """A migrated PostgreSQL database that no other test uses at the same time."""
    name = postgres_server.take()
    yield postgres_server.url(name)
    postgres_server.give_back(name)


@pytest.fixture
def empty_postgres_url(postgres_server: PostgresServer) -> str:
    name = f"test_{new_id()}"
    postgres_server.execute(f"CREATE DATABASE {name}")
    return postgres_server.url(name)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run what is marked `dialects`, because its statements differ, once on each kind of database."""
    if metafunc.definition.get_closest_marker("dialects") is not None:
        for name in {"database_url", "empty_database_url"} & set(metafunc.fixturenames):
            metafunc.parametrize(name, ["sqlite", "postgresql"], indirect=True)


@pytest.fixture
def database_url(request: pytest.FixtureRequest) -> str:
    """A migrated database: SQLite, or what the mark `dialects` asks for."""
    kind = getattr(request, "param", "sqlite")
    return str(request.getfixturevalue("sqlite_url" if kind == "sqlite" else "postgres_url"))


@pytest.fixture
def empty_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database without any table: SQLite, or what the mark `dialects` asks for."""
    if getattr(request, "param", "sqlite") == "sqlite":
        return sqlite_url_of(tmp_path / "empty.db")
    return str(request.getfixturevalue("empty_postgres_url"))


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    opened = Database(database_url)
    yield opened
    opened.dispose()


@pytest.fixture
def postgres_database(postgres_url: str) -> Iterator[Database]:
    opened = Database(postgres_url)
    yield opened
    opened.dispose()


@pytest.fixture
def clock() -> HandClock:
    """A clock that stands still until the test advances it."""
    return HandClock()


@pytest.fixture
def core_factory(tmp_path: Path) -> Iterator[CoreFactory]:
    """`core_factory(url, broker=None, clock=None, **settings)`: Cores that are closed when the test ends."""
    made: list[Core] = []

    def make(database_url: str, **options: Any) -> Core:
        made.append(core_on(database_url, tmp_path, **options))
        return made[-1]

    yield make
    for core in made:
        core.database.dispose()


@pytest.fixture
def core(core_factory: CoreFactory, database_url: str, clock: HandClock) -> Core:
    """A Core with a clock that stands still and without a broker."""
    return core_factory(database_url, clock=clock)


@pytest.fixture
def admin(core: Core) -> Caller:
    """An admin of the organization `default` of `core`."""
    return system_caller(core)


def core_on(database_url: str, directory: Path, *, broker: Any = None, clock: Any = None, **settings: Any) -> Core:
    """A Core on a migrated database; the master key and the blobs are in `directory`."""
    values = {
        "database_url": database_url,
        "broker_url": NO_BROKER,
        "master_key_file": directory / "master.key",
        "blob_dir": directory / "blobs",
        # A title is one more order for each new session, which most tests do not expect.
        "session_titles": False,
    }
    return open_core(FleetSettings(**{**values, **settings}), broker=broker, clock=clock)


def is_waiting(database: Database) -> bool:
    """Whether a transaction in this PostgreSQL database waits for the lock of another one."""
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    with database.read() as db:
        return bool(db.scalar(text(waiting)))
