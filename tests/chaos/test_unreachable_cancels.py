"""Cancels of runs whose drone is unreachable: the order says so, and the missing receipt follows later."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from control_plane.collector import Collector
from control_plane.contract.declarations import drones, orders, projects, providers, tokens
from control_plane.contract.declarations.orders import CancelRequest
from control_plane.contract.declarations.projects import ProjectRequest
from control_plane.contract.declarations.providers import ProviderRequest
from control_plane.contract.declarations.tokens import JoinTokenRequest
from control_plane.supervisor import Supervisor
from shared import names
from tests.support import wait_until
from tests.support.drones import worker_below
from tests.support.fleet import Api
from tests.support.planes import QUICK
from tests.support.runs import shell
from tests.support.sandboxes import processes_with
from tests.support.scripted import ScriptedFactory
from tests.support.whole_fleet import WorkstationDrone

pytestmark = [pytest.mark.campaign, pytest.mark.chaos, pytest.mark.timeout(240)]
LOST_AFTER = 7.0
"""Longer than the interval between beats, and much shorter than in production."""


@pytest.fixture
def fleet(api: Api) -> Iterator[Api]:
    """A control plane that soon gives up on a drone without a lease."""
    parts = (
        Collector(api.core, names.new_id(), QUICK),
        Supervisor(api.core, names.new_id(), replace(QUICK, lost_after=LOST_AFTER)),
    )
    for part in parts:
        part.start()
    yield api
    for part in parts:
        part.stop()


@pytest.fixture
def drone(fleet: Api, tmp_path: Path) -> Iterator[WorkstationDrone]:
    """A drone, registered and started as on any workstation."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("FLEET_", "DRONE_"))}
    environment = {**inherited, "HOME": str(tmp_path), "DRONE_HOME": str(tmp_path / "drone")}
    made = WorkstationDrone("oka", environment, tmp_path / "drone.log")
    token = fleet.client.call(tokens.CREATE_JOIN, JoinTokenRequest())["token"]
    done = made.run("register", "--url", fleet.url, "--token", token, "--name", "oka")
    assert done.returncode == 0, done.stderr
    made.start()
    yield made
    made.stop()


def test_a_killed_drone_sends_the_missing_receipt_when_it_is_started_again(
    fleet: Api, drone: WorkstationDrone, repository: Path, scripted: ScriptedFactory
) -> None:
    order_id, number = running(fleet, repository, scripted)
    kill(drone)
    cancel(fleet, order_id)
    canceled_unreachable(fleet, order_id)
    drone.start()
    assert "the drone restarted" not in complete(fleet, order_id, number)["reason"]


@pytest.mark.long
def test_a_drone_that_is_back_before_it_is_given_up_ends_the_cancel_with_its_receipt(
    fleet: Api, drone: WorkstationDrone, repository: Path, scripted: ScriptedFactory
) -> None:
    order_id, number = running(fleet, repository, scripted)
    kill(drone)
    assert cancel(fleet, order_id)["status"] == "canceling"
    drone.start()
    assert complete(fleet, order_id, number)["reason"].endswith("the run was lost when the drone restarted")


def cancel(fleet: Api, order_id: str) -> dict[str, Any]:
    return fleet.client.call(orders.CANCEL, CancelRequest(reason="enough"), order_id=order_id)


def running(fleet: Api, repository: Path, scripted: ScriptedFactory) -> tuple[str, str]:
    """Submit an order; once its command runs, return the order's id and the command's unique sleep duration."""
    number = f"1{int(names.new_id(), 16) % 100_000_000}.5"
    model = scripted([shell(f"setsid sleep {number} & sleep {number}"), {"text": "Done."}])
    fleet.client.call(providers.ADD, ProviderRequest(name="scripted", model="openai/scripted", api_base=model.url))
    fleet.client.call(projects.ADD, ProjectRequest(slug="demo", git_url=f"file://{repository}", provider="scripted"))
    order_id = str(fleet.submit()["id"])
    wait_until(lambda: len(processes_with(number)) == 2, seconds=90)
    wait_until(lambda: fleet.client.call(orders.SHOW, order_id=order_id)["status"] == "running")
    return order_id, number


def canceled_unreachable(fleet: Api, order_id: str) -> None:
    """Delete the drone's lease, which would last a minute, and wait until the order is canceled without its receipt."""
    drone_id = fleet.client.call(drones.SHOW, name="oka")["id"]
    fleet.core.broker.redis.delete(names.lease_key(drone_id))

    order = with_receipt(fleet, order_id, of_the_drone=False)
    assert (order["status"], order["receipt"]["survivors"]) == ("canceled", 0)


def complete(fleet: Api, order_id: str, number: str) -> dict[str, Any]:
    """The order, once it has the receipt that the drone itself sends: nothing was left, and nothing is."""
    order = with_receipt(fleet, order_id, of_the_drone=True)
    receipt = order["receipt"]
    assert receipt["found"] == receipt["ended"] >= 2
    assert (order["status"], receipt["survivors"], processes_with(number)) == ("canceled", 0, [])
    return order


def with_receipt(fleet: Api, order_id: str, *, of_the_drone: bool) -> dict[str, Any]:
    def there() -> dict[str, Any] | None:
        order: dict[str, Any] = fleet.client.call(orders.SHOW, order_id=order_id)
        receipt = order["receipt"]
        return order if receipt and bool(receipt.get("unreachable_since")) != of_the_drone else None

    return wait_until(there, seconds=90)  # type: ignore[return-value]


def kill(drone: WorkstationDrone) -> None:
    """Kill the drone's own two processes, as a crash would; the run's process is not killed."""
    assert drone.process is not None
    worker = worker_below(drone.process.pid)
    drone.process.kill()
    worker.kill()
    drone.process.wait(10)
    wait_until(lambda: not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE)
