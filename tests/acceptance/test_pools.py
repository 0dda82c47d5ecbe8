"""A fleet without drones, whose pool grows with a burst of orders and is empty again after it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from control_plane.contract.client.fleet import FleetClient
from control_plane.contract.declarations import orders
from control_plane.contract.declarations.orders import OrderFilter, SubmitRequest
from drone.model.scripted.server import ScriptedServer
from tests.acceptance.scripts import shell
from tests.support import wait_until
from tests.support.repositories import calc_project, git
from tests.support.scalers import StandInMachine, StandInScaler
from tests.support.whole_fleet import WholeFleet

pytestmark = pytest.mark.timeout(900)
SCRIPTS = {"default": [shell("sleep 4; sed -i 's/a - b/a + b/' calc.py"), {"text": "Solved."}]}
Make = Callable[..., StandInScaler]


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return calc_project(tmp_path_factory.mktemp("remote") / "calc.git")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory, remote: Path) -> Iterator[WholeFleet]:
    """A fleet without drones, with a project and a scripted model."""
    with ScriptedServer(SCRIPTS) as model, closing(WholeFleet(tmp_path_factory.mktemp("pools"), drones=0)) as fleet:
        fleet.start()
        fleet.add_work(model.url, remote.as_uri())
        yield fleet
        assert fleet.transcript_problems() == []


@pytest.fixture
def make_scaler(fleet: WholeFleet, tmp_path: Path) -> Iterator[Make]:
    """A function that makes a pool and a scaler for it."""
    made: list[StandInScaler] = []

    def make(pool: str, *options: str) -> StandInScaler:
        token = fleet.fleet("pool", "add", pool, "--max-drones", "2").stdout.strip()
        made.append(StandInScaler(fleet, pool, token, tmp_path / pool, options))
        return made[-1]

    yield make
    for scaler in made:
        scaler.close()


def burst(fleet: WholeFleet, number: int) -> list[str]:
    with fleet.client() as client:
        requests = (SubmitRequest(prompt=f"Fix it, number {each}", project="demo") for each in range(number))
        return [client.call(orders.SUBMIT, request)["id"] for request in requests]


def when_at_work(fleet: WholeFleet, scaler: StandInScaler) -> StandInMachine:
    """A machine whose drone's command has just begun, so that its run is not about to end."""
    with fleet.client() as client:
        return wait_until(partial(at_work, scaler, client), seconds=120, every=0.1)


def at_work(scaler: StandInScaler, client: FleetClient) -> StandInMachine | None:
    for machine in filter(lambda each: each.name, scaler.running):
        # The steps tell it at once, what the order is doing is told by heartbeats.
        working = OrderFilter.model_validate({"status": "running", "drone": machine.name})
        for order in client.call(orders.LIST, working):
            if [step["kind"] for step in client.call(orders.SHOW, order_id=order["id"])["steps"][-1:]] == ["tool_call"]:
                return machine
    return None


def test_a_burst_on_an_empty_fleet_is_done_once_and_its_machines_leave_nothing_behind(
    fleet: WholeFleet, make_scaler: Make, remote: Path
) -> None:
    scaler = make_scaler("burst", "--idle", "10s")
    ids = burst(fleet, 4)
    waits = "waits for a drone of the pool burst (0 of at most 2 are there)"
    wait_until(lambda: {fleet.order(each)["reason"] for each in ids} == {waits})
    first = scaler.step()
    assert (first["waiting"], first["drones"], first["wanted"]) == (4, 0, 2)
    wait_until(lambda: scaler.step() and all(fleet.order(each)["ended_at"] for each in ids), seconds=600, every=2)

    shown = [fleet.order(each) for each in ids]
    assert {order["status"] for order in shown} == {"succeeded"}
    assert [[run["status"] for run in order["runs"]] for order in shown] == [["success"]] * 4
    branches = git(remote, "for-each-ref", "--format=%(refname:short)", "refs/heads/fleet").splitlines()
    assert {f"fleet/{each}" for each in ids} <= {*branches}
    assert scaler.most == 2

    wait_until(lambda: not scaler.running, seconds=300, every=1)
    assert {each.process.returncode for each in scaler.machines} == {0}
    assert [path for each in scaler.machines for path in each.left] == []
    assert (fleet.json("drones"), fleet.json("pool", "show", "burst")["drones"]) == ([], 0)
    fleet.json("pool", "rm", "burst", "--yes")


def test_a_machine_leaves_after_its_order_after_a_signal_and_after_its_pool_and_unregisters(
    fleet: WholeFleet, make_scaler: Make
) -> None:
    once = make_scaler("once", "--orders", "1", "--idle", "10m")
    (first,) = burst(fleet, 1)
    machine = once.start()
    assert machine.process.wait(120) == 0
    assert "took 1 order: leaving" in machine.log.read_text()

    scaler = make_scaler("stays", "--idle", "10m")
    (second,) = burst(fleet, 1)
    gives_back = scaler.start()
    when_at_work(fleet, scaler)
    gives_back.process.send_signal(signal.SIGQUIT)
    assert gives_back.process.wait(120) == 0
    assert fleet.json("drones") == []
    finishes = scaler.start()
    when_at_work(fleet, scaler)
    finishes.process.send_signal(signal.SIGTERM)
    assert finishes.process.wait(120) == 0
    assert f"unregistered {finishes.name}" in finishes.log.read_text()
    ended = [fleet.ended(each) for each in (first, second)]
    assert [(order["status"], len(order["runs"])) for order in ended] == [("succeeded", 1), ("succeeded", 2)]

    idle = scaler.start()
    wait_until(lambda: [each["status"] for each in fleet.json("drones")] == ["online"], seconds=90, every=0.5)
    removed = fleet.fleet("pool", "rm", "stays", "--yes")
    assert removed.stderr.strip() == "pool stays removed; drones that finish their runs and leave: 1"
    assert idle.process.wait(60) == 0
    assert fleet.json("drones") == []
