"""The engine: what a transaction keeps, and what it says when the database does not answer."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import psycopg
import pytest
from sqlalchemy import select, text, update
from sqlalchemy.orm import Session

from control_plane.db.engine import Database, sqlite_url_of
from control_plane.db.installation import Counter, Organization
from shared.errors import Conflict, FleetError, Invalid, Precondition, Unreachable
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


def test_a_block_that_raises_writes_nothing(database: Database) -> None:
    with pytest.raises(ZeroDivisionError):
        add_one_then(database, lambda: 1 / 0)
    assert count(database) == 0


def test_a_reading_transaction_keeps_nothing(database: Database) -> None:
    with database.read() as db:
        db.execute(ADD_ONE)
    assert count(database) == 0


def test_what_one_connection_wrote_another_sees(database: Database) -> None:
    with database.write() as db:
        db.execute(ADD_ONE)
    other = Database(database.url.render_as_string(hide_password=False))
    assert count(other) == 1
    other.dispose()


def test_a_row_that_points_nowhere_is_refused(database: Database) -> None:
    statement = text(
        "INSERT INTO web_sessions (id, organization_id, secret_hash, role, everywhere, created_at, expires_at)"
        " VALUES ('a', 'nowhere', 'h', 'admin', false, '2026-01-01', '2026-01-01')"
    )
    with pytest.raises(Conflict, match="was removed meanwhile"), database.write() as db:
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


def test_the_server_tells_its_name_and_version(database: Database) -> None:
    assert database.ping().split()[0] in {"SQLite", "PostgreSQL"}


def test_a_database_that_is_not_there_is_named_without_its_password() -> None:
    database = Database("postgresql://fleet:hunter2@127.0.0.1:1/fleet")
    with pytest.raises(Unreachable) as failure:
        database.ping()
    assert failure.value.code == "E-DB-UNREACHABLE"
    assert failure.value.exit_code == 5
    assert "127.0.0.1:1/fleet" in failure.value.what
    assert "hunter2" not in f"{failure.value.what} {failure.value.why}"


def test_after_a_restart_of_the_server_the_next_transaction_works(
    postgres_server: PostgresServer, postgres_database: Database
) -> None:
    assert count(postgres_database) == 0
    postgres_server.stop()
    with pytest.raises(Unreachable):
        count(postgres_database)
    postgres_server.start()
    assert count(postgres_database) == 0


def test_a_server_that_dies_in_the_middle_of_a_transaction_is_reported_as_unreachable(
    postgres_server: PostgresServer, postgres_database: Database
) -> None:
    with pytest.raises(Unreachable):
        add_one_then(postgres_database, postgres_server.stop)
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


def test_a_snapshot_stays_the_same_for_as_long_as_its_reader_needs(postgres_database: Database) -> None:
    with postgres_database.snapshot() as db:
        before = db.scalars(select(Counter.value)).one()
        add_one_then(postgres_database, lambda: None)
        assert db.scalars(select(Counter.value)).one() == before
        # The server would end a transaction that stays idle for longer, as it does with others.
        assert db.scalar(text(IDLE_LIMIT)) == "0"
    assert count(postgres_database) == before + 2


def test_a_connection_whose_other_side_is_silent_is_given_up(postgres_database: Database) -> None:
    with postgres_database.read() as db:
        idle = db.scalar(text(IDLE_LIMIT))
        driver = db.connection().connection.driver_connection
        assert isinstance(driver, psycopg.Connection)
        ours = driver.info.get_parameters()
    assert idle == "30s"
    assert (ours["keepalives_idle"], ours["tcp_user_timeout"]) == ("10", "25000")


def test_a_writer_that_waits_too_long_for_another_gives_up_with_a_sentence(sqlite_url: str) -> None:
    holder, waiter = Database(sqlite_url), Database(sqlite_url, busy_seconds=0.1)
    with holder.write(), pytest.raises(Unreachable) as failure:
        add_one_then(waiter, lambda: None)
    holder.dispose()
    waiter.dispose()
    assert failure.value.code == "E-DB-BUSY"


def test_a_reader_does_not_wait_for_a_writer(sqlite_url: str) -> None:
    holder, reader = Database(sqlite_url), Database(sqlite_url, busy_seconds=0.1)
    with holder.write() as db:
        db.execute(ADD_ONE)
        assert count(reader) == 0
    assert count(reader) == 1
    holder.dispose()
    reader.dispose()


def test_a_sqlite_file_in_a_directory_that_is_not_there_is_unreachable(tmp_path: Path) -> None:
    database = Database(sqlite_url_of(tmp_path / "nowhere" / "fleet.db"))
    with pytest.raises(Unreachable, match=r"nowhere/fleet\.db does not answer"):
        database.ping()


def test_a_file_that_is_no_database_is_told_as_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "fleet.db"
    path.write_bytes(b"this is a text file, not a database" * 100)
    database = Database(sqlite_url_of(path))
    with pytest.raises(FleetError) as failure, database.read() as db:
        db.scalars(select(Organization.name)).all()
    assert failure.value.code == "E-DB-UNREACHABLE"
    assert "not a database" in failure.value.why


def test_a_sqlite_path_may_have_spaces_and_question_marks(tmp_path: Path) -> None:
    directory = tmp_path / "a b?c#d%20"
    directory.mkdir()
    database = Database(sqlite_url_of(directory / "fleet.db"))
    database.ping()
    database.dispose()
    assert [each.name for each in directory.iterdir()] == ["fleet.db"]


@pytest.mark.parametrize(
    "url", ["", "fleet.db", "mysql://h/x", "sqlite://", "sqlite:///:memory:", "sqlite:///", "postgresql://a:1,b:2/x"]
)
def test_what_is_no_usable_database_url_is_refused(url: str) -> None:
    with pytest.raises(Invalid) as refusal:
        Database(url)
    assert refusal.value.code == "E-DB-URL"
    assert "sqlite:////path/fleet.db" in refusal.value.next


def test_a_wrong_password_in_an_unreadable_url_is_not_repeated() -> None:
    with pytest.raises(Invalid) as refusal:
        Database("postgresql//fleet:hunter2@host/fleet")
    assert "hunter2" not in f"{refusal.value.what}{refusal.value.why}{refusal.value.next}"


def test_a_query_without_tables_is_no_mistake_of_ours(tmp_path: Path) -> None:
    database = Database(sqlite_url_of(tmp_path / "fleet.db"))
    with pytest.raises(Precondition), database.read() as db:
        db.scalars(select(Organization.name)).all()
    database.dispose()
