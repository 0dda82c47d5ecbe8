"""Tasks from the terminal on a running fleet: followed from their creation to their return, and while they run."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

import pytest

from control_plane.contract.declarations import agents, organizations
from control_plane.contract.declarations.agents import AgentRequest
from control_plane.contract.declarations.organizations import OrganizationRequest
from drone.model.scripted.server import ScriptedServer
from tests.acceptance.scripts import calls, shell
from tests.support import wait_until
from tests.support.repositories import calc_project
from tests.support.terminals import running
from tests.support.whole_fleet import WholeFleet

pytestmark = pytest.mark.timeout(300)

ORG = ("--org", "task_crew")
SCRIPTS = {
    "default": [
        shell("echo one >> steps.txt; seq 1 500"),
        calls(("add_comment", {"message": "I counted to 500. Nothing is left to do, @user."})),
        {"text": "That was it."},
    ],
    "hold": [shell("echo begun; sleep 300"), {"text": "Never said."}],
}


@pytest.fixture(scope="module")
def fleet(shared_fleet: WholeFleet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WholeFleet]:
    """The shared fleet with an organization of this module."""
    remote = calc_project(tmp_path_factory.mktemp("task_crew") / "calc.git")
    with ScriptedServer(SCRIPTS) as model, shared_fleet.client() as everywhere:
        everywhere.call(organizations.ADD, OrganizationRequest(name=ORG[1]))
        added = ("--no-check", "--model", "openai/scripted", "--api-base", model.url, "--no-key", *ORG)
        shared_fleet.json("provider", "add", "scripted", *added)
        added = ("--no-check", "--git-url", f"file://{remote}", "--provider", "scripted", *ORG)
        shared_fleet.json("project", "add", "calc", *added)
        with shared_fleet.client(ORG[1]) as client:
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

    assert followed.returncode == 0, followed.stderr
    assert "I counted to 500." in followed.stdout
    assert (task["status"], task["assignee"], task["branch"]) == ("open", "user", entry["branch"])
    assert [each["kind"] for each in task["timeline"]] == ["run", "comment"]
    assert (entry["agent"], entry["status"], task["totals"]["runs"]) == ("backend", "success", 1)
    assert re.search(rf"(?m)^\d\d:\d\d  ✓ backend on local-1 · success · .* · {entry['branch']}", text)
    assert re.search(r"(?m)^\d\d:\d\d  backend\n       I counted to 500\. Nothing is left to do, @user\.", text)
    assert ["more characters; --full shows them" in each for each in steps] == [True, False]


def test_a_task_is_followed_in_a_terminal_with_a_status_line_of_which_nothing_is_left(fleet: WholeFleet) -> None:
    made = fleet.fleet("task", "create", "Hold this, script:hold", "--assignee", "backend", *ORG)
    task_id = made.stdout.strip()
    words = (sys.executable, "-m", "control_plane.cli.main", "task", "follow", task_id, *ORG)
    environ = {**fleet.environment, "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    with running([*words], environ, columns=120) as (screen, program):
        status = re.compile(r"in progress · 0:\d\d · backend on \S+ · [\d,]+ tokens · .* · .*echo begun")
        wait_until(lambda: status.search(screen.text) is not None, seconds=60)
        first = status.findall(screen.text)
        wait_until(lambda: status.findall(screen.text) not in ([], first))
        assert fleet.fleet("task", "cancel", task_id, *ORG).returncode == 0
        assert program.wait(timeout=60) == 1
        wait_until(lambda: f"fleet task show {task_id}" in screen.text)
    assert "● canceled" in screen.text
    assert "tokens ·" not in screen.text
