"""Drones that die, freeze and come back during an order: the work resumes where it stopped, and counts once."""

from __future__ import annotations

import logging
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from drone.model.scripted.server import ScriptedServer
from tests.support import wait_until
from tests.support.ending import wait_for_end
from tests.support.freezing import frozen
from tests.support.repositories import calc_project
from tests.support.whole_fleet import Doc, WholeFleet, WorkstationDrone

log = logging.getLogger(__name__)
pytestmark = pytest.mark.timeout(600)

STEPS = 10


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return calc_project(tmp_path / "calc.git")


@pytest.fixture
def fleet(start_fleet: Callable[..., WholeFleet], model: ScriptedServer, repository: Path) -> WholeFleet:
    fleet = start_fleet(drones=0)
    fleet.add_work(model.url, f"file://{repository}")
    return fleet


def processes(drone: WorkstationDrone) -> list[psutil.Process]:
    """The drone's parent process, its worker, its runs, and every process that they started."""
    assert drone.process is not None
    with suppress(psutil.NoSuchProcess):
        parent = psutil.Process(drone.process.pid)
        return [parent, *parent.children(recursive=True)]
    return []


def pull_the_plug(drone: WorkstationDrone) -> None:
    """Kill all processes of the drone at once, as a power cut does."""
    found = processes(drone)
    for process in found:
        # Suspend all of them first, so that none sees another one die.
        with suppress(psutil.NoSuchProcess):
            process.suspend()
    for process in found:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    wait_for_end(each.pid for each in found)
    assert drone.process is not None
    drone.process.wait(60)


def written(fleet: WholeFleet, order_id: str) -> int:
    """The number of commands that have started, in the order's newest run and the runs that it resumed from."""
    order = fleet.order(order_id)
    return sum(step["kind"] == "tool_call" for step in along_the_way(order))


def at_least(fleet: WholeFleet, order_id: str, commands: int) -> None:
    """Wait until this many of the order's commands have started."""
    wait_until(lambda: written(fleet, order_id) >= commands, seconds=60, every=0.05)


def along_the_way(order: Doc) -> list[Doc]:
    """The steps that count: those of the newest run, and of the runs it resumed from up to that point."""
    runs = {run["id"]: run for run in order["runs"]}
    run_id, counting = order["runs"][-1]["id"] if order["runs"] else None, set()
    while run_id is not None:
        counting.add(run_id)
        run_id = runs[run_id]["resumed_from"]
    return [step for step in order["steps"] if step["run"] in counting and not step["undone"]]


