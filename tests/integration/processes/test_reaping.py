"""A run reaps what it adopts: zombies do not pile up below it, however many commands it runs."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from drone.runs.directory import RunDirectory
from tests.support.control_stand_in import Dispatch
from tests.support.drones import DroneUnderTest, Workshop
from tests.support.runs import order_for
from tests.support.scripted import ScriptedFactory

CALLS_IN_AN_ANSWER = 30
MANY = pytest.mark.parametrize("many_commands", [60, pytest.param(300, marks=pytest.mark.long)])


def script(commands: int) -> list[object]:
    """Answers that run so many commands, up to 30 in each, and then stop."""
    calls = [{"name": "shell", "arguments": {"command": f"echo {number}"}} for number in range(commands)]
    answers = [
        {"tool_calls": calls[first : first + CALLS_IN_AN_ANSWER]} for first in range(0, commands, CALLS_IN_AN_ANSWER)
    ]
    return [*answers, {"text": "Done."}]


def zombies_below(pid: int) -> int:
    """Children of the process that have ended and that it did not reap; 0 once it is gone."""
    try:
        return sum(child.status() == psutil.STATUS_ZOMBIE for child in psutil.Process(pid).children())
    except psutil.NoSuchProcess:
        return 0


def most_zombies(drone: DroneUnderTest, sent: Dispatch) -> int:
    """The largest number of zombies that the run ever had, looked at until it has ended."""
    most, directory = 0, RunDirectory(drone.home.run_dir(sent.run_id))
    while directory.end() is None:
        meta = directory.meta()
        if meta is not None and meta.pid is not None:
            most = max(most, zombies_below(meta.pid))
        time.sleep(0.003)
    return most


def assert_they_do_not_grow(drone: DroneUnderTest, few: Dispatch, many: Dispatch) -> None:
    zombies = [most_zombies(drone, sent) for sent in (few, many)]

    assert [drone.fleet.ended(sent).status for sent in (few, many)] == ["success", "success"]
    assert max(zombies) <= 2


@MANY
def test_zombies_do_not_grow_with_the_commands_of_a_run_in_bubblewrap(
    make_drone: Callable[..., DroneUnderTest], scripted: ScriptedFactory, repository: Path, many_commands: int
) -> None:
    drone = make_drone(sandbox="bwrap")
    drone.start_worker()
    few, many = (order_for(drone.id, repository, scripted(script(count)).url) for count in (3, many_commands))

    assert_they_do_not_grow(drone, drone.fleet.dispatch(few), drone.fleet.dispatch(many))


@MANY
def test_zombies_do_not_grow_with_the_commands_of_a_run_without_bubblewrap(
    busy_fleet: Workshop, scripted: ScriptedFactory, many_commands: int
) -> None:
    few, many = (busy_fleet.submit(scripted(script(count)).url) for count in (3, many_commands))

    assert_they_do_not_grow(busy_fleet.drone, few, many)


COMMANDS = """
import json, os, sys, tempfile
from pathlib import Path
import psutil
from drone.processes.reaping import become_reaper
from drone.sandbox import choose
from drone.sandbox.opened import close_all

become_reaper()
sandbox, counts = choose(sys.argv[1], os.environ), []
with tempfile.TemporaryDirectory() as directory:
    for timeout in (60, 60, 0.5):
        after = "sleep 300" if timeout < 1 else "true"
        command = f"(setsid sleep 300 &); (nohup sleep 0.01 >/dev/null 2>&1 &); sleep 0.1; {after}"
        sandbox.run(command, workspace=Path(directory), timeout=timeout)
        close_all()
        counts.append(len(psutil.Process().children()))
print(json.dumps(counts))
"""


@pytest.mark.parametrize("sandbox", ["bwrap", "none"])
def test_a_command_leaves_no_child_of_any_kind_behind(sandbox: str) -> None:
    told = subprocess.check_output([sys.executable, "-c", COMMANDS, sandbox], timeout=200)

    assert json.loads(told) == [0, 0, 0]


def test_commands_that_run_into_their_time_limit_leave_no_zombie_on_a_busy_machine() -> None:
    """A killed keeper passes its zombies on some time after its memory is gone: longer where the processor is busy."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * (psutil.cpu_count() or 1))]
    try:
        told = subprocess.check_output([sys.executable, "-c", TIME_LIMITS], timeout=100)
    finally:
        for each in busy:
            each.kill()
            each.wait()
    assert json.loads(told) == [0] * 8


TIME_LIMITS = """
import json, os, tempfile
from pathlib import Path
import psutil
from drone.processes.reaping import become_reaper
from drone.sandbox import choose

become_reaper()
sandbox, counts = choose("none", os.environ), []
with tempfile.TemporaryDirectory() as directory:
    for _ in range(8):
        sandbox.run("(setsid sleep 300 &); sleep 300", workspace=Path(directory), timeout=0.2)
        counts.append(len(psutil.Process().children()))
print(json.dumps(counts))
"""
