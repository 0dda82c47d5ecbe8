"""Write a backup while the fleet runs: rows from one view of the database, then the blobs that these rows name.

It is written under a temporary name and renamed when all of it is on disk. Rows come first: a row promises its file.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import Connection, text

from control_plane.core.blob_store import BlobStore
from control_plane.core.durable import sync_directory
from control_plane.core.master_key import MasterKeys, fingerprint, key_file_text, master_keys
from control_plane.core.settings import FleetSettings
from control_plane.core.vault import Vault
from control_plane.db.engine import Database
from control_plane.db.upgrade import current_revision, pending_migrations, revision_of
from control_plane.server.assemble import open_blobs
from control_plane.server.backup.files import CHUNK, compressed, counted
from control_plane.server.backup.manifest import (
    BLOB_LIST,
    DATABASE,
    MANIFEST,
    MASTER_KEY,
    BackupPart,
    LocalFleet,
    Manifest,
    SavedBlob,
    manifest_text,
)
from control_plane.server.backup.rows import lines_of_rows
from shared.clock import SystemClock
from shared.errors import Conflict, FleetFault, NotFound, Precondition
from shared.names import new_id
from shared.terminal.boundary import version

_NAMES = "blobs.names"
_NAMED = "SELECT DISTINCT sha256, sealed FROM blobs ORDER BY sha256, sealed"
_SHOWN = 100
"""Missing blobs that the manifest names."""


@dataclass
class _Blobs:
    """What was saved of the blobs."""

    count: int = 0
    size: int = 0
    missing: list[str] = field(default_factory=list)


def make_backup(
    settings: FleetSettings, target: Path, *, with_keys: bool = False, local_fleet: LocalFleet | None = None
) -> Manifest:
    """Write a backup to `target`, a directory that is new or empty, and return its manifest.

    Raises Conflict if `target` has content, Precondition if the database is empty or newer than this program or if the
    master key is not that of the database, Unreachable if the database does not respond, FleetFault if the disk
    refuses.
    """
    _require_new(target)
    keys = _existing_keys(settings)
    database = Database(settings.database_url)
    try:
        _require_known(database)
        with _draft(target) as draft:
            manifest = _write(draft, database, settings, keys, with_keys=with_keys, local_fleet=local_fleet)
    finally:
        database.dispose()
    return manifest


def _write(  # noqa: PLR0913 - the parts of one backup
    draft: Path,
    database: Database,
    settings: FleetSettings,
    keys: MasterKeys,
    *,
    with_keys: bool,
    local_fleet: LocalFleet | None,
) -> Manifest:
    made_at, before = SystemClock().now(), keys()
    parts: dict[str, BackupPart] = {}
    rows: dict[str, int] = {}
    with database.read() as db:
        Vault(keys).box_keys(db)
    with database.snapshot() as db:
        connection = db.connection()
        revision = str(revision_of(connection))
        rows_bytes = _save_rows(connection, draft, parts, rows)
    blobs = _save_blobs(draft, database, open_blobs(settings), parts)
    # A rotation may have replaced the key meanwhile: rows may need the old one, and blobs the new one.
    needed = tuple(dict.fromkeys((*keys(), *before)))
    if with_keys:
        with counted(draft / MASTER_KEY, parts) as file:
            file.write(key_file_text(needed).encode())
    manifest = Manifest(
        program=version(),
        revision=revision,
        made_at=made_at,
        parts=parts,
        rows=rows,
        rows_bytes=rows_bytes,
        blobs=blobs.count,
        blobs_bytes=blobs.size,
        missing_blobs=tuple(blobs.missing[:_SHOWN]),
        master_keys=tuple(map(fingerprint, needed)),
        local_fleet=local_fleet,
    )
    # Thousands of blobs are made durable together, before the manifest that promises them.
    os.sync()
    with counted(draft / MANIFEST, {}) as file:
        file.write(manifest_text(manifest).encode())
    return manifest


def _save_rows(connection: Connection, draft: Path, parts: dict[str, BackupPart], rows: dict[str, int]) -> int:
    """Write the rows, and the names of their blobs; returns the bytes of the rows before compression."""
    size = 0
    with counted(draft / DATABASE, parts) as file, compressed(file) as writer:
        for line in lines_of_rows(connection, rows):
            size += writer.write(line)
    with (draft / _NAMES).open("w") as names:
        for sha256, sealed in connection.execute(text(_NAMED), execution_options={"yield_per": 500}):
            names.write(json.dumps([sha256, bool(sealed)]) + "\n")
    return size


def _save_blobs(draft: Path, database: Database, store: BlobStore, parts: dict[str, BackupPart]) -> _Blobs:
    found = _Blobs()
    with (draft / _NAMES).open() as names, counted(draft / BLOB_LIST, parts) as listed:
        for sha256, sealed in map(json.loads, names):
            saved = _save_blob(draft, store, sha256, sealed=sealed)
            if saved is None:
                if _is_named(database, sha256, sealed=sealed):
                    found.missing.append(sha256)
                continue
            listed.write(saved.model_dump_json().encode() + b"\n")
            found.count, found.size = found.count + 1, found.size + saved.size
    (draft / _NAMES).unlink()
    return found


def _save_blob(draft: Path, store: BlobStore, sha256: str, *, sealed: bool) -> SavedBlob | None:
    """Copy one blob as it is stored; None if it is missing, or has another content than its name says."""
    copied: dict[str, BackupPart] = {}
    path = draft / SavedBlob(size=0, sha256="", name=sha256, sealed=sealed).file
    try:
        # All of them are made durable together in the end.
        with store.stored(sha256, sealed=sealed) as source, counted(path, copied, durable=False) as file:
            while chunk := source.read(CHUNK):
                file.write(chunk)
    except NotFound:
        return None
    part = copied[path.name]
    if not sealed and part.sha256 != sha256:
        path.unlink()
        return None
    return SavedBlob(name=sha256, sealed=sealed, **part.model_dump())


def _is_named(database: Database, sha256: str, *, sealed: bool) -> bool:
    """Whether a row still names the blob: the retention may have removed both meanwhile."""
    rows = text("SELECT COUNT(*) FROM blobs WHERE sha256 = :sha256 AND sealed = :sealed")
    with database.read() as db:
        return bool(db.scalar(rows, {"sha256": sha256, "sealed": sealed}))


def _require_known(database: Database) -> None:
    """Return if the database is of this version or an older one. Raises Precondition if it is empty or newer."""
    pending_migrations(database)
    if current_revision(database) is None:
        raise Precondition(
            f"the database {database.shown} is empty",
            code="E-BACKUP-EMPTY",
            why="it has no tables, so there is nothing to save",
            next="fleet db status    and check FLEET_DATABASE_URL",
        )


def _existing_keys(settings: FleetSettings) -> MasterKeys:
    """The master keys. A missing file is not created here: it would not be the key of the database."""
    file = settings.master_key_file
    if not settings.master_key and file is not None and not file.exists():
        raise Precondition(
            f"the master key file {file} does not exist", code="E-MASTER-KEY", next="check FLEET_MASTER_KEY_FILE"
        )
    return master_keys(settings)


def _require_new(target: Path) -> None:
    try:
        taken = target.exists() and (not target.is_dir() or any(target.iterdir()))
    except OSError as error:
        raise _disk(target, error) from error
    if taken:
        raise Conflict(
            f"{target} exists already",
            code="E-BACKUP-TARGET",
            why="a backup goes to a directory that is new or empty",
            next="fleet backup create DIRECTORY",
        )


@contextmanager
def _draft(target: Path) -> Iterator[Path]:
    """A directory that becomes `target` when the block ends, and is deleted if that fails."""
    target = target.absolute()
    draft = target.with_name(f"{target.name}.partial-{new_id()}")
    try:
        draft.mkdir(parents=True, mode=0o700)
        try:
            yield draft
            draft.rename(target)
            sync_directory(target.parent)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
    except OSError as error:
        raise _disk(target, error) from error


def _disk(target: Path, error: OSError) -> FleetFault:
    return FleetFault(
        f"the backup could not be written to {target}",
        code="E-BACKUP-DISK",
        why=error.strerror or str(error),
        next="free disk space or choose another directory, and repeat the command; nothing was left there",
    )