def git(repository: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(repository), *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def branch_of(repository: Path, order: Doc) -> tuple[str, str]:
    """The tree of the order's branch, and its commits' authors and subjects, but nothing that depends on the time."""
    tree = git(repository, "rev-parse", f"{order['branch']}^{{tree}}")
    history = git(repository, "log", "--format=%an <%ae> %s", f"main..{order['branch']}")
    return tree, history


def kill_in_each_step(fleet: WholeFleet, model: ScriptedServer, drone: WorkstationDrone, at: range) -> Doc:
    """Run one order with a power cut within each of these steps; logs how soon the next run starts."""
    order = fleet.submit("Ten steps, script:steps", "--max-attempts", "20")
    for step in at:
        at_least(fleet, order["id"], step)
        pull_the_plug(drone)
        claimed, asked = taken_up_again(fleet, model, drone, order["id"])
        log.info("step %s: claimed again after %.1f s, the model asked after %.1f s", step, claimed, asked)
    return fleet.ended(order["id"])


def taken_up_again(
    fleet: WholeFleet, model: ScriptedServer, drone: WorkstationDrone, order_id: str
) -> tuple[float, float]:
    """Restart the drone; return the seconds until it takes the next run from its queue, and until it asks the model."""
    log_file = Path(drone.environment["DRONE_HOME"]) / "logs" / "drone.log"
    generation, requests = fleet.order(order_id)["generation"], len(model.requests)
    taken, began = _taken(log_file), time.monotonic()
    drone.start()
    wait_until(lambda: _taken(log_file) > taken, seconds=90)
    claimed = time.monotonic() - began
    wait_until(lambda: len(model.requests) > requests, seconds=90)
    asked = time.monotonic() - began
    wait_until(lambda: fleet.order(order_id)["generation"] > generation, seconds=90)
    return claimed, asked


def _taken(log_file: Path) -> int:
    """The number of messages the drone has taken from its queue; it claims each of them immediately."""
    return log_file.read_text().count("Task fleet.run[")


def assert_as_undisturbed(fleet: WholeFleet, repository: Path, disturbed: Doc, kills: int) -> None:
    undisturbed = fleet.ended(fleet.submit("Ten steps, script:steps")["id"])
    assert (undisturbed["status"], disturbed["status"]) == ("succeeded", "succeeded")
    assert branch_of(repository, disturbed) == branch_of(repository, undisturbed)
    assert disturbed["patch"] == undisturbed["patch"]
    assert (disturbed["attempt"], disturbed["late_refs"]) == (kills + 1, [])
    assert sum(step["kind"] == "tool_result" for step in along_the_way(disturbed)) == STEPS


def test_a_drone_that_is_killed_in_the_first_a_middle_and_the_last_step_goes_on_as_if_nothing_had_been(
    fleet: WholeFleet, model: ScriptedServer, repository: Path
) -> None:
    oka = fleet.workstation("oka")
    oka.start()
    fleet.online("oka")
    disturbed = kill_in_each_step(fleet, model, oka, range(1, STEPS + 1, 5))
    assert_as_undisturbed(fleet, repository, disturbed, kills=2)
    resumed = [step for step in disturbed["steps"] if step["kind"] == "resumed"]
    # The first cut may come just before or just after the first checkpoint; before it there is nothing to resume from.
    assert len(resumed) in {1, 2}
    assert {(step["in_place"], step["cut_off"]) for step in resumed} == {(True, True)}


@pytest.mark.long
@pytest.mark.chaos
def test_a_drone_that_is_killed_in_each_of_ten_steps_goes_on_as_if_nothing_had_been(
    fleet: WholeFleet, model: ScriptedServer, repository: Path
) -> None:
    oka = fleet.workstation("oka")
    oka.start()
    fleet.online("oka")
    disturbed = kill_in_each_step(fleet, model, oka, range(1, STEPS + 1))
    assert_as_undisturbed(fleet, repository, disturbed, kills=STEPS)


def in_the_middle_on_oka(fleet: WholeFleet) -> tuple[WorkstationDrone, Doc]:
    """One of two drones, and an order that has started five of its steps there."""
    oka, mila = fleet.workstation("oka"), fleet.workstation("mila")
    oka.start()
    fleet.online("oka")
    order = fleet.submit("Ten steps, script:steps")
    mila.start()
    fleet.online("mila")
    at_least(fleet, order["id"], 5)
    return oka, order


@pytest.mark.long
@pytest.mark.chaos
def test_the_order_of_a_drone_that_does_not_come_back_goes_on_elsewhere(
    fleet: WholeFleet, model: ScriptedServer, repository: Path
) -> None:
    oka, order = in_the_middle_on_oka(fleet)
    pull_the_plug(oka)
    asked, began = len(model.requests), time.monotonic()
    wait_until(lambda: len(model.requests) > asked, seconds=240, every=0.1)
    log.info("asked again on another drone after %.1f s", time.monotonic() - began)
    disturbed = fleet.ended(order["id"])
    assert disturbed["drone"] == "mila"
    assert_as_undisturbed(fleet, repository, disturbed, kills=1)


@pytest.mark.long
@pytest.mark.chaos
def test_a_drone_that_was_frozen_until_its_order_ended_elsewhere_changes_nothing(
    fleet: WholeFleet, model: ScriptedServer, repository: Path
) -> None:
    oka, order = in_the_middle_on_oka(fleet)
    assert oka.process is not None
    with frozen(oka.process.pid):
        ended = fleet.ended(order["id"], seconds=170)
        assert (ended["status"], ended["drone"]) == ("succeeded", "mila")
        head = git(repository, "rev-parse", ended["branch"])

    thawed = time.monotonic()

    def late_run() -> Doc | None:
        run = fleet.order(order["id"])["runs"][0]
        steps = [step for step in fleet.order(order["id"])["steps"] if step["run"] == run["id"]]
        return run if any(step["kind"] == "run_ended" for step in steps) else None

    wait_until(late_run, every=0.2)
    log.info("the late run had ended %.1f s after the thaw", time.monotonic() - thawed)
    after = fleet.order(order["id"])
    assert {name: after[name] for name in ("status", "branch", "head_commit", "patch", "response", "drone")} == {
        name: ended[name] for name in ("status", "branch", "head_commit", "patch", "response", "drone")
    }
    assert git(repository, "rev-parse", after["branch"]) == head
    (late,) = after["late_refs"]
    assert late == f"fleet-late/{order['id']}/1"
    kept = git(repository, "show", f"{late}:steps.txt").splitlines()
    assert kept == [f"step {n}" for n in range(1, len(kept) + 1)]
    assert oka.process is not None
    assert oka.process.poll() is None
    oka.process.send_signal(signal.SIGTERM)
