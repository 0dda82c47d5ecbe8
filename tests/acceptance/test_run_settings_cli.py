"""Limits, modes, messages and branches from the terminal, on a real fleet with a real drone."""

from __future__ import annotations

from pathlib import Path

import pytest

from drone.model.scripted.server import ScriptedServer
from tests.acceptance.test_steering_cli import said, steps, until_it_waits
from tests.support import wait_until
from tests.support.repositories import calc_project
from tests.support.whole_fleet import WholeFleet

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def fleet(shared_fleet: WholeFleet, model: ScriptedServer, tmp_path_factory: pytest.TempPathFactory) -> WholeFleet:
    remote: Path = calc_project(tmp_path_factory.mktemp("remote") / "settings.git")
    provider = ("--model", "openai/scripted", "--api-base", model.url, "--no-key")
    shared_fleet.json("provider", "add", "settings", "--no-check", *provider)
    shared_fleet.json(
        "project", "add", "settings", "--no-check", "--git-url", f"file://{remote}", "--provider", "settings"
    )
    return shared_fleet


def test_an_order_runs_with_the_limits_and_the_mode_that_were_set(fleet: WholeFleet) -> None:
    fleet.json("project", "edit", "settings", "--limit", "max_iterations=1", "--limit", "retry_enabled=false")
    fleet.json("mode", "add", "looking", "--text", "Only look.", "--tool", "file_read", "--project", "settings")
    order = fleet.submit("Remove it, script:risky", "--mode", "looking", "--limit", "max_retries=7", project="settings")
    done = fleet.ended(order["id"])
    fleet.json("project", "edit", "settings", "--no-limits")
    assert (done["mode"], done["exit_status"]) == ("looking", "max_iterations")
    assert done["limits"]["max_iterations"] == {"value": 1, "source": "project"}
    assert done["limits"]["max_retries"] == {"value": 7, "source": "order"}
    assert "there is no tool named 'shell'" in steps(done, "tool_result")[0]["output"]
    shown = fleet.fleet("show", order["id"]).stdout
    assert "max_iterations 1 (project)" in shown
    assert "retry_enabled false (project)" in shown


def test_a_message_is_taken_back_before_the_agent_reads_it(fleet: WholeFleet) -> None:
    with fleet.client() as client:
        order_id = str(fleet.submit("Remove it, script:risky", "--approve", "risky", project="settings")["id"])
        until_it_waits(client, order_id)
    fleet.json("say", order_id, "Never mind the tests.")
    fleet.json("say", order_id, "Mind the tests.")
    first, second = fleet.json("queue", "ls", order_id)
    fleet.json("queue", "clear", order_id, "--message", first["id"])
    wait_until(lambda: [each["id"] for each in fleet.json("queue", "ls", order_id)] == [second["id"]], seconds=60)
    fleet.json("approve", order_id)
    done = fleet.ended(order_id)
    assert said(done) == [("steer", "Mind the tests.")]
    remarks = [step["text"] for step in steps(done, "comment")]
    assert remarks == ["Taken back before the agent read it: Never mind the tests."]


def test_a_turn_after_a_switch_begins_with_the_summary_of_what_was_left(fleet: WholeFleet) -> None:
    first = fleet.submit("First, script:talk", project="settings")
    fleet.ended(first["id"])
    session = str(first["session"])
    fleet.ended(str(fleet.submit("Second, script:talk", "--session", session, project="settings")["id"]))
    fleet.json("session", "switch", session, str(first["id"]), "--summarize")
    third = fleet.ended(str(fleet.submit("Third, script:talk", "--session", session, project="settings")["id"]))
    (summary,) = [step for step in steps(third, "comment") if step["left_leaf"]]
    opening = next(step["text"] for step in steps(third, "user") if step["source"] == "prompt")
    assert summary["text"] in opening
    notes = [each["kind"] for each in fleet.json("session", "show", session)["entries"]]
    assert notes.count("branch_summary") == 1


def test_an_order_is_verified_by_its_own_checks(fleet: WholeFleet) -> None:
    fleet.json("project", "edit", "settings", "--verify", "false")
    checks = ("--verify", "test -f calc.py", "--verify", "grep -q 'a + b' calc.py")
    order = fleet.submit("Fix it, script:fix", *checks, project="settings")
    done = fleet.ended(order["id"])
    fleet.json("project", "edit", "settings", "--no-verify")
    assert done["verify"] == ["test -f calc.py", "grep -q 'a + b' calc.py"]
    assert [(step["command"], step["passed"]) for step in steps(done, "verify")] == [
        (each, True) for each in done["verify"]
    ]
    assert done["verification"] == "verified"
    assert "check    grep -q 'a + b' calc.py" in fleet.fleet("show", order["id"]).stdout
