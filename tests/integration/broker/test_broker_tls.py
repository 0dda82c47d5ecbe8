"""Celery's connections to a broker over TLS: the certificate must be valid, or no password is sent."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kombu.exceptions import OperationalError

from control_plane.broker.broker import Broker
from drone.worker.app import Slots, build
from shared.names import new_id
from tests.support import free_port, needs, wait_until
from tests.support.git_servers import self_signed


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for 127.0.0.1; its key is beside it."""
    return self_signed(tmp_path)[0]


@pytest.fixture
def tls_port(tmp_path: Path, certificate: Path) -> Iterator[int]:
    """A Redis of the distribution that speaks TLS only."""
    needs("redis-server")
    port = free_port()
    options = f"--port 0 --tls-port {port} --tls-auth-clients no --bind 127.0.0.1 --save".split()
    files = ["--tls-cert-file", certificate, "--tls-key-file", tmp_path / "key.pem", "--tls-ca-cert-file", certificate]
    with (tmp_path / "redis.log").open("wb") as log:
        server = subprocess.Popen([str(shutil.which("redis-server")), *options, "", *files], stdout=log, stderr=log)
    wait_until(lambda: "Ready to accept" in (tmp_path / "redis.log").read_text(), seconds=15)
    yield port
    server.terminate()
    server.wait(15)


def applications(host: str, port: int) -> list[Any]:
    """Celery as the control plane and as a drone connects it."""
    url = f"rediss://{host}:{port}/0"
    slots = Slots(terminate=print, revoke=print)
    return [Broker(url).celery, build(new_id(), url, 1, lambda *_: "", slots)]


def connect(application: Any) -> None:
    with application.connection_for_write() as connection:
        connection.ensure_connection(max_retries=1, timeout=10)
        connection.default_channel.client.ping()


def test_a_broker_whose_certificate_is_trusted_is_used(
    tls_port: int, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", os.fspath(certificate))
    for application in applications("127.0.0.1", tls_port):
        connect(application)


def test_a_broker_of_an_unknown_authority_is_refused(tls_port: int) -> None:
    for application in applications("127.0.0.1", tls_port):
        with pytest.raises(OperationalError, match="certificate verify failed"):
            connect(application)


def test_a_broker_whose_certificate_has_another_name_is_refused(
    tls_port: int, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", os.fspath(certificate))
    for application in applications("localhost", tls_port):
        with pytest.raises(OperationalError, match="certificate verify failed"):
            connect(application)
