"""`serve` as a process: it comes up, does its parts, and stops cleanly; what is missing is said in one sentence."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from control_plane.db.engine import Database
from control_plane.db.installation import Lease
from tests.support import HeldPort, free_port, wait_until, warm_processes
from tests.support.broker import BrokerServer

ROOT = Path(__file__).parents[3]


class Served:
    """One `serve` in a process of its own."""

    def __init__(
        self, directory: Path, *, database_url: str, broker_url: str, role: str = "all", port: int | None = None
    ) -> None:
        self.port = port or free_port()
        self.log = directory / f"{role}.log"
        settings = {
            "FLEET_DATABASE_URL": database_url,
            "FLEET_BROKER_URL": broker_url,
            "FLEET_MASTER_KEY_FILE": str(directory / "master.key"),
            "FLEET_BLOB_DIR": str(directory / "blobs"),
            "FLEET_PORT": str(self.port),
        }
        with self.log.open("wb") as log:
            self.process = warm_processes.popen(
                [sys.executable, "-m", "tests.support.serving", role],
                stdout=log,
                stderr=log,
                cwd=ROOT,
                env={**os.environ, **settings},
            )

    def healthy(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        try:
            return httpx.get(f"http://127.0.0.1:{self.port}/api/v1/health", verify=False).json()["status"] == "ok"
        except httpx.HTTPError:
            return False

    def says(self, text: str) -> bool:
        return text in self.log.read_text()


@contextmanager
def serving(directory: Path, **options: Any) -> Iterator[Served]:
    served = Served(directory, **options)
    try:
        yield served
    finally:
        served.process.kill()
        served.process.wait()


def owners(database_url: str) -> list[str]:
    database = Database(database_url)
    with database.read() as db:
        found = [owner.name for owner in db.query(Lease)]
    database.dispose()
    return found


def test_it_brings_an_empty_database_up_to_date_serves_all_parts_and_stops_cleanly(
    tmp_path: Path, empty_database_url: str, valkey: BrokerServer
) -> None:
    with serving(tmp_path, database_url=empty_database_url, broker_url=valkey.url) as served:
        wait_until(served.healthy, seconds=60)
        wait_until(lambda: "leader" in owners(empty_database_url))
        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(60) == 0
    assert owners(empty_database_url) == []
    assert served.says("was upgraded")
    assert not served.says("Traceback")


def test_each_part_serves_alone_and_stops_at_a_ctrl_c(tmp_path: Path, sqlite_url: str, valkey: BrokerServer) -> None:
    where = {"database_url": sqlite_url, "broker_url": valkey.url}
    with (
        serving(tmp_path, **where, role="collector") as collector,
        serving(tmp_path, **where, role="supervisor") as supervisor,
    ):
        for served in (collector, supervisor):
            wait_until(lambda part=served: part.says("serving"), seconds=60)
            served.process.send_signal(signal.SIGINT)
            assert served.process.wait(60) == 0
            assert not served.says("Traceback")


def test_without_a_broker_or_a_database_it_says_so_without_their_passwords_and_ends_with_5(
    tmp_path: Path, sqlite_url: str, valkey: BrokerServer
) -> None:
    with HeldPort() as closed:
        no_broker = {"database_url": sqlite_url, "broker_url": f"redis://control:secret@127.0.0.1:{closed}/0"}
        no_database = {"database_url": f"postgresql://fleet:secret@127.0.0.1:{closed}/fleet", "broker_url": valkey.url}
        for settings in (no_broker, no_database):
            with serving(tmp_path, **settings) as served:
                assert served.process.wait(60) == 5
            assert served.says("does not answer")
            assert not served.says("secret")
            assert not served.says("Traceback")


def test_a_port_that_is_taken_is_named(tmp_path: Path, sqlite_url: str, valkey: BrokerServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with serving(tmp_path, database_url=sqlite_url, broker_url=valkey.url, port=port) as served:
            assert served.process.wait(60) == 4
    assert served.says(f"cannot listen on 127.0.0.1 port {port}")
