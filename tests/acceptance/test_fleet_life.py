"""A drone is drained while it runs an order and others wait for it, and resumed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from control_plane.contract.declarations import drones, orders
from control_plane.contract.declarations.orders import SubmitRequest
from drone.model.scripted.server import ScriptedServer
from tests.support import wait_until
from tests.support.repositories import calc_project
from tests.support.whole_fleet import WholeFleet

pytestmark = [pytest.mark.timeout(300), pytest.mark.long]


@pytest.fixture
def remote(tmp_path: Path) -> str:
    return f"file://{calc_project(tmp_path / 'calc.git')}"


def test_a_drained_drone_finishes_what_it_runs_and_keeps_only_what_named_it_until_it_resumes(
    start_fleet: Callable[..., WholeFleet], model: ScriptedServer, remote: str
) -> None:
    fleet, running, free, named = one_runs_and_two_wait(start_fleet, model, remote)
    assert fleet.json("drone", "drain", "oka")["status"] == "draining"
    wait_until(lambda: "oka is draining (next: fleet drone resume oka)" in fleet.order(free)["reason"])
    wait_until(lambda: "waiting in oka's queue: the drone is draining" in fleet.order(named)["reason"])
    fleet.workstation("mila").start()
    moved, finished = fleet.ended(free), fleet.ended(running)
    assert [(each["status"], each["drone"]) for each in (moved, finished)] == [
        ("succeeded", "mila"),
        ("succeeded", "oka"),
    ]
    assert fleet.order(named)["status"] == "assigned"
    assert fleet.json("drone", "resume", "oka")["draining"] is False
    assert (fleet.ended(named)["drone"], fleet.order(named)["status"]) == ("oka", "succeeded")


def one_runs_and_two_wait(
    start_fleet: Callable[..., WholeFleet], model: ScriptedServer, remote: str
) -> tuple[WholeFleet, str, str, str]:
    """A drone in the third of three steps; its queue holds an order for any drone and an order for this drone."""
    fleet = start_fleet(drones=0)
    fleet.add_work(model.url, remote)
    fleet.workstation("oka").start()
    fleet.online("oka")
    with fleet.client() as client:
        running = client.call(
            orders.SUBMIT, SubmitRequest(prompt="Two steps and a long one, script:nap", project="demo")
        )["id"]
        wait_until(lambda: kinds(client.call(orders.SHOW, order_id=running)).count("tool_result") == 2, seconds=60)
        free = client.call(orders.SUBMIT, SubmitRequest(prompt="Note it, script:note", project="demo"))["id"]
        named = client.call(orders.SUBMIT, SubmitRequest(prompt="Note it, script:note", project="demo", drone="oka"))[
            "id"
        ]
        wait_until(lambda: client.call(drones.SHOW, name="oka")["queued"] == 2)
    return fleet, running, free, named


def kinds(order: dict[str, Any]) -> list[str]:
    return [step["kind"] for step in order["steps"]]
