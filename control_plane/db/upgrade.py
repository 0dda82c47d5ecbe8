"""Applies migrations: brings a database's schema up to date, or reports its revision and what it lacks.

Several control planes may start at the same time: the second one waits, and then finds nothing to do.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from control_plane.db.engine import Database
from shared.errors import Precondition

_MIGRATIONS = Path(__file__).with_name("migrations")
_ADVISORY_LOCK = 0x64726F6E65
"""An arbitrary number that only the fleet uses: PostgreSQL's lock for running migrations."""
_UNRELEASED = re.compile(r"[0-9]{4}")
"""The ids of revisions before the first release: 0001 to 0042. Those since then begin with a letter."""


def apply_migrations(database_url: str, revision: str = "head") -> list[str]:
    """Bring the schema up to date, in one transaction, and return the ids of the revisions that were applied.

    Raises Unreachable if the database does not respond, Precondition if it is newer than this program or was written
    before the first release.
    """
    database = Database(database_url)
    try:
        if database.is_sqlite and database.url.database:
            Path(database.url.database).parent.mkdir(parents=True, exist_ok=True)
        with database.write() as session:
            return migrate(session.connection(), revision)
    finally:
        database.dispose()


def migrate(connection: Connection, revision: str = "head") -> list[str]:
    """As `apply_migrations`, in the transaction of this connection."""
    if connection.dialect.name != "sqlite":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
    missing = _pending(connection)
    command.upgrade(_config(connection), revision)
    return missing


def current_revision(database: Database) -> str | None:
    """The id of the database's revision; None if the database is empty."""
    with database.read() as session:
        return revision_of(session.connection())


def pending_migrations(database: Database) -> list[str]:
    """The ids of the revisions that the database lacks, oldest first. Raises Precondition if its own is unknown."""
    with database.read() as session:
        return _pending(session.connection())


def require_current(database: Database) -> None:
    """Return if the schema is up to date. Raises Precondition, which says how to update it."""
    missing = pending_migrations(database)
    if missing:
        raise Precondition(
            f"the database {database.shown} has {len(missing)} pending migration{'s' if len(missing) > 1 else ''}",
            code="E-DB-SCHEMA",
            next="fleet db upgrade",
        )


def _pending(connection: Connection) -> list[str]:
    history = known_revisions()
    current = revision_of(connection)
    if current is None:
        return history
    require_released(current, "the database")
    if current not in history:
        raise Precondition(
            f"the database is at revision {current}, which is unknown to this version of dronefleet",
            code="E-DB-NEWER",
            next="run the version that created it, or a newer one",
        )
    return history[history.index(current) + 1 :]


def require_released(revision: str, holder: str) -> None:
    """Raise Precondition if the revision is from before the first release: no migration begins there."""
    if _UNRELEASED.fullmatch(revision):
        raise Precondition(
            f"{holder} is at revision {revision}, from before the first release, and cannot be upgraded",
            code="E-DB-UNRELEASED",
            next="export its organizations with the version that wrote it (fleet organization export), and import "
            "them into a new database; or start with a new one",
        )


def revision_of(connection: Connection) -> str | None:
    """The id of the database's revision, in the transaction of this connection; None if the database is empty."""
    return MigrationContext.configure(connection).get_current_revision()


@cache
def known_revisions() -> list[str]:
    """The ids of all revisions that this program knows, oldest first. Alembic executes their files to read them."""
    return [script.revision for script in ScriptDirectory(str(_MIGRATIONS)).walk_revisions()][::-1]


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config
