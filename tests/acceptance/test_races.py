"""Races on a whole fleet: four models try the same, the first verified work wins, and there is one branch."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from control_plane.contract.client.fleet import FleetClient
from control_plane.contract.declarations import prices, projects, providers, races
from control_plane.contract.declarations.prices import PriceRequest
from control_plane.contract.declarations.projects import ProjectRequest
from control_plane.contract.declarations.providers import ProviderRequest
from drone.model.scripted.server import ScriptedServer
from tests.acceptance.scripts import shell
from tests.support import wait_until
from tests.support.repositories import calc_project, git
from tests.support.whole_fleet import WholeFleet

pytestmark = [pytest.mark.campaign, pytest.mark.chaos, pytest.mark.timeout(300), pytest.mark.apart]
STEP = shell("echo step >> steps.txt; sleep 0.3")
STEPS = {"three": 3, "nine": 9, "fifteen": 15}
DRONES = ("ada", "ben", "cleo", "dan")
Doc = dict[str, Any]


def solving(steps: int) -> list[Doc]:
    return [*[STEP] * (steps - 1), shell("echo solved > solved.txt"), {"text": f"Solved in {steps} steps."}]


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return calc_project(tmp_path / "calc.git")


@pytest.fixture
def fleet(start_fleet: Callable[..., WholeFleet], remote: Path) -> Iterator[WholeFleet]:
    """Four drones, and four models: three solve it in 3, 9 and 15 steps, and one never does."""
    scripts = {name: solving(steps) for name, steps in STEPS.items()} | {"never": [{**STEP, "repeat": True}]}
    with ExitStack() as servers:
        started = start_fleet(drones=0)
        with started.client() as client:
            for name, script in scripts.items():
                url = servers.enter_context(ScriptedServer({"default": script})).url
                client.call(providers.ADD, ProviderRequest(name=name, model=f"openai/{name}", api_base=url))
                client.call(prices.SET, PriceRequest(input_usd=1.0, output_usd=2.0), model=f"openai/{name}")
            request = ProjectRequest(slug="demo", git_url=f"file://{remote}", verify=["test -f solved.txt"])
            client.call(projects.ADD, request)
        for name in DRONES:
            started.workstation(name).start()
        started.online(*DRONES, seconds=60)
        yield started


def race_of(client: FleetClient, race_id: str) -> Doc:
    return dict(client.call(races.SHOW, race_id=race_id))


def test_the_first_verified_work_wins_although_its_drone_is_killed_while_it_delivers(
    fleet: WholeFleet, remote: Path
) -> None:
    hook = remote / "hooks" / "pre-receive"
    hook.write_text(f"#!/bin/sh\ntest -e {remote}/go || sleep 60\n")
    hook.chmod(0o755)
    words = ("--models", "fifteen,three,never,nine", "--cost-limit", "0")
    race_id = fleet.json("submit", "Solve it", "--project", "demo", *words)["race"]["id"]
    with fleet.client() as client:
        winner_id = wait_until(lambda: race_of(client, race_id)["race"]["winner"], seconds=60, every=0.1)
        drone = next(each for each in fleet.workstations if each.name == fleet.order(winner_id)["drone"])
        drone.stop(signal.SIGKILL)
        (remote / "go").touch()
        drone.start()
        document = wait_until(
            lambda: (shown := race_of(client, race_id)) and all(o["ended_at"] for o in shown["orders"]) and shown,
            seconds=180,
        )
    winner = fleet.order(winner_id)
    others = [fleet.order(each["id"]) for each in document["orders"] if each["id"] != winner_id]

    assert document["race"]["status"] == "won"
    assert (winner["provider"], winner["status"], winner["attempt"]) == ("three", "succeeded", 2)
    assert (winner["verification"], winner["pushed"]) == ("verified", True)
    assert [(each["status"], each["receipt"]["survivors"]) for each in others] == [("canceled", 0)] * 3
    assert all(f"order {winner_id} won race {race_id}" in each["reason"] for each in others)
    assert {order["drone"] for order in document["orders"]} == set(DRONES)
    assert git(remote, "for-each-ref", "--format=%(refname:short)", "refs/heads/fleet") == winner["branch"]
    assert git(remote, "show", f"{winner['branch']}:solved.txt") == "solved"
    costs = [order["stats"]["cost_usd"] for order in document["orders"]]
    assert min(costs) > 0
    assert document["race"]["cost_usd"] == pytest.approx(sum(costs))
    assert winner_id in fleet.fleet("compare", race_id).stdout
