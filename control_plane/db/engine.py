"""The database: a transaction for reading, one for writing, and its failures as the fleet's own errors.

SQLite and PostgreSQL look the same to the rest of the code. On SQLite a writing transaction begins IMMEDIATE: with the
driver's default, two transactions that both read and then write would lose one of the writes. On PostgreSQL the
isolation level is read committed, and the rows' own `UPDATE … WHERE` decides which transaction was first.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.orm import Session, sessionmaker

from control_plane.db import first_write
from control_plane.db.audit_chain import committed, with_its_record
from control_plane.db.failures import is_passing, translated
from shared.errors import Invalid

T = TypeVar("T")

BUSY_SECONDS = 30.0
"""How long a SQLite writer waits for another."""
CONNECT_SECONDS = 5
IDLE_SECONDS = 30.0
"""PostgreSQL ends a transaction whose process says nothing for so long: once cut off, it must not keep locks."""
SILENT = {
    "tcp_keepalives_idle": 10,
    "tcp_keepalives_interval": 5,
    "tcp_keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}
"""Seconds, seconds, a number, milliseconds: each side gives up a connection whose other side is silent for 25 s."""
ATTEMPTS = 5
"""Attempts for a piece of work whose transaction was chosen as a deadlock victim."""
_BEGIN = "fleet_begin"
_WRITES = "fleet_writes"


class Database:
    """Connections to one database. Safe to share between threads; recreated after a fork."""

    def __init__(self, url: str, *, busy_seconds: float = BUSY_SECONDS, idle_seconds: float = IDLE_SECONDS) -> None:
        self.url = _understood(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        if self.is_sqlite:
            self.engine = _sqlite_engine(self.url, busy_seconds)
        else:
            self.engine = _postgres_engine(self.url, idle_seconds)
        writing = self.engine.execution_options(**{_BEGIN: "BEGIN IMMEDIATE"})
        self._reads = sessionmaker(self.engine, expire_on_commit=False, autoflush=False)
        self._writes = sessionmaker(writing, expire_on_commit=False, info={_WRITES: True})

    @contextmanager
    def read(self) -> Iterator[Session]:
        """One consistent view (on SQLite; on PostgreSQL, per statement), rolled back at the end: nothing is written."""
        with self._translated_errors(), self._reads() as session:
            yield session

    @contextmanager
    def snapshot(self) -> Iterator[Session]:
        """Like `read`, with one consistent view on PostgreSQL too, and for as long as its reader needs."""
        with self.read() as session:
            if not self.is_sqlite:
                # Before the first statement.
                session.connection(execution_options={"isolation_level": "REPEATABLE READ"})
                session.execute(text("SET LOCAL idle_in_transaction_session_timeout = 0"))
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """One transaction, committed when the block ends and rolled back if it raises.

        The record of the running operation in the audit log is committed with it, see `audit_chain`.

        Raises Unreachable (`E-DB-…`) if the database does not respond or is locked too long, FleetFault (`E-DB-FULL`)
        if it has no space.
        """
        with self._translated_errors(), self._recorded() as session:
            yield session

    def transact(self, work: Callable[[Session], T]) -> T:
        """The result of `work` in a writing transaction; up to 5 attempts if a deadlock ends it.

        `work` must have no effect outside the database.
        """
        for attempt in range(1, ATTEMPTS):
            try:
                with self._recorded() as session:
                    return work(session)
            except DBAPIError as error:
                if not is_passing(error):
                    with self._translated_errors():
                        raise
                # Let the competing transaction go first.
                time.sleep(0.01 * 2**attempt)
        with self.write() as session:
            return work(session)

    def ping(self) -> str:
        """Name and version of the server, for `doctor`. Raises Unreachable if it does not respond."""
        with self.read() as session:
            if self.is_sqlite:
                return f"SQLite {session.scalar(text('SELECT sqlite_version()'))}"
            return f"PostgreSQL {session.scalar(text('SHOW server_version'))}"

    @property
    def shown(self) -> str:
        """The URL without its password."""
        return self.url.render_as_string(hide_password=True)

    def dispose(self) -> None:
        """Close all connections; the next use opens new ones."""
        self.engine.dispose()

    @contextmanager
    def _recorded(self) -> Iterator[Session]:
        """One writing transaction together with its audit record."""
        with self._writes.begin() as session:
            # Connect immediately: on SQLite this takes the lock before anything is read that is then written.
            session.connection()
            first_write.begin(session)
            with with_its_record(session):
                yield session
        committed()
        first_write.committed()

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            known = translated(error, self.shown)
            if known is error:
                raise
            raise known from error


def pause(db: Session) -> None:
    """End the transaction of a reading session, which then holds no connection until its next statement.

    For the time in which something slow is asked. A writing session is left alone.
    """
    if not db.info.get(_WRITES):
        # Not rolled back, which would forget what was read; there is nothing to write.
        db.commit()


def _understood(text_: str) -> URL:
    try:
        url = make_url(text_)
    except (ArgumentError, ValueError):
        # A ValueError is about the port, as in libpq's form `host:5432,host:5432`. The text may contain a password in a
        # place where no parser finds it, so it is not shown.
        raise Invalid("invalid database URL", code="E-DB-URL", next=_EXAMPLES) from None
    if url.get_backend_name() in {"postgresql", "postgres"}:
        return url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() != "sqlite":
        raise Invalid(f"unsupported database type {url.drivername!r}", code="E-DB-URL", next=_EXAMPLES)
    if url.database in {None, "", ":memory:"}:
        raise Invalid("a SQLite database needs a file: several processes share it", code="E-DB-URL", next=_EXAMPLES)
    return url.set(drivername="sqlite")


_EXAMPLES = (
    "FLEET_DATABASE_URL=sqlite:////path/fleet.db, postgresql://user:password@host/name, or "
    "postgresql://user:password@/name?host=one:5432&host=two:5432&target_session_attrs=read-write"
)


def _postgres_engine(url: URL, idle_seconds: float) -> Engine:
    engine = create_engine(
        url,
        isolation_level="READ COMMITTED",
        # A restarted server leaves dead connections behind; checking first costs less than a failed request.
        pool_pre_ping=True,
        pool_size=10,
        max_overflow=20,
        hide_parameters=True,
        connect_args={
            "connect_timeout": CONNECT_SECONDS,
            "application_name": "dronefleet",
            **{name.removeprefix("tcp_") if "keepalives" in name else name: value for name, value in SILENT.items()},
        },
    )
    values = {"idle_in_transaction_session_timeout": round(idle_seconds * 1000), **SILENT}
    settings = "; ".join(f"SET {name} = {value}" for name, value in values.items())

    def prepare(connection: Any, _record: object) -> None:
        # Not as options of the connection: poolers refuse these.
        connection.execute(settings)
        connection.commit()

    event.listen(engine, "connect", prepare)
    return engine


def _sqlite_engine(url: URL, busy_seconds: float) -> Engine:
    engine = create_engine(
        url,
        pool_size=10,
        max_overflow=20,
        hide_parameters=True,
        connect_args={"timeout": busy_seconds, "check_same_thread": False},
    )

    def prepare(connection: Any, _record: object) -> None:
        # The driver must not begin transactions itself: it would begin them deferred, despite the statement below.
        connection.isolation_level = None
        _switch_to_wal(connection, busy_seconds)
        # With WAL, FULL is what makes a commit survive a power failure, and a 201 promises exactly that.
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        # SQLite's own lowers ASCII letters only, so searches would differ from those on PostgreSQL.
        connection.create_function("lower", 1, _lowered, deterministic=True)

    event.listen(engine, "connect", prepare)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _switch_to_wal(connection: Any, seconds: float) -> None:
    """Wait for a process that writes into the new file at this moment: for this statement SQLite itself does not."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                raise
            time.sleep(0.01)
        else:
            return


def _lowered(text_: Any) -> str | None:
    return None if text_ is None else str(text_).lower()


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get(_BEGIN, "BEGIN"))


def sqlite_url_of(path: Path) -> str:
    """The URL of a SQLite file, for paths with any character in them."""
    return URL.create("sqlite", database=str(path)).render_as_string(hide_password=False)
