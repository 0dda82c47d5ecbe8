"""A fleet without drones, whose pool grows with a burst of orders and is empty again after it."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from control_plane.client.fleet import FleetClient
from drone.model.scripted.server import ScriptedServer
from tests.acceptance.scripts import shell
from tests.acceptance.test_batch_faults import is_working, lost_runs
from tests.acceptance.test_questions_cli import killed
from tests.support import wait_until
from tests.support.repositories import calc_project, git
from tests.support.scalers import StandInMachine, StandInScaler
from tests.support.whole_fleet import WholeFleet

pytestmark = [pytest.mark.timeout(900), pytest.mark.apart]
SCRIPTS = {"default": [shell("sleep 4; sed -i 's/a - b/a + b/' calc.py"), {"text": "Solved."}]}
Make = Callable[..., StandInScaler]


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return calc_project(tmp_path / "calc.git")


@pytest.fixture
def fleet(start_fleet: Callable[..., WholeFleet], remote: Path) -> Iterator[WholeFleet]:
    """A fleet without drones, with a project and a scripted model."""
    with ScriptedServer(SCRIPTS) as model:
        fleet = start_fleet(drones=0)
        fleet.add_work(model.url, f"file://{remote}")
        yield fleet


@pytest.fixture
def make_scaler(fleet: WholeFleet, tmp_path: Path) -> Iterator[Make]:
    """A function that makes a pool and a scaler for it."""
    made: list[StandInScaler] = []

    def make(*options: str, at_most: int = 20, pool: str = "burst") -> StandInScaler:
        token = fleet.fleet("pool", "add", pool, "--max-drones", str(at_most)).stdout.strip()
        made.append(StandInScaler(fleet, pool, token, tmp_path / pool, options))
        return made[-1]

    yield make
    for scaler in made:
        scaler.close()


def burst(fleet: WholeFleet, number: int) -> list[str]:
    with fleet.client() as client:
        requests = ({"prompt": f"Fix it, number {each}", "project": "demo"} for each in range(number))
        return [client.submit(request)["id"] for request in requests]


def kill_at_work(fleet: WholeFleet, scaler: StandInScaler, number: int) -> list[str]:
    """Kill so many machines, each while a command of its run is at work; returns the names of their drones."""
    names = []
    with fleet.client() as client:
        for _ in range(number):
            machine = wait_until(partial(at_work, scaler, client), seconds=120, every=0.1)
            killed(machine.process)
            names.append(machine.name)
    return names


def at_work(scaler: StandInScaler, client: FleetClient) -> StandInMachine | None:
    """A machine whose drone's command has just begun."""
    return next((each for each in scaler.running if each.name and is_working(client, each.name)), None)


def test_a_burst_on_an_empty_fleet_is_done_once_although_machines_are_taken_away(
    fleet: WholeFleet, make_scaler: Make, remote: Path
) -> None:
    do_burst(fleet, make_scaler("--idle", "20s", at_most=5), remote, (5, 15, 2))


@pytest.mark.long
@pytest.mark.timeout(5400)
def test_after_a_large_burst_the_board_is_empty(fleet: WholeFleet, make_scaler: Make, remote: Path) -> None:
    do_burst(fleet, make_scaler("--idle", "60s"), remote, (20, 100, 5))
    # Those that were killed are removed after ten minutes.
    wait_until(lambda: fleet.json("drones") == [], seconds=800, every=5)


