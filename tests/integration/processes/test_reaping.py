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
from tests.support import needs
from tests.support.control_stand_in import Dispatch
from tests.support.drones import DroneUnderTest
from tests.support.runs import order_for
from tests.support.scripted import ScriptedFactory

CALLS_IN_AN_ANSWER = 30
SANDBOXES = ("bwrap", "none")


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


@pytest.mark.parametrize(
    ("sandbox", "many_commands"),
    [("bwrap", 30), *(pytest.param(each, 300, marks=pytest.mark.long) for each in SANDBOXES)],
)
def test_zombies_do_not_grow_with_the_commands_of_a_run(
    make_drone: Callable[..., DroneUnderTest],
    scripted: ScriptedFactory,
    repository: Path,
    sandbox: str,
    many_commands: int,
) -> None:
    if sandbox == "bwrap":
        needs("bwrap")
    drone = make_drone(sandbox=sandbox)
    drone.start_worker()
    sent = drone.fleet.dispatch(order_for(drone.id, repository, scripted(script(many_commands)).url))

    assert most_zombies(drone, sent) <= 2
    assert drone.fleet.ended(sent).status == "success"


COMMANDS = """
import json, os, sys, tempfile
from pathlib import Path
import psutil
from drone.processes.reaping import become_reaper
from drone.sandbox import CommandSpec, choose
from drone.sandbox.opened import close_all

become_reaper()
sandbox, counts = choose(sys.argv[1], os.environ), []
with tempfile.TemporaryDirectory() as directory:
    for timeout in (60, 60, 0.5):
        after = "sleep 300" if timeout < 1 else "true"
        command = f"(setsid sleep 300 &); (nohup sleep 0.01 >/dev/null 2>&1 &); sleep 0.1; {after}"
        sandbox.run(CommandSpec(command, workspace=Path(directory), timeout=timeout))
        close_all()
        counts.append(len(psutil.Process().children()))
print(json.dumps(counts))
"""


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_a_command_leaves_no_child_of_any_kind_behind(sandbox: str) -> None:
    if sandbox == "bwrap":
        needs("bwrap")
    told = subprocess.check_output([sys.executable, "-c", COMMANDS, sandbox], timeout=200)

    assert json.loads(told) == [0, 0, 0]
