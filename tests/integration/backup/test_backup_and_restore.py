"""Backups of both kinds of databases, restored into both, and every target or backup that is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar

import pytest
from sqlalchemy import Connection, select, text
from sqlalchemy.orm import Session

from control_plane.cli import backups
from control_plane.core.blob_store import DirectoryStore
from control_plane.core.master_key import MasterKeyFile, create_key_file, fingerprint, new_master_key
from control_plane.core.settings import FleetSettings
from control_plane.core.vault import Vault
from control_plane.db.audit import AuditRecord
from control_plane.db.drones import Drone
from control_plane.db.engine import Database, sqlite_url_of
from control_plane.db.orders import Order
from control_plane.db.runs import Blob, Step
from control_plane.db.upgrade import apply_migrations, known_revisions
from control_plane.server.backup import rows, writing
from control_plane.server.backup.checking import check_backup
from control_plane.server.backup.manifest import MANIFEST, LocalFleet, manifest_text, read_manifest
from control_plane.server.backup.restoring import ACTION, restore_backup
from control_plane.server.backup.writing import make_backup
from shared.clock import SystemClock
from shared.errors import Conflict, FleetError, FleetFault, Invalid, Precondition
from tests.support.broker import BrokerServer
from tests.support.database import NO_BROKER
from tests.support.disks import Disk
from tests.support.old_databases import create_old, rows_of
from tests.support.planes import Plane

KINDS = ("sqlite", "postgresql")
CONTENTS = (b"a patch\n", b"a log\n" * 1000, b"")
SEALED = b"a checkpoint"
Refusal = TypeVar("Refusal", bound=FleetError)
Settings = Callable[..., FleetSettings]


def settings_at(place: Path, database_url: str = "", **given: Any) -> FleetSettings:
    """A control plane with its own key file and blobs in this directory, and its database there if none is given."""
    values = {
        "database_url": database_url or sqlite_url_of(place / "fleet.db"),
        "broker_url": NO_BROKER,
        "master_key_file": place / "master.key",
        "blob_dir": place / "blobs",
    }
    return FleetSettings(**{**values, **given})


@pytest.fixture
def settings_in(tmp_path: Path) -> Settings:
    """`settings_in(name, …)`: those in a directory of the test."""
    return lambda name, *given, **more: settings_at(tmp_path / name, *given, **more)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of `saved`, to copy."""
    place = tmp_path_factory.mktemp("old")
    _fill(settings_at(place))
    return place


@pytest.fixture
def saved(template: Path, settings_in: Settings, tmp_path: Path) -> FleetSettings:
    """A control plane with the database of an earlier version, full of rows, and some blobs."""
    shutil.copytree(template, tmp_path / "old")
    return settings_in("old")


@pytest.fixture
def saved_from(request: pytest.FixtureRequest, settings_in: Settings) -> FleetSettings:
    """The same with this kind of database."""
    if request.param == "sqlite":
        return request.getfixturevalue("saved")  # type: ignore[no-any-return]
    old = settings_in("old", request.getfixturevalue("empty_postgres_url"))
    _fill(old)
    return old


@pytest.fixture
def backup(saved: FleetSettings, tmp_path: Path) -> Path:
    """A backup of `saved`, with its key."""
    make_backup(saved, tmp_path / "backup", with_keys=True)
    return tmp_path / "backup"


