"""Steering from the terminal: say, approve and deny on a real fleet with a real drone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from control_plane.client.fleet import FleetClient
from control_plane.declarations import orders
from drone.model.scripted.server import ScriptedServer
from tests.support import wait_until
from tests.support.repositories import calc_project
from tests.support.whole_fleet import WholeFleet

pytestmark = pytest.mark.timeout(240)
RISKY = ("--approve", "risky")


@pytest.fixture(scope="module")
def fleet(shared_fleet: WholeFleet, model: ScriptedServer, tmp_path_factory: pytest.TempPathFactory) -> WholeFleet:
    remote: Path = calc_project(tmp_path_factory.mktemp("remote") / "steered.git")
    provider = ("--model", "openai/scripted", "--api-base", model.url, "--no-key")
    shared_fleet.json("provider", "add", "steered", "--no-check", *provider)
    shared_fleet.json(
        "project", "add", "steered", "--no-check", "--git-url", f"file://{remote}", "--provider", "steered"
    )
    return shared_fleet


@pytest.fixture(scope="module")
def client(fleet: WholeFleet) -> Iterator[FleetClient]:
    """A client for frequent polling, for which the command line would be too slow."""
    with fleet.client() as made:
        yield made


def submit(fleet: WholeFleet, prompt: str, *options: str) -> str:
    return str(fleet.submit(prompt, *options, project="steered")["id"])


@pytest.fixture
def waiting(fleet: WholeFleet, client: FleetClient) -> str:
    """An order whose first command waits for approval."""
    order_id = submit(fleet, "Remove it, script:risky", *RISKY)
    until_it_waits(client, order_id)
    return order_id


def until_it_waits(client: FleetClient, order_id: str) -> dict[str, Any]:
    def waits() -> dict[str, Any] | None:
        order = client.call(orders.SHOW, order_id=order_id)
        return order if order["status"] == "awaiting_approval" else None

    return wait_until(waits, seconds=90, every=0.3)


def steps(order: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [step for step in order["steps"] if step["kind"] == kind]


def said(order: dict[str, Any]) -> list[tuple[str, str]]:
    """The users' messages, as the model received them."""
    return [(step["source"], step["text"]) for step in steps(order, "user") if step["source"] in {"steer", "follow_up"}]


def test_what_is_said_enters_after_the_running_command(fleet: WholeFleet, waiting: str) -> None:
    done = fleet.fleet("say", waiting, "Mind the tests.")
    fleet.json("approve", waiting)

    assert done.returncode == 0, done.stderr
    order = fleet.ended(waiting)
    kinds = [step["kind"] for step in order["steps"]]
    assert said(order) == [("steer", "Mind the tests.")]
    assert kinds.index("tool_result") < max(n for n, kind in enumerate(kinds) if kind == "user")
    assert (order["response"], order["unheard"]) == ("Answer 1.", [])


def test_a_follow_up_is_read_from_stdin_and_heard_when_the_model_stops(fleet: WholeFleet, waiting: str) -> None:
    fleet.json("say", waiting, "-", "--after", text="And now\nthe rest.")
    fleet.json("approve", waiting)

    order = fleet.ended(waiting)
    assert said(order) == [("follow_up", "And now\nthe rest.")]
    assert order["response"] == "Answer 2."


def test_an_interruption_breaks_off_the_running_command(fleet: WholeFleet, client: FleetClient) -> None:
    order_id = submit(fleet, "Wait for ever, script:hold")
    wait_until(lambda: steps(client.call(orders.SHOW, order_id=order_id), "tool_call"), seconds=90, every=0.3)

    fleet.json("say", order_id, "Enough of that.", "--interrupt")

    order = fleet.ended(order_id)
    assert order["status"] == "succeeded"
    assert said(order) == [("steer", "Enough of that.")]
    assert steps(order, "tool_result")[0]["is_error"]


def test_what_is_said_to_a_queued_order_is_heard_by_its_run(fleet: WholeFleet, waiting: str) -> None:
    session = fleet.order(waiting)["session"]
    second = submit(fleet, "Remove it again, script:risky", "--session", session, "--allow", "*", "--approve", "all")
    assert fleet.order(second)["status"] == "queued"

    fleet.json("say", second, "Be brief.")
    fleet.json("approve", waiting)

    order = fleet.ended(second)
    assert said(order) == [("steer", "Be brief.")]


def test_an_order_that_has_ended_hears_nothing_and_names_the_session_to_go_on_in(fleet: WholeFleet) -> None:
    order = fleet.ended(submit(fleet, "Note it, script:note"))

    done = fleet.fleet("say", order["id"], "More")

    assert done.returncode == 4
    assert f"--session {order['session']}" in done.stderr
    assert fleet.fleet("say", order["id"], "").returncode == 2


def test_a_risky_command_waits_and_runs_when_it_is_approved(fleet: WholeFleet, waiting: str) -> None:
    assert fleet.order(waiting)["waiting_for"]["tool"] == "shell"
    assert f"fleet approve {waiting}" in fleet.fleet("show", waiting).stdout
    assert waiting in fleet.fleet("orders", "--status", "awaiting_approval").stdout

    fleet.json("approve", waiting)

    order = fleet.ended(waiting)
    assert "removed" in steps(order, "tool_result")[0]["output"]
    assert [(step["approved"], step["by"]) for step in steps(order, "decision")] == [(True, "person")]
    assert fleet.fleet("approve", waiting).returncode == 4


