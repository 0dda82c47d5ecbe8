"""The HTTP interface with a real Flower behind it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
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
    """Flower behind a control plane, as an admin's browser reads it."""

    api: Api

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

    def answers(self) -> bool:
        with self.api.http() as admin:
            return admin.get("/flower/api/workers").status_code == 200

    def _json(self, path: str) -> Any:
        with self.api.http() as admin:
            return admin.get(f"/flower{path}").raise_for_status().json()


@contextmanager
def flower_behind_api(database: str, valkey: BrokerServer, core_factory: CoreFactory) -> Iterator[RunningFlower]:
    """The HTTP interface on SQLite, and Flower behind it as `fleet flower` starts it, ready for requests and events."""
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
        command = [*module_command("control_plane.cli.main"), "flower", "--port", str(port)]
        process = subprocess.Popen(command, env=environment, stdout=sys.stderr)
        try:
            flower = RunningFlower(api)
            wait_until(flower.answers)
            # The control plane has a pattern of its own.
            wait_until(lambda: api.core.broker.redis.pubsub_numpat() == 2)
            yield flower
        finally:
            process.kill()
            process.wait(60)
