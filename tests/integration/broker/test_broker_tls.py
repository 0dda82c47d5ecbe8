"""Celery's and Flower's connections to a broker over TLS: the certificate must be valid, or no password is sent."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from kombu.exceptions import OperationalError

from control_plane.broker.broker import Broker
from control_plane.db.upgrade import apply_migrations
from control_plane.embedded.parts import FLEET
from drone.worker.app import Slots, build
from shared.names import new_id
from tests.support import free_port, needs, wait_until
from tests.support.certificates import Authority


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "authority")


@pytest.fixture
def server(tmp_path: Path, authority: Authority) -> Iterator[redis.Redis]:
    """A client of a Redis of the distribution that speaks TLS only, with a certificate for 127.0.0.1."""
    needs("redis-server")
    port, pair = free_port(), authority.issue("broker", "127.0.0.1")
    options = f"--port 0 --tls-port {port} --tls-auth-clients no --bind 127.0.0.1 --save".split()
    files = ["--tls-cert-file", pair.certificate, "--tls-key-file", pair.key, "--tls-ca-cert-file", authority.file]
    with (tmp_path / "redis.log").open("wb") as log:
        process = subprocess.Popen([str(shutil.which("redis-server")), *options, "", *files], stdout=log, stderr=log)
    wait_until(lambda: "Ready to accept" in (tmp_path / "redis.log").read_text())
    with redis.Redis(host="127.0.0.1", port=port, ssl=True, ssl_ca_certs=str(authority.file)) as client:
        yield client
    process.terminate()
    process.wait(60)


def address(server: redis.Redis, host: str = "127.0.0.1") -> str:
    return f"rediss://{host}:{server.get_connection_kwargs()['port']}/0"


def applications(url: str) -> list[Any]:
    """Celery as the control plane and as a drone connects it."""
    slots = Slots(terminate=print, revoke=print)
    return [Broker(url).celery, build(new_id(), url, 1, lambda *_: "", slots)]


def connect(application: Any) -> None:
    with application.connection_for_write() as connection:
        connection.ensure_connection(max_retries=1, timeout=10)
        connection.default_channel.client.ping()


def test_a_broker_of_an_unknown_authority_is_refused(server: redis.Redis) -> None:
    for application in applications(address(server)):
        with pytest.raises(OperationalError, match="certificate verify failed"):
            connect(application)


def test_a_broker_is_used_when_its_certificate_is_trusted_and_has_its_name(
    server: redis.Redis, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", os.fspath(authority.file))
    for application in applications(address(server)):
        connect(application)
    for application in applications(address(server, "localhost")):
        with pytest.raises(OperationalError, match="certificate verify failed"):
            connect(application)


# --- Flower --------------------------------------------------------------------------------


@pytest.fixture
def start_flower(tmp_path: Path, server: redis.Redis) -> Iterator[Callable[..., Path]]:
    """Starts Flower with these variables besides its settings; returns its log."""
    started: list[subprocess.Popen[bytes]] = []
    database, output = f"sqlite:///{tmp_path / 'fleet.db'}", tmp_path / "flower.log"
    apply_migrations(database)
    settings = {
        "FLEET_BROKER_URL": address(server),
        "FLEET_DATABASE_URL": database,
        "FLEET_BLOB_DIR": str(tmp_path),
        "FLEET_FLOWER_PASSWORD": "secret",
    }

    def start(**variables: str) -> Path:
        command = [*FLEET, "flower", "--port", str(free_port())]
        with output.open("wb") as log:
            environment = {**os.environ, **settings, **variables}
            started.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment))
        return output

    yield start
    for process in started:
        process.terminate()
        process.wait(60)


def test_flower_uses_a_broker_whose_certificate_is_trusted_and_no_other(
    start_flower: Callable[..., Path], server: redis.Redis, authority: Authority
) -> None:
    log = start_flower()

    wait_until(lambda: "certificate verify failed" in log.read_text(), seconds=60)
    # A connection is listed before its handshake; none may get as far as a command.
    others = [each for each in server.client_list() if each["id"] != str(server.client_id())]
    assert {each["cmd"] for each in others} <= {"NULL"}

    start_flower(SSL_CERT_FILE=str(authority.file))
    wait_until(lambda: server.client_list(_type="pubsub"), seconds=60)
