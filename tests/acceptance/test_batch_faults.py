"""A batch on a whole fleet whose control plane is killed twice and of whose four drones one is lost for good."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from control_plane.contract.client.fleet import FleetClient
from control_plane.contract.declarations import orders
from control_plane.contract.declarations.orders import OrderFilter
from drone.model.scripted.server import ScriptedServer
from tests.acceptance.scripts import shell
from tests.support import wait_until
from tests.support.ending import kill_all
from tests.support.repositories import calc_project, git
from tests.support.whole_fleet import WholeFleet

pytestmark = [pytest.mark.campaign, pytest.mark.chaos]
SCRIPTS = {"default": [shell("sleep 2; sed -i 's/a - b/a + b/' calc.py"), {"text": "Solved."}]}
SECONDS_PER_ROW = 10
SILENCE = 240
"""Seconds within which a silent drone is noticed (75), and its order has run on another."""


def has_ended(fleet: WholeFleet, rows: int) -> bool:
    """Whether the orders of so many rows have ended."""
    shown = fleet.json("batch", "show", "many")
    return bool(shown["succeeded"] + shown["failed"] + shown["canceled"] >= rows)


def is_working(client: FleetClient, name: str) -> bool:
    """Whether a command of this drone's run has just begun, so that the run is not about to end."""
    # The steps tell it at once, what the order is doing is told by heartbeats.
    listed = client.call(orders.LIST, OrderFilter.model_validate({"status": "running", "drone": name}))
    last = [client.call(orders.SHOW, order_id=order["id"])["steps"][-1:] for order in listed]
    return any(step["kind"] == "tool_call" for steps in last for step in steps)


def lost_runs(fleet: WholeFleet, order_ids: Sequence[str]) -> list[str]:
    """The drones whose runs of these orders were given up."""
    with fleet.client() as client:
        shown = [client.call(orders.SHOW, order_id=each) for each in order_ids]
    return [run["drone"] for order in shown for run in order["runs"] if run["status"] == "lost"]


@pytest.mark.parametrize(
    "number",
    [
        pytest.param(16, marks=pytest.mark.timeout(1500)),
        pytest.param(1000, marks=[pytest.mark.long, pytest.mark.timeout(9000)]),
    ],
)
def test_each_row_is_done_once_although_the_control_plane_is_killed_twice_and_a_drone_is_lost(
    start_fleet: Callable[..., WholeFleet], tmp_path: Path, number: int
) -> None:
    remote = calc_project(tmp_path / "calc.git")
    fleet = start_fleet(drones=0)
    stations = [fleet.workstation(name) for name in ("oka", "mila", "vida", "lost")]
    file = tmp_path / "many.jsonl"
    file.write_text("".join(f'{{"id": "row-{each}", "prompt": "Fix row {each}"}}\n' for each in range(number)))

    with ScriptedServer(SCRIPTS) as model:
        fleet.add_work(model.url, f"file://{remote}")
        for station in stations:
            station.start()
        fleet.json("batch", "run", str(file), "--project", "demo", "--parallel", "4", "--detach")
        for part in (1, 2):
            wait_until(partial(has_ended, fleet, part * number // 3), seconds=number * SECONDS_PER_ROW, every=1)
            if part == 1:
                with fleet.client() as client:
                    wait_until(partial(is_working, client, "lost"), seconds=60, every=0.02)
                kill_all(stations[-1].process)
            assert fleet.process is not None
            kill_all(fleet.process)
            fleet.start()
        wait_until(
            lambda: fleet.json("batch", "show", "many")["status"] == "finished",
            seconds=number * SECONDS_PER_ROW + SILENCE,
            every=1,
        )
        rows = [json.loads(line) for line in fleet.fleet("batch", "results", "many").stdout.splitlines()]
        assert [row["id"] for row in rows] == [f"row-{each}" for each in range(number)]
        assert {row["state"] for row in rows} == {"succeeded"}
        assert len({row["order"] for row in rows}) == number
        assert lost_runs(fleet, [row["order"] for row in rows]) == ["lost"]
        branches = git(remote, "for-each-ref", "--format=%(refname:short)", "refs/heads/fleet").splitlines()
        assert sorted(branches) == sorted(f"fleet/{row['order']}" for row in rows)