def test_a_denied_command_is_not_run_and_the_model_is_told_why(fleet: WholeFleet, waiting: str) -> None:
    call_id = fleet.order(waiting)["waiting_for"]["call_id"]
    assert fleet.fleet("deny", waiting, "--call", "no-such-call").returncode == 3

    fleet.json("deny", waiting, "--call", call_id, "--comment", "we need that file")

    order = fleet.ended(waiting)
    (result,) = steps(order, "tool_result")
    assert result["is_error"]
    assert "we need that file" in result["output"]
    assert order["patch"] == ""


def test_always_lets_the_command_through_in_the_next_order_of_the_session(fleet: WholeFleet, waiting: str) -> None:
    fleet.json("approve", waiting, "--always")
    session = fleet.ended(waiting)["session"]

    again = submit(fleet, "Remove it, script:risky", "--session", session)

    order = fleet.ended(again)
    assert (order["approve"], order["allow"]) == ("risky", ["rm calc.py && echo removed"])
    assert steps(order, "approval") == []


def test_an_allowed_command_never_waits(fleet: WholeFleet) -> None:
    order = fleet.ended(submit(fleet, "Remove it, script:risky", *RISKY, "--allow", "rm *", "--allow", "echo *"))

    assert order["status"] == "succeeded"
    assert steps(order, "approval") == []


def test_a_call_that_nobody_answers_is_denied_by_the_clock(fleet: WholeFleet) -> None:
    order = fleet.ended(submit(fleet, "Remove it, script:risky", *RISKY, "--approval-timeout", "2s"))

    assert [(step["approved"], step["by"]) for step in steps(order, "decision")] == [(False, "clock")]
    assert order["status"] == "succeeded"


def test_an_order_that_waits_can_be_canceled(fleet: WholeFleet, waiting: str) -> None:
    done = fleet.json("cancel", waiting, "--wait")

    assert (done["status"], done["waiting_for"]) == ("canceled", None)
    assert done["receipt"]["survivors"] == 0


def test_an_interruption_ends_the_waiting_and_the_model_goes_on(fleet: WholeFleet, waiting: str) -> None:
    fleet.json("say", waiting, "Leave that file alone.", "--interrupt")

    order = fleet.ended(waiting)
    assert [(step["approved"], step["by"]) for step in steps(order, "decision")] == [(False, "interruption")]
    assert said(order) == [("steer", "Leave that file alone.")]


def test_whoever_follows_sees_the_question_and_the_answer(fleet: WholeFleet) -> None:
    options = ("--project", "steered", *RISKY, "--approval-timeout", "2s", "--follow")

    done = fleet.fleet("submit", "Remove it, script:risky", *options)

    assert "? approval required for shell: Deletes files" in done.stdout
    assert "fleet approve " in done.stdout
    assert "✗ denied: no answer before the deadline" in done.stdout


def test_a_price_that_is_not_known_is_said_to_be_unknown(fleet: WholeFleet) -> None:
    order = fleet.ended(submit(fleet, "Note it, script:note"))

    assert order["stats"]["cost_usd"] is None
    assert "price unknown" in fleet.fleet("show", order["id"]).stdout
    assert "price unknown" in fleet.fleet("orders").stdout


def test_a_providers_window_and_protocol_are_set_in_the_terminal(fleet: WholeFleet) -> None:
    options = ("--model", "openai/x", "--no-key", "--context-window", "16000", "--protocol", "text")
    fleet.json("provider", "add", "windowed", "--no-check", *options)
    changed = fleet.json("provider", "edit", "windowed", "--protocol", "auto")

    assert (changed["context_window"], changed["protocol"]) == (16000, "auto")
    assert "16,000 tokens" in fleet.fleet("provider", "show", "windowed").stdout
    assert json.loads(fleet.fleet("provider", "rm", "windowed", "--yes", "--json").stdout)["name"] == "windowed"


def test_work_with_a_secret_waits_for_a_person_and_is_delivered_when_that_is_approved(
    fleet: WholeFleet, client: FleetClient
) -> None:
    order_id = submit(fleet, "Write an example, script:token")
    asked = until_it_waits(client, order_id)
    assert asked["waiting_for"]["kind"] == "secret"
    assert asked["waiting_for"]["why"] == "the work contains a secret, found in example.txt line 1"
    assert f"fleet approve {order_id}" in fleet.fleet("show", order_id).stdout
    assert fleet.fleet("approve", order_id, "--always").returncode == 2

    fleet.json("approve", order_id)

    order = fleet.ended(order_id)
    assert (order["status"], order["pushed"]) == ("succeeded", True)
    assert fleet.fleet("approve", order_id).returncode == 4


def test_work_with_a_secret_that_is_denied_stays_on_the_drone(fleet: WholeFleet, client: FleetClient) -> None:
    order_id = submit(fleet, "Write an example, script:token")
    until_it_waits(client, order_id)

    fleet.json("deny", order_id, "--comment", "that is a real one")

    order = fleet.ended(order_id)
    assert (order["status"], order["branch"]) == ("failed", None)
    assert "the delivery was denied: that is a real one" in order["reason"]
    assert fleet.fleet("patch", order_id).stdout == ""
