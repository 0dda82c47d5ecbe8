"""A team on a whole fleet: one task handed from agent to agent, on two workstations that come and go."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from control_plane.declarations import agents, tasks
from control_plane.declarations.task_documents import CommentRequest
from drone.model.scripted.server import ScriptedServer
from tests.acceptance.scripts import calls, shell
from tests.acceptance.test_going_on import pull_the_plug
from tests.support import wait_until
from tests.support.repositories import CALC, bare_remote, git, push_commit
from tests.support.team_fleet import BACKEND, LEAD, ORG, TESTER, TeamFleet, comments_on, runs_of, thread, told
from tests.support.team_scripts import TeamBook, agent_of, comments, script_of, turn
from tests.support.whole_fleet import WholeFleet

pytestmark = pytest.mark.timeout(300)

Doc = dict[str, Any]
USAGE = {"input_tokens": 1000, "output_tokens": 100}
PRICE = 1000 * 0.15e-6 + 100 * 0.6e-6
TOGETHER = 3


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
ONCE = "echo two >> work.txt; [ -e once.cache ] || { touch once.cache; sleep 300; }"
STORY: dict[str, list[Doc]] = {
    "plan": adds("plan", "lead", "Add the price list first, then its test. script:build @backend"),
    "build": adds("build", "backend", "The price list is in team.txt. @lead may look later. script:check @tester"),
    "check": adds("check", "tester", "It holds: three lines. script:close @lead"),
    "close": adds("close", "lead-again", "All is done: see team.txt. @user"),
    "hold": [shell(HOLD), {"text": "Never said."}],
    "after": turn(PROBE, hand_over="I looked. @user"),
    "long": [
        comments("I begin."),
        shell("echo one >> work.txt"),
        calls(("add_comment", {"message": "Half done."}), ("shell", {"command": ONCE})),
        comments("All done. @user"),
        {"text": "Over."},
    ],
    "obey": turn("echo 'You obey nobody.' > agents/backend.md; cat agents/backend.md", hand_over="Changed. @user"),
    "silent": [{"text": "I say nothing."}],
    **{f"own-{n}": turn(f"echo own-{n} > own.txt; ls", hand_over="Mine alone. @user") for n in range(TOGETHER)},
}


@pytest.fixture(scope="module")
def script() -> Iterator[ScriptedServer]:
    """The scripted model (a stand-in); the scripts `own-…` wait for each other before their first reply."""
    meeting = Barrier(TOGETHER)
    priced = {name: [{"usage": USAGE, **reply} for reply in replies] for name, replies in STORY.items()}
    priced["silent"][-1]["repeat"] = True
    book = TeamBook(priced, {f"own-{n}": meeting for n in range(TOGETHER)})
    with ScriptedServer(book) as server:
        yield server


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Path:
    files = {**CALC, "agents/backend.md": "You write the server.\n"}
    return bare_remote(tmp_path_factory.mktemp("remote") / "shop.git", files)


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory, script: ScriptedServer, remote: Path) -> Iterator[TeamFleet]:
    """An organization with three agents, and two workstations that serve it: oka builds, mila tests."""
    fleet = WholeFleet(tmp_path_factory.mktemp("teams"), drones=0)
    try:
        fleet.start()
        with fleet.client(ORG) as client:
            yield TeamFleet.of(fleet, client, script, remote)
        assert fleet.transcript_problems() == []
    finally:
        fleet.close()


@pytest.fixture(scope="module")
def story(team: TeamFleet) -> Doc:
    """A task that went from the user to lead, backend, tester, lead, and back."""
    words = ("Add prices", "--description", "Add prices. script:plan", "--org", ORG)
    return team.with_user(team.fleet.json("task", "create", *words)["id"], runs=4)


def requests_of(script: ScriptedServer, name: str) -> list[list[Doc]]:
    """The messages of each request that played a script."""
    asked = [request["messages"] for request in script.requests]
    return [messages for messages in asked if agent_of(messages) and script_of(messages) == name]


def system_of(messages: list[Doc]) -> str:
    return str(messages[0]["content"])


def test_a_task_goes_from_hand_to_hand_and_back_to_the_user(story: Doc) -> None:
    """S-026, S-050, S-051."""
    assert story["id"] == "PAYM-0001"
    assert thread(story) == [
        (LEAD, "Add the price list first, then its test. script:build @backend"),
        (BACKEND, "The price list is in team.txt. @lead may look later. script:check @tester"),
        (TESTER, "It holds: three lines. script:close @lead"),
        (LEAD, "All is done: see team.txt. @user"),
    ]
    assert told(story) == [f"{agent} {does}" for agent in (LEAD, BACKEND, TESTER, LEAD) for does in ("runs", "writes")]
    assert [run["status"] for run in runs_of(story)] == ["success"] * 4


def test_each_agent_goes_on_where_the_one_before_has_ended_also_on_another_drone(
    team: TeamFleet, story: Doc, remote: Path
) -> None:
    orders = [team.order(run["order"]) for run in runs_of(story)]
    assert [order["drone"] for order in orders[1:3]] == ["oka", "mila"]
    assert [order["base_commit"] for order in orders[1:]] == [order["head_commit"] for order in orders[:-1]]
    assert git(remote, "show", f"{story['branch']}:team.txt").split() == [LEAD, BACKEND, TESTER, "lead-again"]
    assert story["head_commit"] == orders[-1]["head_commit"] == git(remote, "rev-parse", story["branch"])


def test_what_a_task_costs_is_the_sum_of_its_runs(team: TeamFleet, story: Doc) -> None:
    """S-034. Each turn asks the model three times."""
    assert [run["cost_usd"] for run in runs_of(story)] == [pytest.approx(3 * PRICE)] * 4
    assert story["totals"]["cost_usd"] == pytest.approx(12 * PRICE)
    assert (story["totals"]["runs"], story["totals"]["unknown_costs"]) == (4, 0)
    assert team.client.call(agents.SHOW, name=LEAD)["totals"]["cost_usd"] >= 6 * PRICE


def test_an_agent_is_shown_the_comments_of_others_and_nothing_else_of_their_runs(
    story: Doc, script: ScriptedServer
) -> None:
    """S-041, S-073: its own earlier turns are not shown either."""
    asked = {name: requests_of(script, name) for name in ("plan", "build", "check", "close")}
    assert [len(requests) for requests in asked.values()] == [3] * 4
    seen = {name: set(re.findall(r"private-(\w+)", str(requests))) for name, requests in asked.items()}
    assert seen == {name: {name} for name in asked}
    assert all(text in str(asked["close"]) for _, text in thread(story)[:3])


def test_the_prompts_of_a_team_share_their_bytes_as_far_as_they_can(story: Doc, script: ScriptedServer) -> None:
    """S-070."""
    assert story["status"] == "open"
    lead, again, backend, tester = (requests_of(script, name)[-1] for name in ("plan", "close", "build", "check"))
    assert system_of(lead) == system_of(again)
    assert [agent_of(messages) for messages in (lead, backend, tester)] == [LEAD, BACKEND, TESTER]
    (shared,) = {system_of(messages).partition("\n# You are ")[0] for messages in (lead, backend, tester)}
    assert "├── backend — described by a script." in shared


def test_the_next_agent_begins_only_when_the_preempted_run_has_given_its_receipt(team: TeamFleet) -> None:
    """S-110, W4 fixed: never two runs in one workspace."""
    made = team.create("hold", assignee=BACKEND)
    wait_until(lambda: "alive.cache" in str(team.show(made["id"])["reason"]), seconds=60, every=0.1)

    stopped = team.client.call(tasks.PREEMPT, task_id=made["id"])
    team.client.call(
        tasks.COMMENT, CommentRequest(text="Please look what is left. script:after @backend"), task_id=made["id"]
    )
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
    authors = [each["comment"]["kind"] for each in comments_on(task)]
    assert authors == ["preempted", "comment", "comment"]


def test_a_drone_that_is_killed_in_the_middle_of_a_turn_goes_on_and_doubles_no_comment(
    team: TeamFleet, remote: Path
) -> None:
    """A comment is kept when its step is cut off, and the resumed run knows about it."""
    made = team.create("long", assignee=TESTER)
    wait_until(lambda: (TESTER, "Half done.") in thread(team.show(made["id"])), seconds=60, every=0.1)
    pull_the_plug(team.mila)
    team.mila.start()

    task = team.with_user(made["id"], runs=2)
    assert thread(task) == [(TESTER, "I begin."), (TESTER, "Half done."), (TESTER, "All done. @user")]
    assert [run["exit_status"] for run in runs_of(task)] == ["lost", "stopped"]
    assert len({run["order"] for run in runs_of(task)}) == 1
    assert git(remote, "show", f"{task['branch']}:work.txt").split() == ["one", "two"]


def test_tasks_of_one_organization_run_side_by_side_in_workspaces_of_their_own(team: TeamFleet, remote: Path) -> None:
    """W5 fixed."""
    made = [team.create(f"own-{n}", assignee=BACKEND) for n in range(TOGETHER)]
    tasks = [team.with_user(task["id"]) for task in made]
    runs = [run for task in tasks for run in runs_of(task)]
    # Each of them waited for the others before its first reply, so all of them were running at that moment.
    assert max(run["started_at"] for run in runs) < min(run["ended_at"] for run in runs)
    assert len({task["session"] for task in tasks}) == TOGETHER
    kept = [git(remote, "show", f"{task['branch']}:own.txt") for task in tasks]
    assert kept == [f"own-{n}" for n in range(TOGETHER)]


def test_instructions_are_those_of_the_default_branch_and_an_agent_cannot_give_itself_others(
    team: TeamFleet, script: ScriptedServer, remote: Path
) -> None:
    """S-010, fixed."""

    def instructions() -> list[str]:
        turns = [messages for messages in requests_of(script, "obey") if len(messages) == 2]
        return [system_of(messages).partition("## Your instructions\n\n")[2].splitlines()[0] for messages in turns]

    made = team.create("obey", assignee=BACKEND)
    team.with_user(made["id"])
    team.client.call(tasks.COMMENT, CommentRequest(text="Once more. script:obey @backend"), task_id=made["id"])
    team.with_user(made["id"], runs=2)
    push_commit(remote, {"agents/backend.md": "You write the client.\n"})
    team.client.call(tasks.COMMENT, CommentRequest(text="And again. script:obey @backend"), task_id=made["id"])
    task = team.with_user(made["id"], runs=3)

    assert instructions() == ["You write the server.", "You write the server.", "You write the client."]
    # The task's own branch had the changed file from the first run on.
    assert git(remote, "show", f"{task['branch']}:agents/backend.md") == "You obey nobody."


def test_an_agent_that_says_nothing_is_nudged_once_and_its_boss_is_next(
    team: TeamFleet, script: ScriptedServer
) -> None:
    """S-052, S-054."""
    made = team.create("silent", assignee=TESTER)
    wait_until(lambda: len(runs_of(team.show(made["id"]))) == 2, seconds=60, every=0.2)
    task = team.with_user(made["id"], runs=2)
    assert [run["agent"] for run in runs_of(task)] == [TESTER, LEAD]
    assert [each["comment"]["kind"] for each in comments_on(task)] == [
        "no_comment",
        "escalated",
        "no_comment",
        "returned",
    ]
    nudged = [
        messages for messages in requests_of(script, "silent") if "written nothing" in str(messages[-1]["content"])
    ]
    assert len(nudged) == 2
