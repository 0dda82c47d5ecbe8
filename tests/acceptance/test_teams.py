"""A team on a whole fleet: one task handed from agent to agent, on two workstations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from control_plane.contract.declarations import tasks
from control_plane.contract.declarations.task_documents import CommentRequest
from drone.model.scripted.server import ScriptedServer
from tests.acceptance.scripts import shell
from tests.support import wait_until
from tests.support.repositories import CALC, bare_remote, git
from tests.support.team_fleet import BACKEND, LEAD, ORG, TESTER, TeamFleet, runs_of, thread, told
from tests.support.team_scripts import TeamBook, agent_of, script_of, turn
from tests.support.whole_fleet import WholeFleet

pytestmark = pytest.mark.timeout(300)

Doc = dict[str, Any]
USAGE = {"input_tokens": 1000, "output_tokens": 100}
PRICE = 1000 * 0.15e-6 + 100 * 0.6e-6


def adds(script: str, line: str, hand_over: str) -> list[Doc]:
    """A turn that adds a line to team.txt, and whose thought, output and answer are private to its agent."""
    command = f"echo {line} >> team.txt; echo private-{script}-printed"
    return turn(command, thought=f"private-{script}-thought", hand_over=hand_over, said=f"private-{script}-answer")


HOLD = (
    "trap 'left=40' TERM; "
    'while [ "${left:-1}" -gt 0 ]; do date +%s%N > alive.cache; sleep 0.05; [ -z "$left" ] || left=$((left - 1)); done'
)
"""Writes continuously, and for two more seconds after SIGTERM."""
PROBE = (
    'a=$(cat alive.cache); sleep 1; [ "$a" = "$(cat alive.cache)" ] && echo quiet > probe.txt || echo busy > probe.txt'
)
"""Checks whether the previous run's command still writes into this workspace; files that git ignores stay there."""
STORY: dict[str, list[Doc]] = {
    "plan": adds("plan", "lead", "Add the price list first, then its test. script:build @backend"),
    "build": adds("build", "backend", "The price list is in team.txt. @lead may look later. script:check @tester"),
    "check": adds("check", "tester", "It holds: three lines. script:close @lead"),
    "close": adds("close", "lead-again", "All is done: see team.txt. @user"),
    "hold": [shell(HOLD), {"text": "Never said."}],
    "after": turn(PROBE, hand_over="I looked. @user"),
}


@pytest.fixture(scope="module")
def script() -> Iterator[ScriptedServer]:
    """The scripted model (a stand-in), with a price."""
    priced = {name: [{"usage": USAGE, **reply} for reply in replies] for name, replies in STORY.items()}
    with ScriptedServer(TeamBook(priced)) as server:
        yield server


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Path:
    files = {**CALC, "agents/backend.md": "You write the server.\n"}
    return bare_remote(tmp_path_factory.mktemp("remote") / "shop.git", files)


@pytest.fixture(scope="module")
def team(shared_fleet: WholeFleet, script: ScriptedServer, remote: Path) -> Iterator[TeamFleet]:
    """An organization with three agents, and two workstations that serve it: oka builds, mila tests."""
    with shared_fleet.client(ORG) as client:
        yield TeamFleet.of(shared_fleet, client, script, remote)
    for name in ("oka", "mila"):
        shared_fleet.json("drone", "rm", name, "--yes")


def test_a_task_goes_from_hand_to_hand_and_back_to_the_user(
    team: TeamFleet, script: ScriptedServer, remote: Path
) -> None:
    """S-026, S-034, S-041, S-050, S-051, S-070, S-073."""
    words = ("Add prices", "--description", "Add prices. script:plan", "--org", ORG)
    story = team.with_user(team.fleet.json("task", "create", *words)["id"], runs=4)

    assert story["id"] == "PAYM-0001"
    assert thread(story) == [
        (LEAD, "Add the price list first, then its test. script:build @backend"),
        (BACKEND, "The price list is in team.txt. @lead may look later. script:check @tester"),
        (TESTER, "It holds: three lines. script:close @lead"),
        (LEAD, "All is done: see team.txt. @user"),
    ]
    assert told(story) == [f"{agent} {does}" for agent in (LEAD, BACKEND, TESTER, LEAD) for does in ("runs", "writes")]
    # Each turn asks the model three times.
    assert [run["cost_usd"] for run in runs_of(story)] == [pytest.approx(3 * PRICE)] * 4
    assert story["totals"]["cost_usd"] == pytest.approx(12 * PRICE)

    # Each continues where the one before has ended, also on another drone.
    orders = [team.order(run["order"]) for run in runs_of(story)]
    assert [order["drone"] for order in orders[1:3]] == ["oka", "mila"]
    assert [order["base_commit"] for order in orders[1:]] == [order["head_commit"] for order in orders[:-1]]
    assert git(remote, "show", f"{story['branch']}:team.txt").split() == [LEAD, BACKEND, TESTER, "lead-again"]

    # Each is shown the comments of others and nothing else of any other run, and as much of one prompt as they can.
    asked = {name: requests_of(script, name) for name in ("plan", "build", "check", "close")}
    seen = {name: set(re.findall(r"private-(\w+)", str(requests))) for name, requests in asked.items()}
    assert seen == {name: {name} for name in asked}
    assert all(text in str(asked["close"]) for _, text in thread(story)[:3])
    systems = {name: str(requests[-1][0]["content"]) for name, requests in asked.items()}
    assert systems["plan"] == systems["close"]
    assert len({each.partition("\n# You are ")[0] for each in systems.values()}) == 1


def requests_of(script: ScriptedServer, name: str) -> list[list[Doc]]:
    """The messages of each request that played a script."""
    asked = [request["messages"] for request in script.requests]
    return [messages for messages in asked if agent_of(messages) and script_of(messages) == name]


def test_the_next_agent_begins_only_when_the_preempted_run_has_given_its_receipt(team: TeamFleet) -> None:
    """S-110: never two runs in one workspace."""
    made = team.create("hold", assignee=BACKEND)
    wait_until(lambda: "alive.cache" in str(team.show(made["id"])["reason"]), seconds=60, every=0.1)

    stopped = team.client.call(tasks.PREEMPT, task_id=made["id"])
    comment = CommentRequest(text="Please look what is left. script:after @backend")
    team.client.call(tasks.COMMENT, comment, task_id=made["id"])
    assert (stopped["status"], stopped["assignee"]) == ("open", "user")

    task = team.with_user(made["id"], runs=2)
    held, after = runs_of(task)
    receipt = team.order(held["order"])["receipt"]
    assert (held["status"], after["status"], receipt["survivors"]) == ("preempted", "success", 0)
    assert receipt["found"] >= 1
    assert held["ended_at"] <= after["started_at"]
    assert receipt["at"] <= after["started_at"]
    assert held["drone"] == after["drone"] == "oka"
    assert "+quiet" in team.order(after["order"])["patch"]
