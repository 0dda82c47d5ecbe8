"""The trace of a real order, in a stand-in receiver that decodes it: whole and without a hole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from control_plane.contract.declarations import projects
from control_plane.contract.declarations.projects import ProjectEdit
from drone.model.scripted.server import ScriptedServer
from tests.support.otlp_receivers import OtlpReceiver, Received, names_below, only, problems_of
from tests.support.repositories import calc_project
from tests.support.warm_processes import FLEET, run
from tests.support.whole_fleet import WholeFleet

pytestmark = pytest.mark.timeout(300)
TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.fixture
def receiver() -> Iterator[OtlpReceiver]:
    made = OtlpReceiver()
    yield made
    made.close()


def chats(spans: list[Received]) -> list[Received]:
    found = [each for each in spans if each.attributes.get("gen_ai.operation.name") == "chat"]
    return sorted(found, key=lambda each: each.ended)


def test_an_order_is_one_trace_from_its_submission_to_the_push_and_continues_that_of_its_command(
    start_fleet: Callable[..., WholeFleet], receiver: OtlpReceiver, model: ScriptedServer, tmp_path: Path
) -> None:
    fleet = start_fleet(code={"FLEET_OTLP_ENDPOINT": receiver.endpoint})
    fleet.add_work(model.url, f"file://{calc_project(tmp_path / 'calc.git')}")
    with fleet.client() as client:
        client.call(projects.EDIT, ProjectEdit(setup=["true"], verify=["true"]), slug="demo")
    fleet.online("local-1")
    words = ("submit", "A rare wording, script:fix", "--project", "demo", "--follow")
    done = run([*FLEET, *words], {**fleet.environment, "TRACEPARENT": f"00-{TRACE}-{SPAN}-01"})
    assert done.returncode == 0, done.stderr
    order = fleet.json("show", "@last")
    spans = receiver.trace_of(order["id"])

    assert problems_of(spans) == []
    root = only(spans, "order")
    assert (root.trace, root.parent, root.error) == (TRACE, SPAN, "")
    assert root.attributes["dronefleet.order.status"] == "succeeded"
    assert root.attributes["dronefleet.tokens.input"] == order["stats"]["input_tokens"] > 0
    assert names_below(spans, root) == ["queued", "dispatched", "run"]
    phases = names_below(spans, only(spans, "run"))
    assert phases == ["starting", "preparing", "setup", "working", "verifying", "working", "delivering", "ending"]
    assert [each.attributes["gen_ai.request.model"] for each in chats(spans)] == ["scripted"] * 3
    tools = [each.attributes["gen_ai.tool.name"] for each in spans if each.name.startswith("execute_tool ")]
    assert sorted(tools) == ["editor", "shell", "shell", "submit"]
    assert only(spans, "delivering").attributes["dronefleet.delivery.pushed"] is True

    # Nothing of prompt, answers and outputs is in it.
    told = " ".join(str(value) for each in spans for value in each.attributes.values())
    texts = ("A rare wording", "The sign is wrong", "The test names", "calc.py", "its test passes")
    assert [text for text in texts if text in told] == []
