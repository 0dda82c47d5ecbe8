"""The main job as users see it: a prompt goes in, a branch and a patch come back."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import psutil
import pytest

from drone.model.scripted.server import ScriptedServer
from tests.support import wait_until
from tests.support.repositories import calc_project, git
from tests.support.transcripts import transcript_problems
from tests.support.whole_fleet import WholeFleet

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bare repository whose only test fails."""
    return calc_project(tmp_path_factory.mktemp("remote") / "calc.git")


@pytest.fixture(scope="module")
def fleet(shared_fleet: WholeFleet, model: ScriptedServer, remote: Path) -> WholeFleet:
    shared_fleet.add_work(model.url, f"file://{remote}")
    return shared_fleet


def test_following_a_submission_shows_text_calls_and_results_and_ends_with_the_orders_own_code(
    fleet: WholeFleet,
) -> None:
    done = fleet.fleet("submit", "Fix the failing test, script:fix", "--project", "demo", "--follow")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "I look at the files first." in done.stdout
    assert "✓ shell: python3 test_calc.py (" in done.stdout
    assert "return a - b" in done.stdout
    assert "✓ succeeded" in done.stdout


def test_a_work_order_becomes_a_branch_on_the_remote_and_a_patch_that_applies(
    fleet: WholeFleet, remote: Path, tmp_path: Path
) -> None:
    order = fleet.ended(fleet.submit("Fix the failing test, script:fix")["id"])

    assert (order["status"], order["exit_status"], order["pushed"]) == ("succeeded", "submitted", True)
    assert git(remote, "rev-parse", order["branch"]) == order["head_commit"]
    git(tmp_path, "clone", "--quiet", str(remote), "clone")
    subprocess.run(["git", "apply"], cwd=tmp_path / "clone", input=order["patch"], text=True, check=True)
    assert "return a + b" in (tmp_path / "clone" / "calc.py").read_text()


def test_every_call_has_its_one_result_and_the_document_holds_the_whole_story(fleet: WholeFleet) -> None:
    order = fleet.ended(fleet.submit("Fix the failing test, script:fix")["id"])

    assert transcript_problems(order) == []
    assert order["response"] == "calc.add adds now, and its test passes."
    assert order["stats"]["tool_calls"] == 4
    assert order["stats"]["input_tokens"] > 0
    assert [run["status"] for run in order["runs"]] == ["success"]


def test_calls_that_are_broken_unknown_or_outside_the_workspace_are_answered_and_end_nothing(fleet: WholeFleet) -> None:
    order = fleet.ended(fleet.submit("Try odd things, script:odd")["id"])

    results = [step for step in order["steps"] if step["kind"] == "tool_result"]
    assert order["status"] == "succeeded"
    assert transcript_problems(order) == []
    assert [result["is_error"] for result in results] == [True] * 4
    assert "root:" not in json.dumps(results)


def test_following_as_json_gives_an_event_a_line_and_the_document_last(fleet: WholeFleet) -> None:
    done = fleet.fleet("submit", "Note it, script:note", "--project", "demo", "--follow", "--json")

    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0
    assert {"step", "delta", "order"} >= {line["event"] for line in lines[:-1]}
    assert lines[-1]["status"] == "succeeded"
    assert [line["seq"] for line in lines[:-1] if line["event"] == "step"] == list(
        range(1, len(lines[-1]["steps"]) + 1)
    )


def test_an_order_that_fails_ends_the_follower_with_one(fleet: WholeFleet) -> None:
    done = fleet.fleet("submit", "Ask in vain, script:refused", "--project", "demo", "--follow")

    assert done.returncode == 1
    assert "✗ failed" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_a_model_that_fails_now_and_then_is_asked_again_and_tools_run_once(fleet: WholeFleet) -> None:
    order = fleet.ended(fleet.submit("Go on, script:flaky")["id"])

    assert order["response"] == "Said at last."
    assert [step["attempt"] for step in order["steps"] if step["kind"] == "retry"] == [1, 2]


def test_a_running_order_is_canceled_with_a_receipt_of_no_survivors(fleet: WholeFleet) -> None:
    order_id = fleet.submit("Wait for ever, script:hold")["id"]
    _until_the_command_runs(fleet)

    done = fleet.json("cancel", order_id, "--wait")

    assert (done["status"], done["exit_status"]) == ("canceled", "canceled")
    assert done["receipt"]["survivors"] == 0
    assert done["receipt"]["found"] > 0


def test_a_follow_up_in_a_session_goes_on_from_the_work_before(fleet: WholeFleet, remote: Path) -> None:
    first = fleet.ended(fleet.submit("Note it, script:note")["id"])

    second = fleet.ended(fleet.submit("And again, script:note", "--session", first["session"])["id"])

    assert second["base_commit"] == first["head_commit"]
    assert git(remote, "show", f"{second['branch']}:notes.txt").split() == ["noted", "noted"]


def test_submitting_twice_with_one_key_gives_one_order(fleet: WholeFleet) -> None:
    first = fleet.submit("Note it, script:note", "--idempotency-key", "k1")

    assert fleet.submit("Note it, script:note", "--idempotency-key", "k1")["id"] == first["id"]
    refused = fleet.fleet("submit", "Else", "--project", "demo", "--idempotency-key", "k1")
    assert refused.returncode == 4


def test_the_doctor_tells_broker_database_sandbox_python_and_litellm(fleet: WholeFleet) -> None:
    document = fleet.json("doctor")

    found = {check["what"]: check["found"] for check in document["checks"]}
    assert document["url"] == fleet.url
    assert "Valkey" in found["broker"]
    assert "SQLite" in found["database"]
    assert {"sandbox", "python", "litellm"} <= found.keys()


def test_an_embedded_drone_is_not_handed_the_secrets_of_the_control_plane(fleet: WholeFleet) -> None:
    assert fleet.process is not None
    children = psutil.Process(fleet.process.pid).children()
    variables = {tuple(filter(None, child.cmdline()))[-2:]: child.environ() for child in children}

    drone, server = variables["drone.cli.main", "start"], variables["--role", "all"]
    assert "FLEET_BROKER_URL" in server
    assert [name for name in drone if name.startswith("FLEET_")] == []


def _until_the_command_runs(fleet: WholeFleet) -> None:
    """Its call is recorded a moment before its processes are there, and a receipt counts processes."""
    assert fleet.process is not None
    whole = psutil.Process(fleet.process.pid)

    def runs() -> bool:
        below = {process.pid for process in whole.children(recursive=True)}
        holding = [each.pid for each in psutil.process_iter(["cmdline"]) if each.info["cmdline"] == ["sleep", "300"]]
        return not below.isdisjoint(holding)

    wait_until(runs, seconds=60, every=0.3)
