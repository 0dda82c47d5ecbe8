"""Steering from the terminal, on a real fleet with a real drone: what is said, and what is denied."""

from __future__ import annotations

from pathlib import Path

import pytest

from drone.model.scripted.server import ScriptedServer
from tests.support import wait_until
from tests.support.repositories import calc_project
from tests.support.whole_fleet import Doc, WholeFleet

pytestmark = pytest.mark.timeout(240)


def steps(order: Doc, kind: str) -> list[Doc]:
    return [step for step in order["steps"] if step["kind"] == kind]


def test_a_denied_command_is_not_run_and_the_model_is_told_why(
    shared_fleet: WholeFleet, model: ScriptedServer, tmp_path: Path
) -> None:
    fleet = shared_fleet
    fleet.add_work(model.url, calc_project(tmp_path / "steered.git").as_uri(), slug="steered", provider="steered")
    order_id = fleet.submit("Remove it, script:risky", "--approve", "risky", project="steered")["id"]
    wait_until(lambda: fleet.order(order_id)["status"] == "awaiting_approval", every=0.3)
    call_id = fleet.order(order_id)["waiting_for"]["call_id"]
    assert f"fleet approve {order_id}" in fleet.fleet("show", order_id).stdout
    assert fleet.fleet("say", order_id, "Mind the tests.").returncode == 0
    fleet.json("say", order_id, "-", "--after", text="And now\nthe rest.")
    assert fleet.fleet("deny", order_id, "--call", "no-such-call").returncode == 3
    fleet.json("deny", order_id, "--call", call_id, "--comment", "we need that file")

    order = fleet.ended(order_id)
    (result,) = steps(order, "tool_result")
    assert (result["is_error"], "we need that file" in result["output"]) == (True, True)
    assert [(step["approved"], step["by"]) for step in steps(order, "decision")] == [(False, "person")]
    assert (order["patch"], order["unheard"]) == ("", [])
    # The users' messages, as the model received them.
    said = [(step["source"], step["text"]) for step in steps(order, "user")][1:]
    assert said == [("steer", "Mind the tests."), ("follow_up", "And now\nthe rest.")]
    assert fleet.fleet("approve", order_id).returncode == 4
