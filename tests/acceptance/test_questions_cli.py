"""Questions and plans of agents on a real fleet: answered at a terminal, after what asked was killed."""

from __future__ import annotations

import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from control_plane.contract.client.fleet import FleetClient
from control_plane.contract.declarations import orders
from drone.model.scripted.server import ScriptedServer
from tests.support import wait_until
from tests.support.ending import kill_all
from tests.support.repositories import calc_project
from tests.support.terminals import running
from tests.support.warm_processes import FLEET
from tests.support.whole_fleet import Doc, WholeFleet

pytestmark = pytest.mark.timeout(300)
EDITED = """# Add notes, edited

1. [x] Write one.txt with a heading
   Verify: cat one.txt
2. [x] Write two.txt
3. [x] Write a changelog
4. [ ] Write three.txt
"""


def waits(client: FleetClient, order_id: str, after: int = 0) -> Doc | None:
    """The order's document, if it waits for a user in a generation after this one."""
    order = client.call(orders.SHOW, order_id=order_id)
    return order if order["waiting_for"] and order["generation"] > after else None


def answers(order: Doc) -> list[str]:
    """What the questions of the order's current path came to."""
    asked = {step["call_id"] for step in order["steps"] if step["kind"] == "tool_call" and step["tool"] == "ask"}
    ended = [step for step in order["steps"] if step["kind"] == "tool_result" and not step["undone"]]
    return [step["output"] for step in ended if step["call_id"] in asked]


def test_a_question_and_an_edited_plan_outlive_their_drone_and_their_control_plane_and_are_answered_at_a_terminal(
    start_fleet: Callable[..., WholeFleet], model: ScriptedServer, tmp_path: Path
) -> None:
    fleet = start_fleet(drones=0)
    fleet.add_work(model.url, f"file://{calc_project(tmp_path / 'calc.git')}")
    oka = fleet.workstation("oka", "--concurrency", "2")
    oka.start()
    fleet.online("oka")
    question = str(fleet.submit("Choose, script:ask")["id"])
    plan = str(fleet.submit("Notes, script:plan", "--plan-first")["id"])
    with fleet.client() as client:
        before = [wait_until(partial(waits, client, each), seconds=120, every=0.3) for each in (question, plan)]
    fleet.json("plan", "edit", plan, "-", text=EDITED)
    fleet.stop(signal.SIGTERM)
    fleet.start()
    [asked] = fleet.json("inbox", "--kind", "question")
    assert (asked["order"], asked["choices"]) == (question, ["PostgreSQL", "SQLite"])
    # Without a terminal and without a text there is no answer.
    assert fleet.fleet("answer", question, text="").returncode == 2

    kill_all(oka.process)
    oka.start()
    with fleet.client() as client:
        again = [
            wait_until(partial(waits, client, each["id"], each["generation"]), seconds=120, every=0.5)
            for each in before
        ]
    assert again[1]["waiting_for"]["plan"]["text"] == EDITED
    with running([*FLEET, "answer", question], fleet.environment) as (shown, process):
        wait_until(lambda: "Answer:" in shown.text)
        assert "1  PostgreSQL" in shown.text
        shown.types("2\n")
        assert process.wait(60) == 0
    fleet.json("plan", "approve", plan)
    work = wait_until(lambda: waiting_workspace(fleet.order(plan)), seconds=120, every=0.5)
    (work / "go").touch()

    answered, planned = fleet.ended(question), fleet.ended(plan)
    assert (answered["status"], answers(answered)) == ("succeeded", ["bootstrap chose: SQLite"])
    assert (planned["status"], len(planned["runs"])) == ("succeeded", 2)
    assert {point["number"]: point["report"] for point in planned["plan"]["points"]} == {
        1: "done",
        2: "changed in abcdef1: In another file",
        3: "skipped: No longer needed",
        4: "",
    }


def waiting_workspace(order: Doc) -> Path | None:
    """The workspace of the order's latest run, once it waits in a command."""
    assert not order["ended_at"], (order["status"], order["exit_status"], order["runs"])
    run = max(order["runs"], key=lambda each: int(each["attempt"]))
    steps = [step for step in order["steps"] if step["run"] == run["id"]]
    in_command = any(step["kind"] == "tool_call" and step["tool"] == "shell" for step in steps)
    return Path(next(step["workspace"] for step in steps if step["kind"] == "prepared")) if in_command else None
