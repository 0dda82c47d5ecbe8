"""Tasks from the terminal on a running fleet: followed from their creation to their return, and while they run."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from control_plane.contract.declarations import agents, projects, providers
from control_plane.contract.declarations.agents import AgentRequest
from control_plane.contract.declarations.projects import ProjectRequest
from control_plane.contract.declarations.providers import ProviderRequest
from drone.model.scripted.server import ScriptedServer
from tests.acceptance.scripts import SCRIPTS, calls, shell
from tests.support import wait_until
from tests.support.repositories import calc_project
from tests.support.terminals import running
from tests.support.warm_processes import FLEET
from tests.support.whole_fleet import WholeFleet

pytestmark = pytest.mark.timeout(300)

ORG = ("--org", "task_crew")
OWN = {
    "default": [
        shell("echo one >> steps.txt; seq 1 500"),
        calls(("add_comment", {"message": "I counted to 500. Nothing is left to do, @user."})),
        {"text": "That was it."},
    ],
    "hold": SCRIPTS["hold"],
}


@pytest.fixture(scope="module")
def fleet(shared_fleet: WholeFleet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WholeFleet]:
    """The shared fleet with an organization of this module, which has an agent."""
    remote = calc_project(tmp_path_factory.mktemp("task_crew") / "calc.git")
    with ScriptedServer(OWN) as model:
        shared_fleet.json("organization", "add", ORG[1])
        with shared_fleet.client(ORG[1]) as client:
            client.call(providers.ADD, ProviderRequest(name="scripted", model="openai/scripted", api_base=model.url))
            client.call(projects.ADD, ProjectRequest(slug="calc", git_url=remote.as_uri(), provider="scripted"))
            client.call(agents.ADD, AgentRequest(name="backend", instructions="You work."))
        yield shared_fleet


def test_a_task_is_told_from_its_creation_to_its_return(fleet: WholeFleet) -> None:
    """S-026, S-031, S-034: runs and comments, in order, and the cost."""
    task_id = fleet.fleet("task", "create", "Count to 500", "--assignee", "backend", *ORG).stdout.strip()

    followed = fleet.fleet("task", "follow", task_id, *ORG)
    task = fleet.json("task", "show", task_id, *ORG)
    (entry,) = [each["run"] for each in task["timeline"] if each["run"]]
    text = fleet.fleet("task", "show", task_id, *ORG).stdout
    steps = [fleet.fleet("run", "show", entry["run_id"], *more, *ORG).stdout for more in ((), ("--full",))]

    assert (followed.returncode, "I counted to 500." in followed.stdout) == (0, True), followed.stderr
    assert (task["status"], task["assignee"], task["branch"]) == ("open", "user", entry["branch"])
    assert re.search(rf"(?m)^\d\d:\d\d  ✓ backend on local-1 · success · .* · {entry['branch']}", text)
    assert re.search(r"(?m)^\d\d:\d\d  backend\n       I counted to 500\. Nothing is left to do, @user\.", text)
    assert ["more characters; --full shows them" in each for each in steps] == [True, False]


def test_a_task_is_followed_in_a_terminal_with_a_status_line_of_which_nothing_is_left(fleet: WholeFleet) -> None:
    made = fleet.fleet("task", "create", "Hold this, script:hold", "--assignee", "backend", *ORG)
    task_id = made.stdout.strip()
    environ = {**fleet.environment, "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    with running([*FLEET, "task", "follow", task_id, *ORG], environ, columns=120) as (screen, program):
        status = re.compile(r"in progress · 0:\d\d · backend on \S+ · [\d,]+ tokens · .* · .*echo begun")
        wait_until(lambda: status.search(screen.text))
        first = status.findall(screen.text)
        wait_until(lambda: status.findall(screen.text) not in ([], first))
        assert fleet.fleet("task", "cancel", task_id, *ORG).returncode == 0
        assert program.wait(timeout=60) == 1
        wait_until(lambda: f"fleet task show {task_id}" in screen.text)
    assert ("● canceled" in screen.text, "tokens ·" in screen.text) == (True, False)
