"""Celery's connections to a broker over TLS: the certificate must be valid, or no password is sent."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kombu.exceptions import OperationalError

from control_plane.broker.broker import Broker
from drone.worker.app import Slots, build
from shared.names import new_id
from tests.support import needs
from tests.support.broker import BrokerServer, TlsAddress
from tests.support.certificates import Authority


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "authority")


@pytest.fixture
def server(tmp_path: Path, authority: Authority) -> Iterator[BrokerServer]:
    """A Redis of the distribution that speaks TLS only, with a certificate for 127.0.0.1."""
    needs("redis-server")
    pair = authority.issue("broker", "127.0.0.1")
    tls = TlsAddress("127.0.0.1", (pair.certificate, pair.key), authority.file)
    made = BrokerServer(tmp_path / "broker", Path(str(shutil.which("redis-server"))), tls=tls)
    made.start()
    yield made
    made.close()


def applications(url: str) -> list[Any]:
    """Celery as the control plane and as a drone connects it."""
    slots = Slots(terminate=print, revoke=print)
    return [Broker(url).celery, build(new_id(), url, 1, lambda *_: "", slots)]


def connect(application: Any) -> None:
    with application.connection_for_write() as connection:
        connection.ensure_connection(max_retries=1, timeout=10)
        connection.default_channel.client.ping()


def test_a_broker_of_an_unknown_authority_is_refused(server: BrokerServer) -> None:
    for application in applications(server.url):
        with pytest.raises(OperationalError, match="certificate verify failed"):
            connect(application)


def test_a_broker_is_used_when_its_certificate_is_trusted_and_has_its_name(
    server: BrokerServer, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", os.fspath(authority.file))
    for application in applications(server.url):
        connect(application)
    for application in applications(server.url.replace("127.0.0.1", "localhost")):
        with pytest.raises(OperationalError, match="certificate verify failed"):
            connect(application)
