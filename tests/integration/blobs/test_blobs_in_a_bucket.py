"""Blobs in a bucket: what a directory does, a bucket does, and each failure of a server is told in one sentence.

The server is a stand-in (moto) in a process of its own.
"""

from __future__ import annotations

import io
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from control_plane.broker.broker import Broker
from control_plane.core import s3_store
from control_plane.core.blob_store import BlobStore
from control_plane.core.lookups.organizations import system_caller
from control_plane.core.settings import FleetSettings, read_settings
from control_plane.db.engine import sqlite_url_of
from control_plane.operations.doctor import server_checks
from control_plane.operations.runs import blobs
from control_plane.server.assemble import open_blobs
from control_plane.server.backup.restoring import restore_backup
from control_plane.server.backup.writing import make_backup
from shared.blobs import digest
from shared.errors import FleetFault, Invalid, NotFound, TooLarge, Unreachable
from shared.terminal.doctor import FAIL
from tests.support import HeldPort
from tests.support.broker import BrokerServer
from tests.support.database import NO_BROKER, CoreFactory
from tests.support.made import make_drone, make_project, run_of, submit
from tests.support.s3_server import BUCKET, S3Server, running

CONTENT = b"diff --git a/x b/x\n" * 1000
NAME = digest(CONTENT)
PLACE = f"of/a-fleet/{NAME[:2]}/{NAME}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """One for all tests, since it takes seconds to start."""
    with running(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def settings_of(server: S3Server, tmp_path: Path) -> Callable[..., FleetSettings]:
    """`settings_of(**changed)`: a control plane with its blobs in the bucket, which is empty."""
    server.empty()

    def make(**changed: Any) -> FleetSettings:
        given = {"database_url": "sqlite:////x", "broker_url": "redis://x", "blob_dir": tmp_path / "spool"}
        return FleetSettings(**{**given, **server.settings, **changed})

    return make


@pytest.fixture
def store(settings_of: Callable[..., FleetSettings]) -> BlobStore:
    return open_blobs(settings_of())


def test_a_blob_comes_back_as_it_was_stored_and_a_sealed_one_is_another_and_sealed_again(
    store: BlobStore, server: S3Server
) -> None:
    assert store.store(NAME, io.BytesIO(CONTENT)) == len(CONTENT)
    assert (store.read(NAME), store.size(NAME), store.has(NAME)) == (CONTENT, len(CONTENT), True)
    with store.stored(NAME, sealed=False) as file:
        assert file.read() == CONTENT
    assert server.keys() == [PLACE]
    assert list(store.spool.iterdir()) == []
    assert store.remove(NAME, stored_before=datetime.now(UTC) + timedelta(minutes=1))

    store.store_sealed(NAME, io.BytesIO(CONTENT), lambda content: b"old:" + content)
    assert store.reseal(NAME, lambda sealed: sealed) is False
    assert store.reseal(NAME, lambda sealed: b"new:" + sealed.removeprefix(b"old:")) is True
    assert (store.read_sealed(NAME, bytes), store.has(NAME)) == (b"new:" + CONTENT, False)
    assert [(each.sha256, each.sealed, each.size) for each in store.files()] == [(NAME, True, len(CONTENT) + 4)]
    assert list(store.sealed_names()) == [NAME]


def test_of_a_part_of_a_blob_only_that_part_is_requested(store: BlobStore) -> None:
    assert isinstance(store, s3_store.S3Store)
    store.store(NAME, io.BytesIO(CONTENT))
    asked: list[str] = []
    store._client.meta.events.register(
        "provide-client-params.s3.GetObject", lambda params, **_: asked.append(params["Range"])
    )
    with store.content(NAME) as content:
        size = len(content)
        parts = [content[part] for part in (slice(3, 9), slice(size - 4, size + 9), slice(9, 9), slice(0, size))]
    assert parts == [CONTENT[3:9], CONTENT[-4:], b"", CONTENT]
    assert asked == ["bytes=3-8", f"bytes={size - 4}-{size - 1}", f"bytes=0-{size - 1}"]


def test_what_a_directory_refuses_is_refused_and_a_blob_is_removed_unless_it_was_stored_since(
    store: BlobStore, server: S3Server
) -> None:
    with pytest.raises(Invalid):
        store.store(NAME, io.BytesIO(CONTENT[:-1]))
    with pytest.raises(TooLarge):
        store.store(NAME, io.BytesIO(CONTENT), limit=len(CONTENT) - 1)
    with pytest.raises(Invalid):
        store.read("../../etc/passwd")
    assert server.keys() == []
    store.store(NAME, io.BytesIO(CONTENT))
    now = datetime.now(UTC)
    assert store.remove(NAME, stored_before=now - timedelta(minutes=1)) is False
    assert store.remove(NAME, stored_before=now + timedelta(minutes=1)) is True
    assert store.remove(NAME, stored_before=now + timedelta(minutes=1)) is False
    for ask in (store.read, store.size, lambda name: store.content(name).__enter__()):
        with pytest.raises(NotFound):
            ask(NAME)


def test_wrong_credentials_a_missing_bucket_and_a_refused_upload_are_told(
    settings_of: Callable[..., FleetSettings], server: S3Server
) -> None:
    assert _found(settings_of(blob_store="s3://another-bucket")).code == "E-S3-BUCKET"
    with server.checking_credentials():
        assert _found(settings_of()).code == "E-S3-DENIED"
    full = b"<Error><Code>XMinioStorageFull</Code></Error>"
    with _answering(b"HTTP/1.1 507 Insufficient Storage", full) as url, pytest.raises(FleetFault) as failure:
        open_blobs(settings_of(s3_endpoint=url)).store(NAME, io.BytesIO(CONTENT))
    assert (failure.value.code, "XMinioStorageFull" in failure.value.why) == ("E-S3-REFUSED", True)


def test_a_server_that_is_away_or_silent_costs_only_a_limited_time(
    settings_of: Callable[..., FleetSettings], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3_store, "READ_SECONDS", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent, HeldPort() as closed_port:
        slow = settings_of(s3_endpoint=f"http://127.0.0.1:{silent.getsockname()[1]}")
        away = settings_of(s3_endpoint=f"http://127.0.0.1:{closed_port}")
        for settings in (slow, away):
            assert isinstance(_found(settings), Unreachable)


def test_settings_that_cannot_be_meant_are_refused_and_the_doctor_says_that_the_bucket_is_missing(
    settings_of: Callable[..., FleetSettings],
    server: S3Server,
    sqlite_url: str,
    valkey: BrokerServer,
    core_factory: CoreFactory,
) -> None:
    cases = (("blob_store", "gs://b"), ("blob_store", "s3://"), ("s3_endpoint", "h"), ("s3_secret_access_key", None))
    for name, value in cases:
        with pytest.raises(Invalid) as refused:
            read_settings(**{**settings_of().model_dump(), name: value})
        assert f"FLEET_{name.upper()}" in refused.value.what
    given = {**server.settings, "blob_store": "s3://another-bucket"}
    core = core_factory(sqlite_url, broker=Broker(valkey.url), **given)
    [check] = [each for each in server_checks(core, system_caller(core).organization_id) if each.code == "D-BLOBS"]
    assert check.state == FAIL


def test_a_backup_of_a_bucket_is_restored_to_a_directory_and_back(
    server: S3Server, sqlite_url: str, core_factory: CoreFactory, tmp_path: Path
) -> None:
    server.empty()
    core = core_factory(sqlite_url, **server.settings)
    admin = system_caller(core)
    make_project(core, admin)
    drone, run_id = make_drone(core, admin), run_of(core, submit(core, admin).id)
    for content in (CONTENT, b""):
        blobs.put_blob(core, drone, run_id, digest(content), io.BytesIO(content))
    read = blobs.get_blob(core, drone, run_id, NAME)
    assert (read.size, b"".join(read.chunks)) == (len(CONTENT), CONTENT)
    key = core.settings.master_key_file
    assert key is not None

    make_backup(core.settings, tmp_path / "one", with_keys=True)
    place = tmp_path / "directory"
    given: dict[str, Any] = {
        "database_url": sqlite_url_of(place / "fleet.db"),
        "broker_url": NO_BROKER,
        "master_key_file": key,
    }
    directory = FleetSettings(**given, blob_dir=place / "blobs")
    restore_backup(directory, tmp_path / "one", broker_dir=place / "none")
    make_backup(directory, tmp_path / "two")
    other = {**given, "database_url": sqlite_url_of(tmp_path / "again.db"), **server.settings}
    bucket = FleetSettings(**{**other, "blob_store": f"s3://{BUCKET}/again"}, blob_dir=place / "spool")
    restore_backup(bucket, tmp_path / "two", broker_dir=place / "none")

    assert open_blobs(directory).read(NAME) == open_blobs(bucket).read(NAME) == CONTENT
    assert len(server.keys("again/")) == 2


def _found(settings: FleetSettings) -> FleetFault:
    """What the check of a store finds."""
    with pytest.raises(FleetFault) as failure:
        open_blobs(settings).check()
    return failure.value


@contextmanager
def _answering(status: bytes, body: bytes) -> Iterator[str]:
    """The URL of a server that answers every request in the same way."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_PUT(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.wfile.write(status + b"\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

        def log_message(self, *_: object) -> None:
            """Nothing is logged."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
