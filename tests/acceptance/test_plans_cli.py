"""Plans with people on a real fleet: presented, edited, approved in parts, sent back, and continued elsewhere."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from control_plane.client.fleet import FleetClient
from control_plane.declarations import orders
from drone.model.scripted.server import ScriptedServer
from tests.acceptance.test_questions_cli import killed
from tests.support import wait_until
from tests.support.repositories import calc_project
from tests.support.whole_fleet import Doc, WholeFleet

# Two drones are lost one after the other, and silence is noticed after 75 s.
pytestmark = pytest.mark.timeout(1800)
EDITED = """# Add notes, edited

1. [x] Write one.txt with a heading
   Verify: cat one.txt
2. [x] Write two.txt
3. [x] Write a changelog
4. [ ] Write three.txt
"""


@pytest.fixture(scope="module")
def fleet(shared_fleet: WholeFleet, model: ScriptedServer, tmp_path_factory: pytest.TempPathFactory) -> WholeFleet:
    remote: Path = calc_project(tmp_path_factory.mktemp("remote") / "planned.git")
    provider = ("--model", "openai/scripted", "--api-base", model.url, "--no-key")
    shared_fleet.json("provider", "add", "planned", "--no-check", *provider)
    added = ("--no-check", "--git-url", f"file://{remote}", "--provider", "planned")
    shared_fleet.json("project", "add", "planned", *added)
    return shared_fleet


@pytest.fixture(scope="module")
def client(fleet: WholeFleet) -> Iterator[FleetClient]:
    """A client for frequent polling, for which the command line would be too slow."""
    with fleet.client() as made:
        yield made


def until_presented(client: FleetClient, order_id: str, number: int = 1) -> Doc:
    """The order's document once its plan of this round waits."""

    def presented() -> Any:
        order = client.call(orders.SHOW, order_id=order_id)
        waits = order["waiting_for"]
        return waits and waits["call_id"] == f"plan-{number}" and order

    return dict(wait_until(presented, seconds=120, every=0.3))


def reports(order: Doc) -> dict[int, str]:
    """The line of each point in the order's document."""
    return {point["number"]: point["report"] for point in order["plan"]["points"]}


def waiting_workspace(order: Doc, after_attempt: int) -> Path | None:
    """The workspace of the order's latest run, once that came after this attempt and waits in a command."""
    assert not order["ended_at"], (order["status"], order["exit_status"], order["runs"])
    run = max(order["runs"], key=lambda each: int(each["attempt"]))
    steps = [step for step in order["steps"] if step["run"] == run["id"]]
    waits = run["attempt"] > after_attempt and any(step["kind"] == "tool_call" for step in steps)
    return Path(next(step["workspace"] for step in steps if step["kind"] == "prepared")) if waits else None


def test_a_plan_is_sent_back_presented_again_and_approved_in_part(fleet: WholeFleet, client: FleetClient) -> None:
    order_id = str(fleet.submit("Notes, script:plan_rounds", "--plan-first", project="planned")["id"])
    until_presented(client, order_id)
    assert "1. [x] Write one.txt" in fleet.fleet("plan", "show", order_id).stdout
    assert f"next  fleet plan show {order_id}" in fleet.fleet("inbox", "--kind", "plan").stdout

    fleet.json("plan", "send-back", order_id, "Use two.txt")
    until_presented(client, order_id, 2)
    fleet.json("plan", "approve", order_id, "--points", "1", "--comment", "Be brief")

    order = fleet.ended(order_id)
    said = "\n".join(step["text"] for step in order["steps"] if step["kind"] == "user")
    assert "bootstrap sent your plan back:\n\nUse two.txt" in said
    assert "1. Write two.txt\n2. NOT APPROVED, do not do this: Write more" in said
    assert "Their comment: Be brief" in said
    assert (order["status"], order["response"], order["files_changed"]) == ("succeeded", "Done.", 1)
    assert reports(order) == {1: "done", 2: ""}
    again = fleet.fleet("plan", "approve", order_id)
    assert (again.returncode, "its plan can no longer be decided" in again.stderr) == (4, True)


