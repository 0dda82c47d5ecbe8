"""A drone that dies during an order and comes back: the work resumes where it stopped, and counts once."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from drone.model.scripted.server import ScriptedServer
from tests.support import wait_until
from tests.support.ending import kill_all
from tests.support.repositories import calc_project
from tests.support.whole_fleet import Doc, WholeFleet, WorkstationDrone

pytestmark = [pytest.mark.campaign, pytest.mark.chaos, pytest.mark.timeout(600)]

STEPS = 10


def along_the_way(order: Doc) -> list[Doc]:
    """The steps that count: those of the newest run, and of the runs it resumed from up to that point."""
    runs = {run["id"]: run for run in order["runs"]}
    run_id, counting = order["runs"][-1]["id"] if order["runs"] else None, set()
    while run_id is not None:
        counting.add(run_id)
        run_id = runs[run_id]["resumed_from"]
    return [step for step in order["steps"] if step["run"] in counting and not step["undone"]]


def kinds(order: Doc, kind: str) -> int:
    return sum(step["kind"] == kind for step in along_the_way(order))


def branch_of(repository: Path, order: Doc) -> list[str]:
    """The tree of the order's branch, and its commits' authors and subjects, but nothing that depends on the time."""
    words = (["rev-parse", f"{order['branch']}^{{tree}}"], ["log", "--format=%an <%ae> %s", f"main..{order['branch']}"])
    return [subprocess.check_output(["git", "-C", str(repository), *each], text=True) for each in words]


def cut_off(fleet: WholeFleet, drone: WorkstationDrone, order_id: str, step: int) -> None:
    """Cut the drone's power once so many commands have started, and start it again."""
    wait_until(lambda: kinds(fleet.order(order_id), "tool_call") >= step, seconds=60, every=0.05)
    generation = fleet.order(order_id)["generation"]
    kill_all(drone.process)
    drone.start()
    wait_until(lambda: fleet.order(order_id)["generation"] > generation, seconds=90)


@pytest.mark.parametrize(
    "cuts",
    [(1, 6), pytest.param(range(1, STEPS + 1), marks=pytest.mark.long)],
    ids=["first and middle", "each"],
)
def test_a_drone_that_is_killed_in_several_steps_goes_on_as_if_nothing_had_been(
    start_fleet: Callable[..., WholeFleet], model: ScriptedServer, tmp_path: Path, cuts: tuple[int, ...]
) -> None:
    repository = calc_project(tmp_path / "calc.git")
    fleet = start_fleet(drones=0)
    fleet.add_work(model.url, f"file://{repository}")
    oka = fleet.workstation("oka")
    oka.start()
    fleet.online("oka")
    order_id = str(fleet.submit("Ten steps, script:steps", "--max-attempts", "20")["id"])
    for step in cuts:
        cut_off(fleet, oka, order_id, step)
    disturbed = fleet.ended(order_id)
    undisturbed = fleet.ended(fleet.submit("Ten steps, script:steps")["id"])

    assert (undisturbed["status"], disturbed["status"]) == ("succeeded", "succeeded")
    assert branch_of(repository, disturbed) == branch_of(repository, undisturbed)
    assert disturbed["patch"] == undisturbed["patch"]
    assert (disturbed["attempt"], disturbed["late_refs"]) == (len(cuts) + 1, [])
    assert kinds(disturbed, "tool_result") == STEPS
    resumed = [step for step in disturbed["steps"] if step["kind"] == "resumed"]
    # The first cut may come just before or just after the first checkpoint; before it there is nothing to resume from.
    assert len(resumed) in {len(cuts) - 1, len(cuts)}
    assert {(step["in_place"], step["cut_off"]) for step in resumed} == {(True, True)}
