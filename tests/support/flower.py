"""The HTTP interface with a real Flower behind it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from shared.own_programs import module_command
from tests.support import free_port, wait_until
from tests.support.broker import BrokerServer
from tests.support.database import CoreFactory
from tests.support.fleet import Api, api_on

PASSWORD = "flowers-own-password"


@dataclass
class RunningFlower:
    """Flower behind a control plane, as an admin's browser reads it. It may be ended and started again."""

    api: Api
    environment: Mapping[str, str]
    port: int
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it as `fleet flower` does, and wait until it answers and receives events; earlier ones are lost."""
        command = [*module_command("control_plane.cli.main"), "flower", "--port", str(self.port)]
        self.process = subprocess.Popen(command, env=self.environment, stdout=sys.stderr)
        wait_until(lambda: self._status("/api/workers") == 200)
        # The control plane has a pattern of its own.
        wait_until(lambda: self.api.core.broker.redis.pubsub_numpat() == 2)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(60)
            self.process = None

    def tasks(self) -> dict[str, Any]:
        """Every task of its JSON API, by run."""
        return dict(self._json("/api/tasks"))

    def states(self) -> dict[str, str]:
        return {run_id: task["state"] for run_id, task in self.tasks().items()}

    def counts(self) -> Counter[str]:
        """The events of tasks that its list of workers counts, over all workers."""
        found: Counter[str] = Counter()
        for worker in self.workers():
            found.update({kind: count for kind, count in worker.items() if kind.startswith("task-")})
        return found

    def workers(self) -> list[dict[str, Any]]:
        """Its list of workers."""
        return list(self._json("/workers?json=1")["data"])

    def _json(self, path: str) -> Any:
        with self.api.http() as admin:
            return admin.get(f"/flower{path}").raise_for_status().json()

    def _status(self, path: str) -> int:
        with self.api.http() as admin:
            return admin.get(f"/flower{path}").status_code


@contextmanager
def flower_behind_api(database: str, valkey: BrokerServer, core_factory: CoreFactory) -> Iterator[RunningFlower]:
    """The HTTP interface on SQLite, and Flower behind it, ready for requests."""
    port = free_port()
    upstream = f"http://127.0.0.1:{port}"
    with api_on(database, valkey, core_factory, flower_upstream=upstream, flower_password=PASSWORD) as api:
        environment = {
            **os.environ,
            "FLEET_DATABASE_URL": database,
            "FLEET_BROKER_URL": valkey.url,
            "FLEET_BLOB_DIR": str(api.core.blobs.root),
            "FLEET_FLOWER_UPSTREAM": upstream,
            "FLEET_FLOWER_PASSWORD": PASSWORD,
        }
        flower = RunningFlower(api, environment, port)
        try:
            flower.start()
            yield flower
        finally:
            flower.kill()


@contextmanager
def api_with_flower(database: str, valkey: BrokerServer, core_factory: CoreFactory) -> Iterator[Api]:
    """As `flower_behind_api`, for tests of the HTTP interface."""
    with flower_behind_api(database, valkey, core_factory) as flower:
        yield flower.api
