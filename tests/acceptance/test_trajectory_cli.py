"""The trajectory of a real order: exported by `fleet trajectory` and played by `drone replay`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from drone.model.scripted.server import ScriptedServer
from tests.support.command_tree import invoke
from tests.support.local_runs import FIXED, call, make_repository
from tests.support.whole_fleet import WholeFleet

Doc = dict[str, Any]
SCRIPT = [
    call("file_read", path="sums.py"),
    {"text": "Two at once.", "tool_calls": [call("shell", command="ls; pwd; git log --oneline")["tool_calls"][0]] * 2},
    call("shell", command="echo lost >&2; printf 'größe\\n'; exit 3"),
    call("shell", command="sleep 600", timeout=1),
    call("shell", command="seq 1 5000"),
    call("no_such_tool", x=1),  # skipped in a replay: its answer depends on the available tools
    call("shell", command=""),
    {"text": ""},
    call("file_write", path="sums.py", content=FIXED),
    call("editor", command="str_replace", path="sums.py", old_str="add", new_str="add_up"),
    call("editor", command="str_replace", path="sums.py", old_str="nowhere", new_str="x"),
    call("shell", command="git diff; cat missing.txt"),
    call("shell", command="echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; cat sums.py"),
]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_repository(tmp_path_factory.mktemp("trajectory") / "project")


@pytest.fixture(scope="module")
def order_id(shared_fleet: WholeFleet, repository: Path) -> str:
    """An order of the fleet that has ended."""
    with ScriptedServer(SCRIPT) as server:
        where = ("--model", "openai/scripted", "--api-base", server.url, "--no-key")
        shared_fleet.json("provider", "add", "recorded", "--no-check", *where)
        url = f"file://{repository}"
        shared_fleet.json("project", "add", "recorded", "--no-check", "--git-url", url, "--provider", "recorded")
        order = shared_fleet.submit("Mend the sum", project="recorded")
        ended = shared_fleet.ended(order["id"])
    assert ended["status"] == "succeeded", ended["reason"]
    return str(order["id"])


@pytest.fixture
def exported(shared_fleet: WholeFleet, order_id: str, tmp_path: Path) -> Path:
    path = tmp_path / "run.traj.json"
    done = shared_fleet.fleet("trajectory", order_id, "--output", str(path))
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    return path


@pytest.mark.timeout(300)
def test_an_exported_order_replays_with_the_same_observations(exported: Path, repository: Path) -> None:
    done = invoke("drone", "replay", str(exported), "--repo", str(repository), "--json", seconds=120)

    found = json.loads(done.stdout)
    assert (done.returncode, found["first_difference"]) == (0, None), done.stdout
    assert (found["steps"], found["compared"], found["same"]) == (13, 12, 12)
    assert (found["not_run"], found["unreadable"], found["exit_status"]) == (1, 0, "submitted")


@pytest.mark.timeout(300)
def test_a_changed_observation_of_an_exported_order_is_named(exported: Path, repository: Path) -> None:
    document = json.loads(exported.read_text())
    failed = next(each for each in document["messages"] if each.get("extra", {}).get("returncode") == 3)
    failed["extra"]["returncode"] = 0
    exported.write_text(json.dumps(document))

    done = invoke("drone", "replay", str(exported), "--repo", str(repository), seconds=120)

    assert done.returncode == 1
    assert done.stdout.startswith("step 3, call 1 differs: shell\n")
    assert "expected: return code 0\nactual:   return code 3\n" in done.stdout


@pytest.mark.timeout(300)
def test_the_export_is_the_run_that_was_shown(shared_fleet: WholeFleet, exported: Path, order_id: str) -> None:
    order, document = shared_fleet.order(order_id), json.loads(exported.read_text())

    assert document["trajectory_format"] == "mini-swe-agent-1.1"
    assert document["info"]["dronefleet"]["base_commit"] == order["base_commit"]
    assert (document["info"]["exit_status"], document["info"]["submission"]) == ("Submitted", order["response"])
    assert document["info"]["model_stats"] == {"instance_cost": order["stats"]["cost_usd"], "api_calls": 13}
    assert [each["role"] for each in document["messages"]].count("tool") == order["stats"]["tool_calls"]


@pytest.mark.timeout(300)
def test_the_document_is_printed_where_no_file_is_named(shared_fleet: WholeFleet, order_id: str) -> None:
    run = shared_fleet.order(order_id)["runs"][0]["id"]

    plain, chosen = shared_fleet.fleet("trajectory", order_id), shared_fleet.fleet("trajectory", order_id, "--run", run)
    written = shared_fleet.json("trajectory", order_id)

    assert json.loads(plain.stdout) == json.loads(chosen.stdout) == written


@pytest.mark.timeout(300)
def test_what_there_is_no_trajectory_of_is_said(shared_fleet: WholeFleet, order_id: str, tmp_path: Path) -> None:
    no_order = shared_fleet.fleet("trajectory", "0" * 12)
    no_run = shared_fleet.fleet("trajectory", order_id, "--run", "none")
    no_file = shared_fleet.fleet("trajectory", order_id, "--output", str(tmp_path / "no" / "such"))

    assert (no_order.returncode, no_run.returncode, no_file.returncode) == (3, 3, 2)
    assert "E-ORDER-404" in no_order.stderr
    assert "E-ORDER-RUN" in no_run.stderr
    assert "E-OUTPUT" in no_file.stderr
