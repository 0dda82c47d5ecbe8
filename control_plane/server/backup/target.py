"""Where a backup is restored: an empty database, an empty blob store and an empty broker, filled completely or not."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sqlalchemy import inspect

from control_plane.broker.broker import Broker
from control_plane.core.blob_store import BlobStore
from control_plane.core.durable import sync_directory
from control_plane.db.engine import Database, sqlite_url_of
from shared import names
from shared.errors import Conflict, FleetFault

_SPACE = 3
"""A SQLite file with its indexes, and the log of the transaction that writes it, per byte of rows."""
_LOGS = ("-wal", "-shm", "-journal")
"""Suffixes of the files that SQLite keeps beside its file and reads with it."""


def require_empty_database(database_url: str) -> None:
    """Raises Conflict if the database has tables, or if a SQLite file would get the log of an earlier one, which SQLite
    would write into it; Unreachable if it does not respond.
    """
    database = Database(database_url)
    file = database.url.database if database.is_sqlite else None
    try:
        found = []
        if file is None or Path(file).exists():
            with database.read() as db:
                found = inspect(db.connection()).get_table_names()
    finally:
        database.dispose()
    logs = [f"{file}{suffix}" for suffix in _LOGS if file is not None and Path(f"{file}{suffix}").exists()]
    if found or logs:
        why = "it has tables" if found else f"there is the log of an earlier one, {' and '.join(logs)}"
        raise _occupied(f"the database {database.shown}", why, "an empty database")


def require_empty_blobs(store: BlobStore) -> None:
    """Raises Conflict if the store has a blob."""
    if next(iter(store.files()), None) is not None:
        raise _occupied(f"the blob store {store.shown}", "it has blobs", "an empty one")


def require_empty_directory(path: Path) -> None:
    """Raises Conflict if the directory of the broker's data has files: they are of another state of the fleet."""
    if path.exists() and any(path.iterdir()):
        raise _occupied(f"the broker's directory {path}", "it has files", "a new directory")


def require_no_messages(broker: Broker) -> None:
    """Raises Conflict if the broker has orders for drones, which the database will not know; Unreachable."""
    with broker.reaching():
        for pattern in (names.queue("*"), names.run_key("*", "*")):
            if next(broker.redis.scan_iter(match=pattern, count=1000), None) is not None:
                raise Conflict(
                    "the broker contains orders of another state of the fleet",
                    code="E-RESTORE-BROKER",
                    why="drones would run orders that the restored database does not know, and some of them twice",
                    next="stop all processes of the control plane, empty the broker with redis-cli FLUSHALL,"
                    " and repeat the command",
                )


def require_room(needed: Iterable[tuple[Path, int]]) -> None:
    """Raises FleetFault if a disk has less space than its directories need, in bytes; they need not exist yet."""
    by_disk: dict[int, int] = {}
    for directory, size in needed:
        there = directory.absolute()
        while not there.exists():
            there = there.parent
        disk = there.stat().st_dev
        by_disk[disk] = by_disk.get(disk, 0) + size
        free = shutil.disk_usage(there).free
        if free < by_disk[disk]:
            raise no_room(directory, f"{by_disk[disk] >> 20:,} MiB are needed, and {free >> 20:,} MiB are free")


def bytes_of_sqlite(rows_bytes: int) -> int:
    """The space that these rows may need while they are written to a SQLite file."""
    return rows_bytes * _SPACE


@contextmanager
def filled_database(database_url: str) -> Iterator[Database]:
    """A database to fill in one transaction. A SQLite file appears when the block ends, or not at all."""
    database = Database(database_url)
    try:
        if database.is_sqlite:
            with _draft(Path(str(database.url.database)).absolute()) as draft:
                yield draft
        else:
            yield database
    finally:
        database.dispose()


@contextmanager
def _draft(path: Path) -> Iterator[Database]:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f".{path.name}.restoring")
    _delete(draft)
    database = Database(sqlite_url_of(draft))
    try:
        os.close(os.open(draft, os.O_WRONLY | os.O_CREAT, 0o600))
        yield database
        # The last connection writes the log back into the file, and deletes the log.
        database.dispose()
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        draft.replace(path)
        sync_directory(path.parent)
    finally:
        database.dispose()
        _delete(draft)


def no_room(directory: Path, why: str) -> FleetFault:
    """The error for a full disk."""
    return FleetFault(
        f"there is no room for the backup in {directory}",
        code="E-RESTORE-DISK",
        why=why,
        next="free disk space, or restore to another disk, and repeat the command; nothing was left there",
    )


def _occupied(what: str, why: str, instead: str) -> Conflict:
    return Conflict(
        f"{what} is not empty",
        code="E-RESTORE-TARGET",
        why=f"{why}, and a restore never changes a fleet that exists",
        next=f"name {instead}, or move the existing one away, and repeat the command",
    )


def _delete(database: Path) -> None:
    for suffix in ("", *_LOGS):
        with suppress(FileNotFoundError):
            database.with_name(database.name + suffix).unlink()
