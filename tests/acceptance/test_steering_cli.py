"""Steering from the terminal, on a real fleet with a real drone: say, approve, deny, and work with a secret."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from control_plane.contract.client.fleet import FleetClient
from control_plane.contract.declarations import orders
from drone.model.scripted.server import ScriptedServer
from tests.support import wait_until
from tests.support.repositories import calc_project
from tests.support.whole_fleet import Doc, WholeFleet

pytestmark = pytest.mark.timeout(240)
RISKY = ("--approve", "risky")


@pytest.fixture(scope="module")
def fleet(shared_fleet: WholeFleet, model: ScriptedServer, tmp_path_factory: pytest.TempPathFactory) -> WholeFleet:
    remote = calc_project(tmp_path_factory.mktemp("remote") / "steered.git")
    shared_fleet.add_work(model.url, f"file://{remote}", slug="steered", provider="steered")
    return shared_fleet


@pytest.fixture(scope="module")
def client(fleet: WholeFleet) -> Iterator[FleetClient]:
    """A client for frequent polling, for which the command line would be too slow."""
    with fleet.client() as made:
        yield made


def submit(fleet: WholeFleet, prompt: str, *options: str) -> str:
    return str(fleet.submit(prompt, *options, project="steered")["id"])


def until_it_waits(client: FleetClient, order_id: str) -> Doc:
    def waits() -> Doc | None:
        order = client.call(orders.SHOW, order_id=order_id)
        return order if order["status"] == "awaiting_approval" else None

    return wait_until(waits, seconds=90, every=0.3)


def steps(order: Doc, kind: str) -> list[Doc]:
    return [step for step in order["steps"] if step["kind"] == kind]


def said(order: Doc) -> list[tuple[str, str]]:
    """The users' messages, as the model received them."""
    return [(step["source"], step["text"]) for step in steps(order, "user") if step["source"] in {"steer", "follow_up"}]


def decisions(order: Doc) -> list[tuple[Any, Any]]:
    return [(step["approved"], step["by"]) for step in steps(order, "decision")]


def test_a_denied_command_is_not_run_and_the_model_is_told_why(fleet: WholeFleet, client: FleetClient) -> None:
    order_id = submit(fleet, "Remove it, script:risky", *RISKY)
    call_id = until_it_waits(client, order_id)["waiting_for"]["call_id"]
    assert f"fleet approve {order_id}" in fleet.fleet("show", order_id).stdout
    assert fleet.fleet("say", order_id, "Mind the tests.").returncode == 0
    fleet.json("say", order_id, "-", "--after", text="And now\nthe rest.")
    assert fleet.fleet("deny", order_id, "--call", "no-such-call").returncode == 3
    fleet.json("deny", order_id, "--call", call_id, "--comment", "we need that file")

    order = fleet.ended(order_id)
    (result,) = steps(order, "tool_result")
    assert (result["is_error"], "we need that file" in result["output"]) == (True, True)
    assert (order["patch"], order["unheard"], decisions(order)) == ("", [], [(False, "person")])
    assert said(order) == [("steer", "Mind the tests."), ("follow_up", "And now\nthe rest.")]
    assert fleet.fleet("approve", order_id).returncode == 4


def test_work_with_a_secret_waits_for_a_person_and_is_delivered_only_when_that_is_approved(
    fleet: WholeFleet, client: FleetClient
) -> None:
    approved, denied = (submit(fleet, "Write an example, script:token") for _ in range(2))
    asked = until_it_waits(client, approved)["waiting_for"]
    assert fleet.fleet("approve", approved, "--always").returncode == 2
    fleet.json("approve", approved)
    delivered = fleet.ended(approved)
    until_it_waits(client, denied)
    fleet.json("deny", denied, "--comment", "that is a real one")
    kept = fleet.ended(denied)

    assert (asked["kind"], "example.txt line 1" in asked["why"]) == ("secret", True)
    assert (delivered["status"], delivered["pushed"]) == ("succeeded", True)
    assert (kept["status"], kept["branch"], "that is a real one" in kept["reason"]) == ("failed", None, True)
    assert fleet.fleet("patch", denied).stdout == ""
