"""A provider's limit, with a whole fleet: orders on two drones stay below it, and say what they wait for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from drone.model.scripted.server import ScriptedServer
from tests.support import wait_until
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
