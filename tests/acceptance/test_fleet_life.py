"""A drone is drained while it runs an order and others wait for it, and resumed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from drone.model.scripted.server import ScriptedServer
from tests.support import wait_until
from tests.support.repositories import calc_project
from tests.support.whole_fleet import WholeFleet

pytestmark = [pytest.mark.timeout(300), pytest.mark.long]


def test_a_drained_drone_finishes_what_it_runs_and_keeps_only_what_named_it_until_it_resumes(
    start_fleet: Callable[..., WholeFleet], model: ScriptedServer, tmp_path: Path
) -> None:
    fleet = start_fleet(drones=0)
    fleet.add_work(model.url, calc_project(tmp_path / "calc.git").as_uri())
    fleet.workstation("oka").start()
    running = fleet.submit("Two steps and a long one, script:nap")["id"]
    wait_until(lambda: [step["kind"] for step in fleet.order(running)["steps"]].count("tool_result") == 2)
    free = fleet.submit("Note it, script:note")["id"]
    named = fleet.submit("Note it, script:note", "--drone", "oka")["id"]

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
