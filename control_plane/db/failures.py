"""Database driver errors as the fleet's errors: one table, applied once, at the edge of the engine."""

from __future__ import annotations

import sqlite3

import psycopg
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as NoConnection

from shared.errors import Conflict, FleetError, FleetFault, Precondition, Unreachable

_SQLITE_PASSING = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_SQLITE_FULL = frozenset({sqlite3.SQLITE_FULL})
_SQLITE_DENIED = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM})
_SQLITE_GONE = frozenset({sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_TOO_LARGE = "54"
"""Class of the SQLSTATEs of psycopg's OperationalErrors that the values of a statement cause."""


def is_passing(error: DBAPIError) -> bool:
    """Whether a retry of the same work may succeed: a deadlock, a serialization failure, a held lock."""
    cause = error.orig
    if isinstance(cause, sqlite3.Error):
        return _sqlite_code(cause) in _SQLITE_PASSING
    passing = (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure, psycopg.errors.LockNotAvailable)
    return isinstance(cause, passing)


def concerns_all(error: Exception) -> bool:
    """Whether any work may meet this error now: no connection is free, or a time limit or a resource is used up.

    Of what `translated` leaves unchanged, the rest is the work's own fault, as is a value too large for PostgreSQL.
    """
    cause = error.orig if isinstance(error, DBAPIError) else None
    of_server = isinstance(cause, psycopg.OperationalError) and not (cause.sqlstate or "").startswith(_TOO_LARGE)
    return of_server or isinstance(error, NoConnection)


def translated(error: DBAPIError, shown_url: str) -> FleetError | DBAPIError:
    """The error as a FleetError, or unchanged if it is our mistake and not the server's."""
    if _points_nowhere(error):
        return Conflict(
            "an object that the request refers to was removed meanwhile; nothing was stored",
            code="E-REMOVED-MEANWHILE",
            next="check what still exists, then repeat the request without the removed object",
        )
    if isinstance(error, IntegrityError):
        return error
    if _lacks_schema(error):
        return Precondition(
            f"the schema of the database {shown_url} is older than this version",
            code="E-DB-SCHEMA",
            why=_first_line(error),
            next="fleet db upgrade",
        )
    if is_passing(error):
        return Unreachable(
            f"the database {shown_url} was locked by another transaction for too long",
            code="E-DB-BUSY",
            why=_first_line(error),
            next="try again; if it persists: fleet doctor",
        )
    return _translated_sqlite(error, shown_url) or _translated_postgres(error, shown_url) or error


def _translated_sqlite(error: DBAPIError, shown_url: str) -> FleetError | None:
    cause = error.orig
    if not isinstance(cause, sqlite3.Error):
        return None
    code = _sqlite_code(cause)
    if code in _SQLITE_FULL:
        return _full(error, shown_url)
    if code in _SQLITE_DENIED:
        return FleetFault(
            f"the database {shown_url} cannot be written to",
            code="E-DB-DENIED",
            why=_first_line(error),
            next="check the owner of the file and its directory",
        )
    return _unreachable(error, shown_url) if code in _SQLITE_GONE else None


def _translated_postgres(error: DBAPIError, shown_url: str) -> FleetError | None:
    if isinstance(error.orig, psycopg.errors.DiskFull):
        return _full(error, shown_url)
    if isinstance(error.orig, psycopg.errors.ReadOnlySqlTransaction):
        return Unreachable(
            f"the database {shown_url} is a standby, which accepts no writes",
            code="E-DB-STANDBY",
            why=_first_line(error),
            next="add target_session_attrs=read-write to FLEET_DATABASE_URL, or promote the standby",
        )
    # psycopg raises the bare OperationalError if there is no connection, and sets no SQLSTATE.
    gone = (
        psycopg.errors.ConnectionException,
        psycopg.errors.AdminShutdown,
        psycopg.errors.CannotConnectNow,
        psycopg.errors.IdleInTransactionSessionTimeout,
    )
    cause = error.orig
    bare = isinstance(cause, psycopg.OperationalError | psycopg.InterfaceError) and cause.sqlstate is None
    if bare or error.connection_invalidated or isinstance(cause, gone):
        return _unreachable(error, shown_url)
    return None


def _lacks_schema(error: DBAPIError) -> bool:
    cause = error.orig
    if isinstance(cause, sqlite3.OperationalError):
        return str(cause).startswith(("no such table", "no such column"))
    return isinstance(cause, psycopg.errors.UndefinedTable | psycopg.errors.UndefinedColumn)


def _points_nowhere(error: DBAPIError) -> bool:
    """Whether a row references a missing row: it existed when the work checked, or the work would have refused."""
    cause = error.orig
    if isinstance(cause, sqlite3.IntegrityError):
        return cause.sqlite_errorcode == sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY
    return isinstance(cause, psycopg.errors.ForeignKeyViolation)


def _unreachable(error: DBAPIError, shown_url: str) -> Unreachable:
    return Unreachable(
        f"the database {shown_url} does not answer",
        code="E-DB-UNREACHABLE",
        why=_first_line(error),
        next="fleet doctor",
    )


def _full(error: DBAPIError, shown_url: str) -> FleetFault:
    return FleetFault(
        f"the disk of the database {shown_url} is full",
        code="E-DB-FULL",
        why=_first_line(error),
        next="free disk space there; old audit records can be deleted even now: fleet audit prune --help",
    )


def _sqlite_code(error: sqlite3.Error) -> int:
    # The low byte of an extended result code is the basic one.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _first_line(error: DBAPIError) -> str:
    return str(error.orig).strip().partition("\n")[0][:300]
