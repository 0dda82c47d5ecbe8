"""A run whose conversation carries a review: the agent is offered the tool for answers, and its answers are events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shared.control import Say
from shared.events import ReviewAnswerStep, ToolResultStep
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


def test_the_agent_answers_the_comments_that_its_order_carries(bench: Bench, scripted: ScriptedFactory) -> None:
    bench.order = bench.order.model_copy(update={"review": (CarriedComment(id=ONE), CarriedComment(id=TWO))})
    both = answers({"comment": "a1b2c3", "verdict": "done"}, {"comment": "d4e5f6", "verdict": "asks", "text": "Why?"})
    server = scripted([shell("echo x > x"), both, says("done")])
    assert bench.run(server.url).status == "success"
    assert recorded(bench) == [(ONE, "done"), (TWO, "asks")]
    assert [offered(request) for request in server.requests] == [True] * 3


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


def test_without_a_review_there_is_no_such_tool(bench: Bench, scripted: ScriptedFactory) -> None:
    server = scripted([answers({"comment": "a1b2c3", "verdict": "done"}), says("done")])
    bench.run(server.url)
    assert (recorded(bench), offered(server.requests[0])) == ([], False)
    assert "there is no tool named 'answer_review'" in bench.last(ToolResultStep).output


def test_a_child_agent_does_not_answer(bench: Bench, scripted: ScriptedFactory) -> None:
    bench.order = bench.order.model_copy(update={"review": (CarriedComment(id=ONE),)})
    spawn = {"tool_calls": [{"name": "spawn", "arguments": {"task": "script:child Look."}}]}
    child = [answers({"comment": "a1b2c3", "verdict": "done"}), says("found")]
    server = scripted({"default": [spawn, says("done")], "child": child})
    bench.run(server.url)
    results = [m["content"] for m in server.requests[2]["messages"] if m["role"] == "tool"]
    assert (recorded(bench), results) == ([], ["Error: a child agent cannot answer a review; put it in your answer."])
