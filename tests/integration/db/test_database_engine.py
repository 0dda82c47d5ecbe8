"""The engine: what a transaction keeps, and what it says when the database does not answer."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import psycopg
import pytest
from sqlalchemy import select, text, update
from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.db.engine import Database, sqlite_url_of
from control_plane.db.installation import Counter, Organization
from shared.envelope import public_key
from shared.errors import Conflict, FleetError, Precondition, Unreachable
from tests.support.database import CoreFactory
from tests.support.postgres import PostgresServer

ADD_ONE = update(Counter).values(value=Counter.value + 1)
IDLE_LIMIT = "SHOW idle_in_transaction_session_timeout"


def count(database: Database) -> int:
    with database.read() as db:
        return db.scalars(select(Counter.value)).one()


def add_one_then(database: Database, act: Callable[[], object]) -> None:
    """Write, let `act` happen, and write once more, in one transaction."""
    with database.write() as db:
        db.execute(ADD_ONE)
        act()
        db.execute(ADD_ONE)


@pytest.mark.dialects
def test_a_block_that_raises_and_one_that_only_reads_keep_nothing_and_a_row_that_points_nowhere_is_refused(
    database: Database,
) -> None:
    with pytest.raises(ZeroDivisionError):
        add_one_then(database, lambda: 1 / 0)
    with database.read() as db:
        db.execute(ADD_ONE)
    assert count(database) == 0
    statement = text(
        "INSERT INTO web_sessions (id, organization_id, secret_hash, role, everywhere, created_at, expires_at)"
        " VALUES ('a', 'nowhere', 'h', 'admin', false, '2026-01-01', '2026-01-01')"
    )
    with pytest.raises(Conflict), database.write() as db:
        db.execute(statement)


def test_a_deadlock_is_done_again_and_both_writers_come_through(postgres_database: Database) -> None:
    both_hold_one = Barrier(2)
    with postgres_database.write() as db:
        db.add(Counter(name="second", value=0))

    def cross(names: tuple[str, str]) -> None:
        waits = iter([both_hold_one.wait])

        def work(db: Session) -> None:
            db.execute(ADD_ONE.where(Counter.name == names[0]))
            next(waits, lambda _seconds: None)(60)
            db.execute(ADD_ONE.where(Counter.name == names[1]))

        postgres_database.transact(work)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(cross, [("orders", "second"), ("second", "orders")]))
    with postgres_database.read() as db:
        assert db.scalars(select(Counter.value)).all() == [2, 2]


def test_a_server_that_dies_is_unreachable_also_in_a_transaction_and_the_next_one_works_after_its_restart(
    postgres_server: PostgresServer, postgres_database: Database
) -> None:
    with pytest.raises(Unreachable):
        add_one_then(postgres_database, postgres_server.stop)
    with pytest.raises(Unreachable):
        count(postgres_database)
    postgres_server.start()
    assert count(postgres_database) == 0


def test_a_writer_that_is_cut_off_keeps_its_locks_for_seconds_only(postgres_database: Database) -> None:
    url = postgres_database.url.render_as_string(hide_password=False)
    cut_off, other = Database(url, idle_seconds=1.0), Database(url)
    with pytest.raises(Unreachable) as failure:
        add_one_then(cut_off, lambda: add_one_then(other, lambda: None))
    assert failure.value.code == "E-DB-UNREACHABLE"
    assert count(other) == 2
    for each in (cut_off, other):
        each.dispose()


def test_a_snapshot_stays_the_same_for_as_long_as_its_reader_needs_and_others_are_given_up_in_time(
    postgres_database: Database,
) -> None:
    with postgres_database.snapshot() as db:
        before = db.scalars(select(Counter.value)).one()
        add_one_then(postgres_database, lambda: None)
        assert db.scalars(select(Counter.value)).one() == before
        # The server would end a transaction that stays idle for longer, as it does with others.
        assert db.scalar(text(IDLE_LIMIT)) == "0"
    assert count(postgres_database) == before + 2
    with postgres_database.read() as db:
        idle = db.scalar(text(IDLE_LIMIT))
        driver = db.connection().connection.driver_connection
        assert isinstance(driver, psycopg.Connection)
        ours = driver.info.get_parameters()
    assert (idle, ours["keepalives_idle"], ours["tcp_user_timeout"]) == ("30s", "10", "25000")


def test_a_writer_that_waits_too_long_for_another_gives_up_and_a_reader_does_not_wait(sqlite_url: str) -> None:
    holder, other = Database(sqlite_url), Database(sqlite_url, busy_seconds=0.1)
    with holder.write() as db:
        db.execute(ADD_ONE)
        assert count(other) == 0
        with pytest.raises(Unreachable) as failure:
            add_one_then(other, lambda: None)
    assert (count(other), failure.value.code) == (1, "E-DB-BUSY")
    holder.dispose()
    other.dispose()


def test_a_new_file_into_which_another_process_writes_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite refuses to change such a file to its mode WAL, and does not wait by itself."""
    database, writer = Database(sqlite_url_of(tmp_path / "new.db")), sqlite3.connect(tmp_path / "new.db")
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("CREATE TABLE made (number INTEGER)")
    monkeypatch.setattr("control_plane.db.engine.time.sleep", lambda _seconds: writer.commit())
    with database.read() as db:
        assert db.scalars(text("SELECT name FROM sqlite_master")).all() == ["made"]
    writer.close()
    database.dispose()


