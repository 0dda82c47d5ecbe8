"""Traces of real orders, in a stand-in receiver that decodes them: whole, without a hole, however the order ended."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import psutil
import pytest

from control_plane.declarations import orders, projects
from control_plane.declarations.projects import ProjectEdit
from drone.model.scripted.server import ScriptedServer
from tests.support import wait_until
from tests.support.ending import wait_for_end
from tests.support.otlp_receivers import OtlpReceiver, Received, names_below, only, problems_of
from tests.support.repositories import calc_project
from tests.support.warm_processes import FLEET, run
from tests.support.whole_fleet import WholeFleet

pytestmark = pytest.mark.timeout(600)
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.fixture(scope="module")
def receiver() -> Iterator[OtlpReceiver]:
    made = OtlpReceiver()
    yield made
    made.close()


@pytest.fixture(scope="module")
def fleet(
    receiver: OtlpReceiver, model: ScriptedServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WholeFleet]:
    """A fleet that exports its traces, with one drone, and a project with a set-up and a verifying command."""
    home = tmp_path_factory.mktemp("traced")
    fleet = WholeFleet(home, drones=0, code={"FLEET_OTLP_ENDPOINT": receiver.endpoint})
    try:
        fleet.start()
        fleet.add_work(model.url, f"file://{calc_project(home / 'calc.git')}")
        with fleet.client() as client:
            client.call(projects.EDIT, ProjectEdit(setup=["true"], verify=["true"]), slug="demo")
        fleet.workstation("oka").start()
        fleet.online("oka")
        yield fleet
    finally:
        fleet.close()


def chats(spans: list[Received]) -> list[Received]:
    return [each for each in spans if each.attributes.get("gen_ai.operation.name") == "chat"]


def until(fleet: WholeFleet, order_id: str, status: str) -> None:
    with fleet.client() as client:
        wait_until(lambda: client.call(orders.SHOW, order_id=order_id)["status"] == status, seconds=120, every=0.2)


def until_in_a_call(fleet: WholeFleet, order_id: str) -> None:
    def begun() -> bool:
        return any(step["kind"] == "tool_call" for step in fleet.order(order_id)["steps"])

    wait_until(begun, seconds=120, every=0.2)


def test_an_ordinary_order_is_one_trace_from_its_submission_to_the_push(
    fleet: WholeFleet, receiver: OtlpReceiver
) -> None:
    order = fleet.ended(str(fleet.submit("Fix it, script:fix")["id"]))
    spans = receiver.trace_of(order["id"])

    assert problems_of(spans) == []
    root, attempt = only(spans, "order"), only(spans, "run")
    assert names_below(spans, root) == ["queued", "dispatched", "run"]
    phases = names_below(spans, attempt)
    assert phases == ["starting", "preparing", "setup", "working", "verifying", "working", "delivering", "ending"]
    assert [each.attributes["gen_ai.request.model"] for each in chats(spans)] == ["scripted"] * 3
    tools = [each.attributes["gen_ai.tool.name"] for each in spans if each.name.startswith("execute_tool ")]
    assert sorted(tools) == ["editor", "shell", "shell", "submit"]
    assert (root.attributes["dronefleet.order.status"], root.error) == ("succeeded", "")
    assert root.attributes["dronefleet.tokens.input"] == order["stats"]["input_tokens"] > 0
    assert only(spans, "delivering").attributes["dronefleet.delivery.pushed"] is True
    assert only(spans, "verifying").attributes["dronefleet.verify.passed"] is True


def test_no_text_of_prompt_answer_or_output_is_in_a_trace(fleet: WholeFleet, receiver: OtlpReceiver) -> None:
    order = fleet.ended(str(fleet.submit("A rare wording, script:fix")["id"]))
    spans = receiver.trace_of(order["id"])

    told = " ".join(str(value) for each in spans for value in each.attributes.values())
    texts = ("A rare wording", "The sign is wrong", "The test names", "calc.py", "its test passes")
    assert [text for text in texts if text in told] == []


def test_an_order_whose_drone_was_killed_has_both_runs_and_the_time_between_them(
    fleet: WholeFleet, receiver: OtlpReceiver
) -> None:
    order_id = str(fleet.submit("Hold on, script:nap")["id"])
    until_in_a_call(fleet, order_id)
    oka = fleet.workstations[0]
    kill_all_of(oka.process)
    oka.start()
    fleet.ended(order_id)
    spans = receiver.trace_of(order_id)

    assert problems_of(spans) == []
    first, second = sorted((each for each in spans if each.name == "run"), key=lambda each: each.began)
    assert (first.error, second.error) == ("lost", "")
    below = names_below(spans, only(spans, "order"))
    assert below == ["queued", "dispatched", "run", "queued", "dispatched", "run"]
    assert names_below(spans, first)[:2] == ["starting", "preparing"]


def test_a_canceled_order_ends_in_its_run(fleet: WholeFleet, receiver: OtlpReceiver) -> None:
    order_id = str(fleet.submit("Hold, script:hold")["id"])
    until_in_a_call(fleet, order_id)
    fleet.json("cancel", order_id, "--wait")
    spans = receiver.trace_of(order_id)

    assert problems_of(spans) == []
    root, attempt = only(spans, "order"), only(spans, "run")
    assert (root.attributes["dronefleet.order.status"], root.error) == ("canceled", "")
    assert (attempt.attributes["dronefleet.run.status"], attempt.ended) == ("preempted", root.ended)
    assert only(spans, "execute_tool shell").error == "broken_off"


def test_an_order_that_waited_for_approval_has_the_wait_within_its_call(
    fleet: WholeFleet, receiver: OtlpReceiver
) -> None:
    order_id = str(fleet.submit("Do it, script:note", "--approve", "all")["id"])
    until(fleet, order_id, "awaiting_approval")
    fleet.json("approve", order_id)
    fleet.ended(order_id)
    spans = receiver.trace_of(order_id)

    assert problems_of(spans) == []
    wait, call = only(spans, "wait for user"), only(spans, "execute_tool shell")
    assert wait.parent == call.id
    assert (wait.attributes["dronefleet.wait.kind"], wait.attributes["dronefleet.wait.approved"]) == ("approval", True)
    assert call.began <= wait.began < wait.ended <= call.ended


def test_an_order_that_no_drone_took_was_queued_until_it_was_canceled(
    fleet: WholeFleet, receiver: OtlpReceiver
) -> None:
    order_id = str(fleet.submit("Nobody takes it", "--label", "gpu=yes")["id"])
    fleet.json("cancel", order_id, "--wait")
    spans = receiver.trace_of(order_id)

    assert problems_of(spans) == []
    assert sorted(each.name for each in spans) == ["order", "queued"]


def test_an_order_runs_again_in_the_same_trace_below_its_first_span(fleet: WholeFleet, receiver: OtlpReceiver) -> None:
    order_id = str(fleet.submit("Try, script:refused")["id"])
    assert fleet.ended(order_id)["status"] == "failed"
    first = receiver.trace_of(order_id)
    fleet.json("retry", order_id)
    fleet.ended(order_id)

    def both() -> Any:
        spans = receiver.trace_of(order_id)
        return len([each for each in spans if each.name == "order"]) > 1 and spans

    spans = wait_until(both, seconds=60)
    root = only(first, "order")
    again = [each for each in spans if each not in first]
    assert (problems_of(first), root.error) == ([], "model_error")
    assert only(again, "order").parent == root.id
    assert problems_of(again) == []
    assert [each.error for each in chats(first)] == ["model_error"]


def test_calls_that_failed_and_the_pauses_before_they_were_repeated_are_seen(
    fleet: WholeFleet, receiver: OtlpReceiver
) -> None:
    order = fleet.ended(str(fleet.submit("Ask, script:flaky")["id"]))
    spans = receiver.trace_of(order["id"])

    assert problems_of(spans) == []
    assert [bool(each.error) for each in sorted(chats(spans), key=lambda each: each.ended)] == [True, True, False]
    pauses = [each for each in spans if each.name == "retry pause"]
    assert len(pauses) == 2
    assert min(each.ms for each in pauses) > 500


def test_the_command_line_continues_the_trace_that_its_environment_names(
    fleet: WholeFleet, receiver: OtlpReceiver
) -> None:
    words = [*FLEET, "submit", "Note it, script:note", "--project", "demo", "--json", "--follow"]
    done = run(words, {**fleet.environment, "TRACEPARENT": f"00-{TRACE}-{SPAN}-01"})
    assert done.returncode == 0, done.stderr
    [root] = wait_until(lambda: [each for each in receiver.received() if each.trace == TRACE and each.name == "order"])

    assert root.parent == SPAN


def kill_all_of(process: Any) -> None:
    """Kill all processes of a drone at once, as a power cut does."""
    found = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
    for act in (psutil.Process.suspend, psutil.Process.kill):
        for each in found:
            # A command of the agent may have ended since.
            with suppress(psutil.NoSuchProcess):
                act(each)
    wait_for_end(each.pid for each in found)
    process.wait(60)
