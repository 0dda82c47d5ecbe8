"""A provider's limit, with a whole fleet: orders on its drones stay below it, use it, and say what they wait for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from drone.model.scripted.server import ScriptedServer
from tests.support import wait_until
from tests.support.asking_drones import watch
from tests.support.endpoints import call, call_answer
from tests.support.limited_endpoint import LimitedEndpoint
from tests.support.repositories import calc_project
from tests.support.whole_fleet import WholeFleet

pytestmark = [pytest.mark.timeout(300), pytest.mark.long]


def test_orders_on_two_drones_stay_below_the_limit_and_say_what_they_wait_for(
    start_fleet: Callable[..., WholeFleet], model: ScriptedServer, tmp_path: Path
) -> None:
    fleet = start_fleet(drones=2)
    fleet.add_work(model.url, f"file://{calc_project(tmp_path / 'calc.git')}")
    assert fleet.fleet("provider", "edit", "scripted", "--rpm", "12").returncode == 0
    assert "12 requests per minute" in fleet.fleet("provider", "show", "scripted").stdout
    refused = fleet.fleet("provider", "edit", "scripted", "--rpm", "-1")
    assert (refused.returncode, "rpm" in refused.stderr) == (2, True)

    made = [fleet.submit(f"Note it, script:note {number}")["id"] for number in range(3)]
    doing = wait_until(
        lambda: next((text for each in made if "waiting for provider" in (text := fleet.order(each)["doing"])), ""),
        seconds=60,
    )
    assert "12 requests per minute are allowed" in doing
    assert [fleet.ended(each)["status"] for each in made] == ["succeeded"] * 3


def test_eight_drones_use_sixty_requests_per_minute_and_are_seldom_refused(tmp_path: Path) -> None:
    fleet = WholeFleet(tmp_path / "fleet", drones=0)
    names = [f"drone{number}" for number in range(8)]
    busy = lambda number: call_answer(call("shell", {"command": f"echo {number}"}))  # noqa: E731 - one expression
    with LimitedEndpoint(60, style="none", takes_s=0.5, answer=busy) as endpoint:
        try:
            fleet.start()
            fleet.add_work(endpoint.url, f"file://{calc_project(tmp_path / 'calc.git')}")
            assert fleet.fleet("provider", "edit", "scripted", "--rpm", "60").returncode == 0
            for name in names:
                fleet.workstation(name).start()
            fleet.online(*names, seconds=60)
            made = [fleet.submit("Go on", "--drone", name)["id"] for name in names]
            wait_until(lambda: all(fleet.order(each)["status"] == "running" for each in made), seconds=60)
            watch(endpoint, 20)
            figures = watch(endpoint, 120)
            doing = [fleet.order(each)["doing"] for each in made]
            for each in made:
                assert fleet.fleet("cancel", each).returncode == 0
            assert [fleet.ended(each)["status"] for each in made] == ["canceled"] * 8
        finally:
            fleet.close()
    sys.stdout.write(f"\n| eight drones | {figures.cells} |\n")
    assert sum("60 requests per minute are allowed" in text for text in doing) >= 4
    assert figures.refused_part <= 0.03
    assert figures.used_part >= 0.9
