"""Restore a backup into an empty fleet: all of it, or nothing.

The order decides what an interruption leaves: key and blobs first, which nothing names yet, and the database at last,
in one transaction. A fleet whose database has rows was therefore restored completely.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from control_plane.core.blob_store import BlobStore
from control_plane.core.master_key import create_key_file, fingerprint, master_keys, read_key_file
from control_plane.core.settings import FleetSettings
from control_plane.db.audit_chain import AuditEntry, append
from control_plane.db.engine import Database
from control_plane.db.upgrade import migrate
from control_plane.operations.drones.managing import remove_without_home
from control_plane.server.assemble import core_on, open_blobs, open_broker
from control_plane.server.backup import target
from control_plane.server.backup.checking import check_backup
from control_plane.server.backup.files import lines_of
from control_plane.server.backup.manifest import DATABASE, MASTER_KEY, Manifest, saved_blobs
from control_plane.server.backup.rows import load_rows
from shared.clock import SystemClock
from shared.errors import FleetFault, Precondition

ACTION = "restore_backup"


def restore_backup(
    settings: FleetSettings,
    backup: Path,
    *,
    key_file: Path | None = None,
    homes: Collection[str] = (),
    broker_dir: Path | None = None,
) -> Manifest:
    """Restore the backup to what the settings name, and bring it up to date; returns its manifest.

    `homes` are the ids of the embedded drones whose homes exist; the others of the backup are removed from the fleet.
    `broker_dir`: the directory of a broker that `fleet up` will start; None: the broker runs.

    Raises Conflict if the database, the blob store or the broker is not empty, Invalid and Precondition as
    `check_backup`, Precondition for a missing or wrong master key, FleetFault if there is no room. Then nothing was
    changed.
    """
    manifest = check_backup(backup)
    store = open_blobs(settings)
    target.require_empty_database(settings.database_url)
    target.require_empty_blobs(store)
    if broker_dir is None:
        _require_empty_broker(settings)
    else:
        target.require_empty_directory(broker_dir)
    _require_room(settings, manifest)
    with _keys(settings, manifest, backup, key_file), _blobs(store, settings, backup):
        _restore_database(settings, manifest, backup, homes)
    return manifest


def _require_empty_broker(settings: FleetSettings) -> None:
    broker = open_broker(settings)
    try:
        target.require_no_messages(broker)
    finally:
        broker.close()


def _require_room(settings: FleetSettings, manifest: Manifest) -> None:
    """Raises FleetFault if blobs or rows do not fit. The disk of a PostgreSQL server cannot be seen from here."""
    needed = [] if settings.blob_store else [(settings.blob_dir, manifest.blobs_bytes)]
    database = Database(settings.database_url)
    database.dispose()
    if database.is_sqlite:
        needed.append((Path(str(database.url.database)).parent, target.bytes_of_sqlite(manifest.rows_bytes)))
    target.require_room(needed)


@contextmanager
def _keys(settings: FleetSettings, manifest: Manifest, backup: Path, key_file: Path | None) -> Iterator[None]:
    """The master key is there, and opens what the backup contains; a key file that was installed goes if that fails."""
    installed = _install_key(settings, manifest, key_file or (backup / MASTER_KEY if manifest.with_keys else None))
    try:
        where = "FLEET_MASTER_KEY" if settings.master_key else str(settings.master_key_file)
        _require_keys(manifest, master_keys(settings)(), where)
        yield
    except BaseException:
        if installed is not None:
            installed.unlink(missing_ok=True)
        raise


def _install_key(settings: FleetSettings, manifest: Manifest, source: Path | None) -> Path | None:
    """Copy the keys in `source` to the key file of the settings; returns it, or None if the settings have a key."""
    file = settings.master_key_file
    if settings.master_key or file is None or file.exists():
        return None
    if source is None:
        raise _wrong_key(manifest, f"{file} does not exist, and the backup was made without --with-keys")
    keys = read_key_file(source)
    _require_keys(manifest, keys, str(source))
    create_key_file(file, keys)
    return file


def _require_keys(manifest: Manifest, keys: tuple[bytes, ...], where: str) -> None:
    if not set(manifest.master_keys) <= set(map(fingerprint, keys)):
        raise _wrong_key(manifest, f"{where} contains {' and '.join(map(fingerprint, keys))}")


def _wrong_key(manifest: Manifest, why: str) -> Precondition:
    return Precondition(
        f"the backup needs the master key {' and '.join(manifest.master_keys)}",
        code="E-RESTORE-KEY",
        why=why,
        next="repeat the command with a copy of that key: --key-file FILE, or FLEET_MASTER_KEY_FILE",
    )


@contextmanager
def _blobs(store: BlobStore, settings: FleetSettings, backup: Path) -> Iterator[None]:
    """All blobs of the backup are in the store, and none of them if the block raises."""
    try:
        for blob in saved_blobs(backup):
            with (backup / blob.file).open("rb") as source:
                store.put_back(blob.name, source, sealed=blob.sealed)
        yield
    except BaseException as error:
        after = SystemClock().now() + timedelta(hours=1)
        for blob in saved_blobs(backup):
            store.remove(blob.name, sealed=blob.sealed, stored_before=after)
        if isinstance(error, FleetFault) and error.code == "E-BLOB-DISK":
            raise target.no_room(settings.blob_dir, error.why) from error
        raise


def _restore_database(settings: FleetSettings, manifest: Manifest, backup: Path, homes: Collection[str]) -> None:
    """One transaction: the schema of the backup's time, the rows, the newer revisions, and what is different now."""
    with target.filled_database(settings.database_url) as database:
        core = core_on(database, settings)
        try:
            with database.write() as db:
                connection = db.connection()
                migrate(connection, manifest.revision)
                with lines_of(backup / DATABASE) as lines:
                    load_rows(connection, lines)
                migrate(connection)
                core.vault.box_keys(db)
                known = manifest.local_fleet.drone_ids if manifest.local_fleet else ()
                remove_without_home(db, core, set(known) - set(homes))
                append(db, AuditEntry(core.clock.now(), "control plane", "system", ACTION, door="control plane"))
        finally:
            core.broker.close()
