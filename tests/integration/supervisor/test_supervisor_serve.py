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


def test_what_is_missing_or_taken_is_said_without_a_password(
    tmp_path: Path, sqlite_url: str, valkey: BrokerServer
) -> None:
    there = {"database_url": sqlite_url, "broker_url": valkey.url}
    with HeldPort() as closed, socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        cases = (
            ({"broker_url": f"redis://control:secret@127.0.0.1:{closed}/0"}, 5, "does not answer"),
            ({"database_url": f"postgresql://fleet:secret@127.0.0.1:{closed}/fleet"}, 5, "does not answer"),
            ({"port": port}, 4, f"cannot listen on 127.0.0.1 port {port}"),
        )
        for settings, code, said in cases:
            with serving(tmp_path, **{**there, **settings}) as served:
                assert served.process.wait(60) == code
            assert (served.says(said), served.says("secret"), served.says("Traceback")) == (True, False, False)
