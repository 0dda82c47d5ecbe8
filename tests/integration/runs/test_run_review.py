"""A run whose conversation carries a review: the agent is offered the tool for answers, and its answers are events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shared.control import Say
from shared.events import ReviewAnswerStep
from shared.work_order import CarriedComment
from tests.support.runs import Bench, shell, small_repository
from tests.support.scripted import ScriptedFactory, says

ONE, TWO = "a1b2c3000000", "d4e5f6000000"


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, small_repository(tmp_path / "remote.git"))


def answers(*calls: dict[str, str]) -> dict[str, Any]:
    """A scripted reply that answers comments."""
    return {"tool_calls": [{"name": "answer_review", "arguments": call} for call in calls]}


def recorded(bench: Bench) -> list[tuple[str, str]]:
    bodies = [event.body for event in bench.events]
    return [(body.comment, body.verdict) for body in bodies if isinstance(body, ReviewAnswerStep)]


def offered(request: dict[str, Any]) -> bool:
    return "answer_review" in [tool["function"]["name"] for tool in request["tools"]]


def test_a_review_that_arrives_while_it_runs_brings_the_tool_along(bench: Bench, scripted: ScriptedFactory) -> None:
    message = Say(run_id=bench.order.run_id, text="Review: === comment a1b2c3", review=(ONE,))
    told = []

    def tell(text: str) -> None:
        if text.startswith("shell:") and not told:
            told.append(text)
            bench.controls.receive(message)

    bench.on_doing = tell
    server = scripted([shell("true"), answers({"comment": "a1b2c3", "verdict": "done"}), says("done")])
    assert bench.run(server.url).status == "success"
    assert recorded(bench) == [(ONE, "done")]
    assert [offered(request) for request in server.requests] == [False, True, True]


def test_without_a_review_there_is_no_such_tool_and_a_child_agent_does_not_answer(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    answer = answers({"comment": "a1b2c3", "verdict": "done"})
    server = scripted([answer, says("done")])
    bench.run(server.url)
    assert (recorded(bench), offered(server.requests[0])) == ([], False)
    bench.order = bench.order.model_copy(update={"review": (CarriedComment(id=ONE),)})
    spawn = {"tool_calls": [{"name": "spawn", "arguments": {"task": "script:child Look."}}]}
    server = scripted({"default": [spawn, says("done")], "child": [answer, says("found")]})
    bench.run(server.url)
    (result,) = [m["content"] for m in server.requests[2]["messages"] if m["role"] == "tool"]
    assert (recorded(bench), result.startswith("Error: a child agent cannot")) == ([], True)
