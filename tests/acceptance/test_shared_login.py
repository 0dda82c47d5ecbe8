"""A broker on which no users can be created: refused by default, and usable by a setting that names what it is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from control_plane.broker.valkey_config import program
from drone.model.scripted.server import ScriptedServer
from tests.support import wait_until, warm_processes
from tests.support.broker import PASSWORD, BrokerServer
from tests.support.repositories import calc_project
from tests.support.warm_processes import DRONE, FLEET
from tests.support.whole_fleet import ExternalFleet, external_fleet

pytestmark = [pytest.mark.timeout(240), pytest.mark.apart]


@pytest.fixture
def fleet(tmp_path: Path, empty_database_url: str) -> Iterator[ExternalFleet]:
    """A control plane that does not run yet, with a broker as some providers offer it: without the command ACL."""
    broker = BrokerServer(tmp_path / "broker", program())
    broker.options = ("--rename-command", "ACL", "")
    with closing(broker):
        broker.start()
        with external_fleet(tmp_path, empty_database_url, broker) as fleet:
            yield fleet


@contextmanager
def served(fleet: ExternalFleet) -> Iterator[None]:
    with (fleet.root / "serve.log").open("ab") as log:
        process = warm_processes.popen([*FLEET, "serve"], env=fleet.environment, stdout=log, stderr=log)
    try:
        wait_until(lambda: fleet.fleet("drones").returncode == 0, every=0.5)
        yield
    finally:
        process.terminate()
        process.wait(60)


def test_drones_share_a_login_only_with_the_setting_that_the_error_names_and_everybody_is_told(
    fleet: ExternalFleet, model: ScriptedServer, tmp_path: Path
) -> None:
    with served(fleet):
        token = fleet.fleet("token", "add").stdout.strip()
        environment = {**fleet.environment, "DRONE_HOME": str(tmp_path / "mila")}
        refused = warm_processes.run([*DRONE, "register", "--url", fleet.url, "--token", token], environment)
        assert (refused.returncode != 0, "FLEET_SHARED_BROKER_LOGIN" in refused.stderr) == (True, True)
        assert fleet.json("drones") == []

    fleet.variables["FLEET_SHARED_BROKER_LOGIN"] = f"control:{PASSWORD}"
    with served(fleet):
        fleet.add_work(model.url, f"file://{calc_project(tmp_path / 'calc.git')}")
        mila = fleet.workstation("mila")
        mila.start()
        assert fleet.ended(fleet.submit("Note it, script:note")["id"])["status"] == "succeeded"
        assert "share one login" in fleet.fleet("doctor").stdout
        examined = {each["code"]: each["state"] for each in json.loads(mila.run("doctor", "--json").stdout)["checks"]}
        assert examined["D-BROKER"] == "WARN"
        assert fleet.fleet("drone", "remove", "mila", "--yes").returncode == 0
