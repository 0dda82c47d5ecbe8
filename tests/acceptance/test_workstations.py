"""A fleet and its drones that go away during their work and come back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from drone.model.scripted.server import ScriptedServer
from tests.support import wait_until
from tests.support.repositories import calc_project
from tests.support.transcripts import transcript_problems
from tests.support.whole_fleet import WholeFleet

pytestmark = [pytest.mark.campaign, pytest.mark.chaos, pytest.mark.timeout(300), pytest.mark.apart]


def test_a_fleet_and_its_drones_that_are_stopped_and_started_go_on_with_all_that_they_had(
    start_fleet: Callable[..., WholeFleet], model: ScriptedServer, tmp_path: Path
) -> None:
    fleet = start_fleet()
    fleet.add_work(model.url, f"file://{calc_project(tmp_path / 'calc.git')}")
    mila = fleet.workstation("mila", "--label", "gpu=yes")
    mila.start()
    fleet.online("mila", "local-1")
    assert mila.stop() == 0
    wait_until(lambda: fleet.json("drone", "show", "mila")["status"] == "offline")
    waiting = fleet.submit("Note it, script:note", "--drone", "mila")
    running = fleet.submit("Take your time, script:slow", "--drone", "local-1")["id"]
    queued = fleet.submit("Note it, script:note", "--drone", "local-1")["id"]
    wait_until(lambda: fleet.order(running)["status"] == "running")
    assert (waiting["status"], "offline" in waiting["reason"]) == ("assigned", True)

    assert fleet.stop() == 0
    fleet.start()
    mila.start()

    ended = {each: fleet.ended(each) for each in (running, queued, waiting["id"])}
    assert [(each["status"], each["drone"]) for each in ended.values()] == [
        ("succeeded", "local-1"),
        ("succeeded", "local-1"),
        ("succeeded", "mila"),
    ]
    by_label = fleet.ended(fleet.submit("Note it, script:note", "--label", "gpu=yes")["id"])
    assert by_label["drone"] == "mila"
    assert {drone["name"] for drone in fleet.json("drones")} == {"local-1", "mila"}
    # Events that the stopped run had not sent yet follow when its drone is back, maybe after the order has ended.
    wait_until(lambda: not transcript_problems(fleet.order(running)), seconds=60)
