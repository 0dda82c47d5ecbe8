"""A fleet is saved while it works, all but its workstation is destroyed, and it is restored to continue there."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from control_plane.contract.declarations import orders
from drone.model.scripted.server import ScriptedServer
from tests.support import wait_until
from tests.support.ending import kill_all
from tests.support.repositories import calc_project
from tests.support.whole_fleet import WholeFleet

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def fleet(start_fleet: Callable[..., WholeFleet], model: ScriptedServer, tmp_path: Path) -> WholeFleet:
    """A fleet with a drone of its own, and one on the workstation oka."""
    fleet = start_fleet(drones=1)
    fleet.add_work(model.url, f"file://{calc_project(tmp_path / 'calc.git')}")
    fleet.workstation("oka").start()
    fleet.online("local-1", "oka")
    return fleet


def test_a_fleet_is_restored_to_an_empty_machine_with_its_history_and_its_running_orders_continue(
    fleet: WholeFleet, tmp_path: Path
) -> None:
    backup = str(tmp_path / "backup")
    before = fleet.ended(fleet.submit("Fix the test, script:fix")["id"])
    log = _log(fleet, before)
    on_oka = fleet.submit("Wait for it, script:gate", "--drone", "oka")["id"]
    _running(fleet, on_oka)
    on_its_own = fleet.submit("Three steps, script:three")["id"]
    saved, occupied = fleet.json("backup", backup), fleet.fleet("restore", backup)
    assert (occupied.returncode, "E-UP-RUNNING" in occupied.stderr) == (4, True)
    (tmp_path / "kept.key").write_text((fleet.data / "master.key").read_text())
    _destroy(fleet)

    refused = fleet.fleet("restore", backup)
    assert (refused.returncode, "E-RESTORE-KEY" in refused.stderr, fleet.data.exists()) == (2, True, False)
    checked = fleet.json("backup", "check", backup)
    restored = fleet.json("restore", backup, "--key-file", str(tmp_path / "kept.key"))
    fleet.start()

    assert saved["rows"] == checked["rows"] == restored["rows"]
    after = fleet.order(before["id"])
    kept = ("steps", "patch", "runs", "status", "branch")
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    assert _log(fleet, after) == log
    fleet.online("local-1", "oka", seconds=90)
    continued = _through_gate(fleet, on_oka)
    assert (continued["status"], len(continued["runs"])) == ("succeeded", 1)
    assert fleet.ended(on_its_own)["status"] == "succeeded"
    second = fleet.ended(fleet.submit("Fix the test, script:fix", "--drone", "local-1")["id"])
    assert second["status"] == "succeeded"


@pytest.mark.long
def test_runs_that_the_backup_does_not_know_end_and_what_they_did_is_done_again(
    fleet: WholeFleet, tmp_path: Path
) -> None:
    blocking = fleet.submit("Wait for it, script:gate", "--drone", "oka")["id"]
    _running(fleet, blocking)
    queued = fleet.submit("Note it, script:note", "--drone", "oka")["id"]
    wait_until(lambda: fleet.order(queued)["status"] == "assigned")
    fleet.json("backup", str(tmp_path / "backup"), "--with-keys")
    assert (_through_gate(fleet, blocking)["status"], fleet.ended(queued)["status"]) == ("succeeded", "succeeded")
    unknown = fleet.submit("Hold, script:hold", "--drone", "oka")["id"]
    _running(fleet, unknown)

    _destroy(fleet)
    fleet.json("restore", str(tmp_path / "backup"))
    fleet.start()

    # The drone has one slot, which the unknown run has until it is ended.
    resumed = _through_gate(fleet, blocking, seconds=240)
    assert resumed["status"] == "succeeded", resumed
    done_again = fleet.ended(queued, seconds=240)
    assert (done_again["status"], done_again["patch"].count("\n+noted")) == ("succeeded", 1)
    assert fleet.fleet("show", unknown).returncode == 3


def _destroy(fleet: WholeFleet) -> None:
    """Kill the control plane with its broker, and delete all of its files."""
    kill_all(fleet.process)
    shutil.rmtree(fleet.root / "fleet home")


def _running(fleet: WholeFleet, order_id: str) -> None:
    """Return once the order's first command runs."""
    with fleet.client() as client:
        wait_until(lambda: client.call(orders.SHOW, order_id=order_id)["doing"].startswith("shell"), seconds=60)


def _through_gate(fleet: WholeFleet, order_id: str, seconds: float = 120) -> dict[str, Any]:
    """Let the command of `script:gate` end, as soon as it waits for that; returns the order once it has ended."""
    home = Path(fleet.workstations[0].environment["DRONE_HOME"])
    session = fleet.order(order_id)["session"]

    def ended() -> Any:
        order = fleet.order(order_id)
        # Not before: a drone that empties the workspace at that moment finds it not empty.
        if "shell" in order["doing"]:
            for work in home.glob(f"workspace/sessions/{session}/work"):
                (work / "go").touch()
        return order["status"] in {"succeeded", "failed", "canceled"} and order

    return dict(wait_until(ended, seconds=seconds, every=0.5))


def _log(fleet: WholeFleet, order: dict[str, Any]) -> str:
    first = next(step["seq"] for step in order["steps"] if step["kind"] == "tool_result")
    return fleet.fleet("show", order["id"], "--log", str(first)).stdout
