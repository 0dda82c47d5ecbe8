"""Races on a whole fleet: four models try the same, the first verified work wins, and there is one branch."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from control_plane.client.fleet import FleetClient
from control_plane.declarations import prices, projects, providers, races
from control_plane.declarations.prices import PriceRequest
from control_plane.declarations.projects import ProjectRequest
from control_plane.declarations.providers import ProviderRequest
from drone.model.scripted.server import ScriptedServer
from tests.acceptance.scripts import shell
from tests.support import wait_until
from tests.support.repositories import calc_project, git
from tests.support.whole_fleet import WholeFleet

pytestmark = [pytest.mark.timeout(300), pytest.mark.apart]
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


def submitted(fleet: WholeFleet) -> Doc:
    return dict(
        fleet.json(
            "submit", "Solve it", "--project", "demo", "--models", "fifteen,three,never,nine", "--cost-limit", "0"
        )
    )


def assert_one_won(fleet: WholeFleet, remote: Path, document: Doc, winner: Doc) -> None:
    """One order has succeeded with a branch; the others were canceled with receipts, and keep what they did."""
    others = [fleet.order(each["id"]) for each in document["orders"] if each["id"] != winner["id"]]
    assert document["race"]["status"] == "won"
    assert (winner["status"], winner["verification"], winner["pushed"]) == ("succeeded", "verified", True)
    assert [(each["status"], each["receipt"]["survivors"]) for each in others] == [("canceled", 0)] * 3
    assert all(f"order {winner['id']} won race {document['race']['id']}" in each["reason"] for each in others)
    branches = git(remote, "for-each-ref", "--format=%(refname:short)", "refs/heads/fleet").split()
    assert branches == [winner["branch"]]
    assert git(remote, "show", f"{winner['branch']}:solved.txt") == "solved"
    assert {winner["base_commit"]} == {each["base_commit"] for each in others}


def test_the_first_verified_work_wins_and_costs_are_the_sum(fleet: WholeFleet, remote: Path) -> None:
    document = submitted(fleet)
    race_id = document["race"]["id"]
    with fleet.client() as client:
        wait_until(lambda: race_of(client, race_id)["race"]["winner"], seconds=60, every=0.1)
        ended = wait_until(
            lambda: (shown := race_of(client, race_id)) and all(o["ended_at"] for o in shown["orders"]) and shown,
            seconds=60,
            every=0.1,
        )
    winner = fleet.order(ended["race"]["winner"])
    assert winner["provider"] == "three"
    assert_one_won(fleet, remote, ended, winner)

    assert {order["drone"] for order in ended["orders"]} == set(DRONES)
    costs = [order["stats"]["cost_usd"] for order in ended["orders"]]
    assert min(costs) > 0
    assert ended["race"]["cost_usd"] == pytest.approx(sum(costs))

    compared = fleet.fleet("compare", race_id)
    assert compared.returncode == 0
    assert winner["id"] in compared.stdout


@pytest.mark.parametrize("returns", [True, pytest.param(False, marks=pytest.mark.long)])
def test_the_winner_stays_the_winner_when_its_drone_is_killed_while_it_delivers(
    fleet: WholeFleet, remote: Path, *, returns: bool
) -> None:
    hook = remote / "hooks" / "pre-receive"
    hook.write_text(f"#!/bin/sh\ntest -e {remote}/go || sleep 60\n")
    hook.chmod(0o755)
    document = submitted(fleet)
    race_id = document["race"]["id"]
    with fleet.client() as client:
        winner_id = wait_until(lambda: race_of(client, race_id)["race"]["winner"], seconds=60, every=0.1)
        drone = next(each for each in fleet.workstations if each.name == fleet.order(winner_id)["drone"])
        drone.stop(signal.SIGKILL)
        (remote / "go").touch()
        if returns:
            drone.start()
        ended = wait_until(
            lambda: (shown := race_of(client, race_id)) and all(o["ended_at"] for o in shown["orders"]) and shown,
            seconds=180,
        )
    winner = fleet.order(winner_id)
    assert winner["attempt"] == 2
    assert_one_won(fleet, remote, ended, winner)


def test_a_user_takes_one_and_its_stored_work_is_pushed(fleet: WholeFleet, remote: Path) -> None:
    words = ("--models", "three,nine", "--pick", "person", "--follow")
    done = fleet.fleet("submit", "Solve it", "--project", "demo", *words)
    assert done.returncode == 1, done.stderr
    race = fleet.json("race", "ls")[0]
    assert race["status"] == "undecided"
    order = fleet.json("race", "show", race["id"])["orders"][0]
    assert f"an order of race {race['id']} pushes only if it wins" in order["push_error"]
    assert git(remote, "for-each-ref", "refs/heads/fleet") == ""
    taken = fleet.json("race", "take", race["id"], "B")
    order_id = taken["race"]["winner"]
    wait_until(lambda: fleet.order(order_id)["pushed"], seconds=60)
    order = fleet.order(order_id)
    assert git(remote, "rev-parse", order["branch"]) == order["head_commit"]
    assert fleet.json("race", "show", race["id"])["race"]["status"] == "won"