def test_a_database_that_is_missing_or_has_no_tables_or_url_is_told_without_its_password(tmp_path: Path) -> None:
    odd = tmp_path / "a b?c#d%20"
    odd.mkdir()
    (odd / "text.db").write_bytes(b"this is a text file, not a database" * 100)
    unusable = (
        "",
        "fleet.db",
        "mysql://h/x",
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///",
        "postgresql://a:1,b:2/x",
    )
    cases = {
        "postgresql://fleet:hunter2@127.0.0.1:1/fleet": "E-DB-UNREACHABLE",
        sqlite_url_of(odd / "nowhere" / "fleet.db"): "E-DB-UNREACHABLE",
        sqlite_url_of(odd / "text.db"): "E-DB-UNREACHABLE",
        sqlite_url_of(odd / "empty.db"): "E-DB-SCHEMA",
        **dict.fromkeys((*unusable, "postgresql//fleet:hunter2@host/fleet"), "E-DB-URL"),
    }
    for url, code in cases.items():
        with pytest.raises(FleetError) as failure:
            read_names(url)
        assert (url, failure.value.code) == (url, code)
        assert "hunter2" not in f"{failure.value.what} {failure.value.why} {failure.value.next}"
    assert sorted(each.name for each in odd.iterdir()) == ["empty.db", "text.db"]


def read_names(url: str) -> None:
    database = Database(url)
    try:
        with database.read() as db:
            db.scalars(select(Organization.name)).all()
    finally:
        database.dispose()


# --- the control plane's own keys: made once, whoever starts first


def keys(core: Core) -> set[str]:
    with core.database.read() as db:
        return set(core.vault.box_keys(db).private_keys())


@pytest.mark.dialects
def test_control_planes_that_start_at_once_agree_on_one_key_and_keep_it(
    core_factory: CoreFactory, database_url: str
) -> None:
    with ThreadPoolExecutor(4) as pool:
        cores = list(pool.map(lambda _: core_factory(database_url), range(4)))
    assert len(keys(cores[0])) == 1
    assert all(keys(core) == keys(cores[0]) for core in (*cores, core_factory(database_url)))
    with cores[0].database.read() as db:
        found = cores[0].vault.box_keys(db)
    assert found.current_public_key() == public_key(found.current_private_key())
    with pytest.raises(Precondition) as refusal:
        keys(core_factory(database_url, master_key="A" * 43 + "="))
    assert refusal.value.code == "E-VAULT-KEY"