@pytest.mark.dialects
@pytest.mark.parametrize(("saved_from", "restored_to"), [KINDS, KINDS[::-1]], indirect=["saved_from"])
def test_all_rows_and_blobs_of_an_earlier_version_come_back_in_the_schema_of_this_one_and_numbers_continue(
    saved_from: FleetSettings,
    restored_to: str,
    settings_in: Settings,
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> None:
    old = saved_from
    new = settings_in("new", "" if restored_to == "sqlite" else request.getfixturevalue("empty_postgres_url"))

    made = make_backup(old, tmp_path / "backup", with_keys=True)
    restore_backup(new, tmp_path / "backup", broker_dir=tmp_path / "none")

    apply_migrations(old.database_url)
    assert made.revision != known_revisions()[-1]
    assert _comparable(new) == _comparable(old)
    assert _stored(new) == _stored(old)
    assert _key_file(new).read_text() == _key_file(old).read_text()
    with _session(new) as db:
        assert ACTION in db.scalars(select(AuditRecord.action)).all()
        last = max(db.scalars(select(Step.id)))
        copied = db.get_one(Step, last)
        added = {column.name: getattr(copied, column.name) for column in Step.__table__.columns if column.name != "id"}
        db.add(Step(**{**added, "seq": 100_000, "run_seq": 100_000}))
        db.flush()
        assert db.scalar(select(Step.id).where(Step.seq == 100_000)) == last + 1


def test_embedded_drones_whose_homes_are_gone_are_removed_and_their_orders_queued(
    running: Plane, settings_in: Settings, tmp_path: Path
) -> None:
    ids = {name: running.drone(name).id for name in ("mila", "oka")}
    order_id = running.submit(drone="oka")
    running.until(lambda: running.status(order_id) == "assigned")
    saved = running.core.settings
    make_backup(saved, tmp_path / "backup", local_fleet=LocalFleet(ports={"port": 1}, drone_ids=tuple(ids.values())))
    new = settings_in("new", master_key_file=saved.master_key_file)

    restore_backup(new, tmp_path / "backup", homes={ids["mila"]}, broker_dir=tmp_path / "none")

    with _session(new) as db:
        removed = {name: db.get_one(Drone, ids[name]).removed_at is not None for name in ids}
        order = db.get_one(Order, order_id)
        assert removed == {"mila": False, "oka": True}
        assert (order.status, order.run_id) == ("queued", None)


def test_a_backup_without_the_key_names_the_key_that_it_needs(
    saved: FleetSettings, settings_in: Settings, tmp_path: Path
) -> None:
    made = make_backup(saved, tmp_path / "backup")
    new, key = settings_in("new"), MasterKeyFile(_key_file(saved))()[0]

    missing = _refused(Precondition, new, tmp_path / "backup")
    create_key_file(tmp_path / "other.key", [new_master_key()])
    wrong = _refused(Precondition, new, tmp_path / "backup", key_file=tmp_path / "other.key")

    assert made.master_keys == (fingerprint(key),)
    assert [missing.code, wrong.code] == ["E-RESTORE-KEY"] * 2
    assert fingerprint(key) in missing.what
    restore_backup(new, tmp_path / "backup", key_file=saved.master_key_file, broker_dir=tmp_path / "none")
    assert _key_file(new).read_text() == _key_file(saved).read_text()


def test_a_target_with_tables_blobs_orders_or_another_key_is_never_changed_nor_one_for_a_newer_version(
    backup: Path, settings_in: Settings, sqlite_url: str, postgres_url: str, valkey: BrokerServer
) -> None:
    with_blobs, with_key = settings_in("blobs"), settings_in("key")
    (with_blobs.blob_dir / "ab").mkdir(parents=True)
    (with_blobs.blob_dir / "ab" / ("ab" * 32)).write_bytes(b"another fleet's")
    create_key_file(_key_file(with_key), [new_master_key()])
    for target in (settings_in("one", sqlite_url), settings_in("other", postgres_url), with_blobs):
        assert _refused(Conflict, target, backup).code == "E-RESTORE-TARGET"
    assert _refused(Precondition, with_key, backup).code == "E-RESTORE-KEY"
    valkey.redis.lpush("drone.0123456789ab", "an order")
    with pytest.raises(Conflict) as refused:
        restore_backup(settings_in("new", broker_url=valkey.url), backup)
    assert refused.value.code == "E-RESTORE-BROKER"
    newer = read_manifest(backup).model_copy(update={"program": "9.1.0", "revision": "r9999"})
    (backup / MANIFEST).write_text(manifest_text(newer))
    assert _refused(Precondition, settings_in("new"), backup).code == "E-BACKUP-NEWER"


def test_a_place_with_the_log_of_another_database_or_the_data_of_any_broker_is_not_empty(
    backup: Path, settings_in: Settings, tmp_path: Path
) -> None:
    for suffix in ("-wal", "-shm", "-journal"):
        target = settings_in(f"new{suffix}")
        log = _key_file(target).with_name(f"fleet.db{suffix}")
        log.parent.mkdir()
        log.write_bytes(b"of another database")
        refused = _refused(Conflict, target, backup)
        assert (refused.code, str(log) in refused.why) == ("E-RESTORE-TARGET", True)
    for broker in ("valkey", "broker-redis-server", "broker-valkey-server"):
        data = tmp_path / f"data of {broker}"
        (data / broker).mkdir(parents=True)
        (data / broker / "dump.rdb").write_bytes(b"of another fleet")
        with pytest.raises(Conflict) as occupied:
            backups.restore(backup, data_dir=data)
        assert (occupied.value.code, (data / "fleet.db").exists()) == ("E-RESTORE-TARGET", False)


def test_half_a_backup_is_found_by_the_check_and_not_restored_but_a_blob_that_the_store_lost_is_only_named(
    saved: FleetSettings, settings_in: Settings, tmp_path: Path
) -> None:
    lost, corrupt = (sha256(content).hexdigest() for content in CONTENTS[:2])
    (saved.blob_dir / lost[:2] / lost).unlink()
    (saved.blob_dir / corrupt[:2] / corrupt).write_bytes(b"something else")
    backup = tmp_path / "backup"
    made = make_backup(saved, backup, with_keys=True)
    assert sorted(made.missing_blobs) == sorted([lost, corrupt])
    assert check_backup(backup).blobs == len(CONTENTS) - 1

    blob = max((backup / "blobs").glob("??/*"), key=lambda each: each.stat().st_size).relative_to(backup)
    for part in ("database.jsonl.gz", "blobs.jsonl", "master.key", "manifest.json", str(blob)):
        content = (backup / part).read_bytes()
        for number, changed in enumerate((None, content[:-1], content[:-2] + b"#" + content[-1:])):
            damaged = tmp_path / f"{Path(part).name[:9]}{number}"
            shutil.copytree(backup, damaged)
            (damaged / part).unlink()
            if changed is not None:
                (damaged / part).write_bytes(changed)
            with pytest.raises(Invalid) as found:
                check_backup(damaged)
            refused = _refused(Invalid, settings_in(f"new{damaged.name}"), damaged)
            codes = (part, number, found.value.code, refused.code)
            assert codes == (part, number, "E-BACKUP-DAMAGED", "E-BACKUP-DAMAGED")


def test_a_restore_without_room_or_that_the_database_refuses_leaves_nothing(
    backup: Path, settings_in: Settings, small_disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_disk.fill(leave=1024)
    small = settings_in("small", blob_dir=small_disk.path / "blobs")
    with pytest.raises(FleetFault) as refused:
        restore_backup(small, backup, broker_dir=tmp_path / "none")
    assert refused.value.code == "E-RESTORE-DISK"
    assert list(small_disk.path.rglob("*/*")) == []

    monkeypatch.setattr("control_plane.server.backup.restoring.ACTION", None)
    with pytest.raises(Exception, match="NOT NULL"):
        restore_backup(settings_in("new"), backup, broker_dir=tmp_path / "none")
    assert [path for path in (tmp_path / "new").rglob("*") if path.is_file()] == []


def test_a_backup_on_a_full_disk_or_in_a_directory_with_content_is_refused(
    saved: FleetSettings, small_disk: Disk
) -> None:
    small_disk.fill(leave=4096)

    with pytest.raises(FleetFault) as refused:
        make_backup(saved, small_disk.path / "backup")
    with pytest.raises(Conflict) as taken:
        make_backup(saved, small_disk.path)

    assert (refused.value.code, taken.value.code) == ("E-BACKUP-DISK", "E-BACKUP-TARGET")
    assert [path.name for path in small_disk.path.iterdir()] == ["ballast"]


@pytest.mark.parametrize("saved_from", KINDS, indirect=True)
def test_all_rows_are_of_one_moment_while_others_are_written(
    saved_from: FleetSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = _count(saved_from, "orders")
    read = rows.lines_of_rows

    def delete_meanwhile(connection: Connection, counts: dict[str, int]) -> Iterator[bytes]:
        lines = read(connection, counts)
        yield next(lines)
        with _session(saved_from) as db:
            db.execute(text("DELETE FROM steps"))
            db.execute(text("DELETE FROM blobs"))
        yield from lines

    monkeypatch.setattr(writing, "lines_of_rows", delete_meanwhile)
    made = make_backup(saved_from, tmp_path / "backup")

    assert made.rows["orders"] == orders
    assert made.rows["steps"] > 0
    assert (made.rows["blobs"], made.blobs) == (len(CONTENTS) + 1, len(CONTENTS) + 1)


def _fill(old: FleetSettings) -> None:
    """Create a database in the first schema, blobs of a run and a key of ours."""
    create_old(old.database_url)
    vault, store = Vault(MasterKeyFile(_key_file(old))), DirectoryStore(old.blob_dir)
    with _session(old) as db:
        # What stands there was sealed by no key, and is in no store.
        db.execute(text("DELETE FROM key_pairs"))
        db.execute(text("DELETE FROM blobs"))
        vault.ensure_box_keys(db, SystemClock())
        run_id, organization_id = db.execute(text("SELECT id, organization_id FROM runs")).first() or ("", "")
        for content in (*CONTENTS, SEALED):
            name, sealed = sha256(content).hexdigest(), content == SEALED
            if sealed:
                store.store_sealed(name, BytesIO(content), vault.seal_content)
            else:
                store.store(name, BytesIO(content))
            kept = {"run_id": run_id, "sha256": name, "size": len(content), "sealed": sealed}
            db.add(Blob(organization_id=organization_id, created_at=SystemClock().now(), **kept))


def _refused(kind: type[Refusal], settings: FleetSettings, backup: Path, **options: Any) -> Refusal:
    """The error of a restore that leaves all files of the target as they were."""
    place = _key_file(settings).parent
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    with pytest.raises(kind) as refused:
        restore_backup(settings, backup, broker_dir=place / "none", **options)
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before
    return refused.value


@contextmanager
def _session(settings: FleetSettings) -> Iterator[Session]:
    """A writing transaction on the database of these settings."""
    database = Database(settings.database_url)
    try:
        with database.write() as db:
            yield db
    finally:
        database.dispose()


def _count(settings: FleetSettings, table: str) -> int:
    with _session(settings) as db:
        return int(db.scalar(text(f"SELECT COUNT(*) FROM {table}")) or 0)


def _key_file(settings: FleetSettings) -> Path:
    assert settings.master_key_file is not None
    return settings.master_key_file


def _comparable(settings: FleetSettings) -> dict[str, list[str]]:
    """All rows but those of the audit log, which gets a record of the restore; in any order."""
    rows = rows_of(settings.database_url)
    return {
        table: sorted(json.dumps(row, default=_plain, sort_keys=True) for row in found)
        for table, found in rows.items()
        if not table.startswith("audit")
    }


def _plain(value: object) -> str:
    """A time without its zone, which SQLite does not store."""
    assert isinstance(value, datetime)
    return str(value.replace(tzinfo=None))


def _stored(settings: FleetSettings) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in settings.blob_dir.glob("??/*")}
