"""A broker on which no users can be created: refused by default, and usable by a setting that names what it is."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from drone.model.scripted.server import ScriptedServer
from tests.support import free_port, needs, wait_until, warm_processes
from tests.support.repositories import calc_project
from tests.support.warm_processes import DRONE, FLEET
from tests.support.whole_fleet import ExternalFleet

pytestmark = [pytest.mark.timeout(240), pytest.mark.apart]

PASSWORD = "of-all"


@pytest.fixture
def broker_port(tmp_path: Path) -> Iterator[int]:
    """A Redis as some providers offer it: one password, and no ACL command."""
    needs("redis-server")
    port = free_port()
    words = f"--port {port} --bind 127.0.0.1 --requirepass {PASSWORD} --rename-command ACL".split()
    with (tmp_path / "redis.log").open("wb") as log:
        command = [str(shutil.which("redis-server")), *words, "", "--save", "", "--dir", str(tmp_path)]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    wait_until(lambda: "Ready to accept" in (tmp_path / "redis.log").read_text())
    yield port
    process.terminate()
    process.wait(60)


@pytest.fixture
def fleet(tmp_path: Path, broker_port: int) -> Iterator[ExternalFleet]:
    """A control plane set up by its commands; it does not run yet."""
    port = free_port()
    variables = {
        "FLEET_DATABASE_URL": f"sqlite:///{tmp_path / 'fleet.db'}",
        "FLEET_BROKER_URL": f"redis://:{PASSWORD}@127.0.0.1:{broker_port}/0",
        "FLEET_MASTER_KEY_FILE": str(tmp_path / "master.key"),
        "FLEET_BLOB_DIR": str(tmp_path / "blobs"),
        "FLEET_PORT": str(port),
        "FLEET_URL": f"http://127.0.0.1:{port}",
    }
    fleet = ExternalFleet(tmp_path / "external", variables=variables)
    fleet.root.mkdir()
    assert fleet.fleet("db", "upgrade").returncode == 0
    fleet.variables["FLEET_API_TOKEN"] = fleet.fleet("api-token", "add", "--bootstrap").stdout.strip()
    yield fleet
    fleet.close()


def _serve(stack: ExitStack, fleet: ExternalFleet) -> None:
    log = stack.enter_context((fleet.root / "serve.log").open("ab"))
    process = warm_processes.popen([*FLEET, "serve"], env=fleet.environment, stdout=log, stderr=log)
    stack.callback(process.wait, 30)
    stack.callback(process.terminate)
    wait_until(lambda: fleet.fleet("drones").returncode == 0, seconds=60, every=0.5)


def test_drones_share_a_login_only_with_the_setting_that_the_error_names_and_everybody_is_told(
    fleet: ExternalFleet, model: ScriptedServer, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        _serve(stack, fleet)
        token = fleet.fleet("token", "add").stdout.strip()
        environment = {**fleet.environment, "DRONE_HOME": str(tmp_path / "mila")}
        command = [*DRONE, "register", "--url", fleet.url, "--token", token, "--name", "mila"]
        refused = warm_processes.run(command, environment)
        assert refused.returncode != 0
        assert "FLEET_SHARED_BROKER_LOGIN" in refused.stderr
        assert fleet.json("drones") == []

    fleet.variables["FLEET_SHARED_BROKER_LOGIN"] = f"default:{PASSWORD}"
    with ExitStack() as stack:
        _serve(stack, fleet)
        fleet.add_work(model.url, f"file://{calc_project(tmp_path / 'calc.git')}")
        mila = fleet.workstation("mila")
        mila.start()
        fleet.online("mila", seconds=60)
        assert fleet.ended(fleet.submit("Fix the test, script:fix")["id"])["status"] == "succeeded"
        assert "share one login" in fleet.fleet("doctor").stdout
        examined = {each["code"]: each for each in json.loads(mila.run("doctor", "--json").stdout)["checks"]}
        assert examined["D-BROKER"]["state"] == "WARN"
        assert fleet.fleet("drone", "remove", "mila", "--yes").returncode == 0
