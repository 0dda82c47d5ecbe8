"""The HTTP interface with a real Flower behind it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from shared.own_programs import module_command
from tests.support import free_port, wait_until
from tests.support.broker import BrokerServer
from tests.support.database import CoreFactory
from tests.support.fleet import Api, api_on

PASSWORD = "flowers-own-password"


@contextmanager
def api_with_flower(database: str, valkey: BrokerServer, core_factory: CoreFactory) -> Iterator[Api]:
    """The HTTP interface on SQLite, and Flower as `fleet flower` starts it, ready for requests."""
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
        with subprocess.Popen(command, env=environment, stdout=sys.stderr) as process:
            try:
                with api.http() as admin:
                    wait_until(lambda: admin.get("/flower/api/workers").status_code == 200, seconds=40)
                yield api
            finally:
                process.kill()