def do_burst(fleet: WholeFleet, scaler: StandInScaler, remote: Path, numbers: tuple[int, int, int]) -> None:
    """Let a pool grow to its maximum for a burst of orders, kill some of its machines, and wait until all have left.

    `numbers`: the maximum, the orders, the machines that are killed.
    """
    at_most, orders, kills = numbers
    ids = burst(fleet, orders)
    waits = f"waits for a drone of the pool burst (0 of at most {at_most} are there)"
    wait_until(lambda: {fleet.order(each)["reason"] for each in ids} == {waits}, seconds=60)
    first = scaler.step()
    assert (first["waiting"], first["drones"], first["wanted"]) == (orders, 0, at_most)

    wait_until(lambda: scaler.step()["drones"] == at_most, seconds=600, every=1)
    taken = kill_at_work(fleet, scaler, kills)
    ends = {"succeeded", "failed", "canceled"}
    wait_until(
        lambda: scaler.step() and all(fleet.order(each)["status"] in ends for each in ids), seconds=3000, every=2
    )

    shown = [fleet.order(each) for each in ids]
    assert {order["status"] for order in shown} == {"succeeded"}
    assert [sum(run["status"] == "success" for run in order["runs"]) for order in shown] == [1] * orders
    assert sorted(lost_runs(fleet, ids)) == sorted(taken)
    branches = git(remote, "for-each-ref", "--format=%(refname:short)", "refs/heads/fleet").splitlines()
    assert sorted(branches) == sorted(f"fleet/{each}" for each in ids)
    assert scaler.most <= at_most

    wait_until(lambda: not scaler.running, seconds=300, every=1)
    left = [each for each in scaler.machines if each.name and each.name not in taken]
    assert {each.process.returncode for each in left} == {0}
    assert [path for each in left for path in each.left] == []
    assert {each["name"] for each in fleet.json("drones")} <= set(taken)
    wait_until(lambda: fleet.json("pool", "show", "burst")["drones"] == 0, seconds=90, every=1)


def test_a_machine_for_one_order_leaves_after_it_and_the_next_order_gets_another(
    fleet: WholeFleet, make_scaler: Make
) -> None:
    scaler = make_scaler("--orders", "1", "--idle", "10m", at_most=1)
    first, second = burst(fleet, 2)
    ended = []
    for order_id in (first, second):
        wait_until(lambda: scaler.step() and scaler.running, seconds=60, every=0.5)
        machine = scaler.running[0]
        assert machine.process.wait(120) == 0
        assert "took 1 order: leaving" in machine.log.read_text()
        ended.append(fleet.ended(order_id))
    assert [order["status"] for order in ended] == ["succeeded", "succeeded"]
    assert [len(order["runs"]) for order in ended] == [1, 1]
    assert ended[0]["drone"] != ended[1]["drone"]
    assert fleet.json("drones") == []


def test_a_machine_that_is_to_stop_finishes_its_run_and_unregisters(fleet: WholeFleet, make_scaler: Make) -> None:
    scaler = make_scaler("--idle", "10m")
    (order_id,) = burst(fleet, 1)
    machine = scaler.start()
    with fleet.client() as client:
        wait_until(partial(at_work, scaler, client), seconds=90, every=0.1)
    machine.process.send_signal(signal.SIGTERM)
    assert machine.process.wait(120) == 0
    order = fleet.ended(order_id)
    assert (order["status"], len(order["runs"])) == ("succeeded", 1)
    assert f"unregistered {machine.name}" in machine.log.read_text()
    assert fleet.json("drones") == []


def test_a_machine_whose_orders_are_given_back_unregisters_and_another_continues(
    fleet: WholeFleet, make_scaler: Make
) -> None:
    scaler = make_scaler("--idle", "10m")
    (order_id,) = burst(fleet, 1)
    machine = scaler.start()
    with fleet.client() as client:
        wait_until(partial(at_work, scaler, client), seconds=90, every=0.1)
    machine.process.send_signal(signal.SIGQUIT)
    assert machine.process.wait(120) == 0
    assert fleet.json("drones") == []
    other = scaler.start()
    assert fleet.ended(order_id)["status"] == "succeeded"
    other.process.send_signal(signal.SIGTERM)
    assert other.process.wait(120) == 0


def test_a_removed_pool_lets_its_machines_leave(fleet: WholeFleet, make_scaler: Make) -> None:
    scaler = make_scaler("--idle", "10m")
    machine = scaler.start()
    wait_until(lambda: [each["status"] for each in fleet.json("drones")] == ["online"], seconds=90, every=0.5)
    assert fleet.json("drones")[0]["pool"] == "burst"
    removed = fleet.fleet("pool", "rm", "burst", "--yes")
    assert removed.stderr.strip() == "pool burst removed; drones that finish their runs and leave: 1"
    assert machine.process.wait(60) == 0
    assert "drained by the control plane: leaving" in machine.log.read_text()
    assert fleet.json("drones") == []