def test_a_wrong_edit_or_approval_is_refused_and_a_cancel_ends_the_wait(
    fleet: WholeFleet, client: FleetClient, tmp_path: Path
) -> None:
    order_id = str(fleet.submit("Notes, script:plan", "--plan-first", project="planned")["id"])
    until_presented(client, order_id)
    file = tmp_path / "plan.md"
    file.write_text("There is no list here.\n")
    refused = fleet.fleet("plan", "edit", order_id, str(file))
    assert (refused.returncode, "cannot be read as a plan" in refused.stderr) == (2, True)
    for points, says in (("7", "the plan has no point 7"), ("", "no point of the plan is approved")):
        refused = fleet.fleet("plan", "approve", order_id, "--points", points)
        assert (refused.returncode, says in refused.stderr) == (2, True), refused.stderr
    fleet.json("cancel", order_id)
    order = fleet.ended(order_id)
    assert (order["status"], order["files_changed"]) == ("canceled", 0)
    assert [step["execution"] for step in order["steps"] if step["kind"] == "tool_result"] == ["held_back", "answered"]


def test_an_edited_plan_outlives_its_drone_before_and_after_its_approval(
    start_fleet: Callable[..., WholeFleet], model: ScriptedServer, tmp_path: Path
) -> None:
    fleet = start_fleet(drones=0)
    fleet.add_work(model.url, f"file://{calc_project(tmp_path / 'calc.git')}")
    oka, ada = fleet.workstation("oka"), fleet.workstation("ada")
    oka.start()
    fleet.online("oka")
    order_id = str(fleet.submit("Notes, script:plan", "--plan-first")["id"])
    with fleet.client() as client:
        first = until_presented(client, order_id)
        edited = fleet.json("plan", "edit", order_id, "-", text=EDITED)
        assert (edited["revision"], edited["points"][2]["text"]) == (1, "Write a changelog")
        fleet.stop(signal.SIGTERM)
        fleet.start()

    killed(oka.process)
    ada.start()
    with fleet.client() as client:
        wait_until(lambda: fleet.order(order_id)["generation"] > first["generation"], seconds=240, every=0.5)
        second = until_presented(client, order_id)
    assert second["waiting_for"]["plan"]["text"] == EDITED
    fleet.json("plan", "approve", order_id)
    wait_until(lambda: "1  Write one.txt with a heading: done" in fleet.fleet("show", order_id).stdout, seconds=60)

    killed(ada.process)
    oka.start()
    work = wait_until(lambda: waiting_workspace(fleet.order(order_id), 2), seconds=240, every=0.5)
    (work / "go").touch()

    order = fleet.ended(order_id)
    assert (order["status"], order["drone"]) == ("succeeded", "oka")
    assert reports(order) == {
        1: "done",
        2: "changed in abcdef1: In another file",
        3: "skipped: No longer needed",
        4: "",
    }
    assert len([step for step in order["steps"] if step["kind"] == "plan"]) == 1


def test_at_its_limit_of_steps_an_order_waits_for_more_or_ends(fleet: WholeFleet, client: FleetClient) -> None:
    limited = ("--max-iterations", "2", "--on-limit", "ask")
    order_id = str(fleet.submit("Count, script:three", *limited, project="planned")["id"])
    waits = until_it_waits(client, order_id)
    assert (waits["kind"], waits["limit"], waits["why"]) == ("limit", "steps", "The limit of 2 steps is reached")
    assert f"fleet approve {order_id} --raise-steps N" in fleet.fleet("inbox", "--kind", "limit").stdout
    refused = fleet.fleet("approve", order_id, "--raise", "5")
    assert (refused.returncode, "--raise-steps" in refused.stderr) == (2, True)

    fleet.json("approve", order_id, "--raise-steps", "5")
    order = fleet.ended(order_id)
    assert (order["exit_status"], order["response"]) == ("stopped", "Three steps done.")

    order_id = str(fleet.submit("Count, script:three", *limited, project="planned")["id"])
    until_it_waits(client, order_id)
    fleet.json("deny", order_id)
    order = fleet.ended(order_id)
    assert (order["status"], order["exit_status"], order["files_changed"]) == ("succeeded", "max_iterations", 1)


def until_it_waits(client: FleetClient, order_id: str) -> Doc:
    """What the order waits for, once it does."""
    waits = wait_until(lambda: client.call(orders.SHOW, order_id=order_id)["waiting_for"], seconds=120, every=0.3)
    return dict(waits)
