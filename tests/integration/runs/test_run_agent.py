"""The agent inside a run, with real tools, endpoint and journal: children, lists, questions, interruptions."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shared.control import Decide
from shared.events import (
    ApprovalStep,
    ChildStep,
    DecisionStep,
    Delivered,
    ToolResultStep,
    UserStep,
)
from shared.outcome import ExitStatus
from shared.transcripts import problems
from tests.support.runs import Bench, said, shell, small_repository
from tests.support.scripted import ScriptedFactory, says


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path, small_repository(tmp_path / "remote.git"))


def calls(name: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": arguments}]}


def all_of(bench: Bench, kind: type[Any]) -> list[Any]:
    return [event.body for event in bench.events if isinstance(event.body, kind)]


def when(bench: Bench, doing: str, act: Callable[[], object]) -> None:
    """Let `act` happen once, a moment after the run says that it does this."""
    waiting = [act]
    bench.on_doing = lambda text: (
        threading.Timer(0.3, waiting.pop()).start() if text.startswith(doing) and waiting else 0
    )


def test_a_child_looks_around_with_the_parents_prefix_and_without_its_tools(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    child = [
        calls("file_read", mode="view", path="README"),
        calls("shell", command="touch made-by-the-child"),
        says("It says hello."),
    ]
    asks = calls("spawn", task="What does the README say? script:child", tools=["file_read"])
    server = scripted({"main": [asks, says("The child says that it says hello.")], "child": child})
    bench.order = bench.order.model_copy(update={"prompt": "Look. script:main"})
    end = bench.run(server.url)
    assert end.exit_status == ExitStatus.STOPPED
    assert all_of(bench, ToolResultStep)[0].output == "It says hello."
    kinds = [step.step["kind"] for step in all_of(bench, ChildStep)]
    assert kinds == [
        "user",
        "assistant",
        "tool_call",
        "tool_result",
        "assistant",
        "tool_call",
        "tool_result",
        "assistant",
    ]
    assert bench.last(Delivered).branch is None
    parent, first = server.requests[0], server.requests[1]
    assert first["messages"][0] == parent["messages"][0]
    assert first["tools"] == parent["tools"]
    assert end.stats.tool_calls == 3


def test_an_interruption_breaks_a_command_off_and_the_model_hears_it(bench: Bench, scripted: ScriptedFactory) -> None:
    word = said("Not that one.", interrupt=True)
    when(bench, "shell: echo begun", lambda: bench.controls.receive(word))
    server = scripted([shell("echo begun; sleep 60"), says("done")])
    end = bench.run(server.url)
    result = all_of(bench, ToolResultStep)[0]
    assert end.status == "success"
    assert result.is_error
    assert result.output.startswith("begun\n")
    heard = all_of(bench, UserStep)[1]
    assert (heard.text, heard.source) == ("Not that one.", "steer")
    assert server.requests[1]["messages"][-1] == {"role": "user", "content": "Not that one."}
    assert problems(server.requests[1]["messages"]) == []


def test_an_interruption_breaks_an_answer_off(bench: Bench, scripted: ScriptedFactory) -> None:
    word = said("Shorter, please. script:short", interrupt=True)
    when(bench, "waiting for the model", lambda: bench.controls.receive(word))
    server = scripted({"main": [{"text": "A long story", "delay_s": 30}], "short": [says("Short.")]})
    bench.order = bench.order.model_copy(update={"prompt": "Tell me. script:main"})
    end = bench.run(server.url)
    assert end.response == "Short."
    assert server.requests[-1]["messages"][-1]["content"] == "Shorter, please. script:short"


def test_a_word_that_comes_while_a_server_starts_waits_for_the_loop(bench: Bench, scripted: ScriptedFactory) -> None:
    server = {"command": "sleep", "args": ["5"], "start_timeout": 1}
    (bench.directory / "home").mkdir()
    (bench.directory / "home/mcp.json").write_text(json.dumps({"mcpServers": {"slow": server}}))
    bench.controls.receive(said("Hear me.", interrupt=True))
    end = bench.run(scripted([says("heard")]).url)
    assert (end.status, end.response) == ("success", "heard")
    assert [step.text for step in all_of(bench, UserStep)][1:] == ["Hear me."]


def decision(bench: Bench, *, approved: bool) -> Decide:
    """The answer to the call that waits."""
    call_id = all_of(bench, ApprovalStep)[-1].call_id
    return Decide(run_id=bench.order.run_id, call_id=call_id, approved=approved, comment="fine")


def test_a_risky_command_waits_and_is_run_when_it_is_approved_or_allowed(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    bench.order = bench.order.model_copy(update={"approve": "risky", "allow": ("rm *.log",)})
    when(bench, "waiting for approval", lambda: bench.controls.receive(decision(bench, approved=True)))
    too_long = f"rm README; : {'x' * 25_000}"
    bench.run(scripted([shell("rm -f a.log"), shell(too_long), shell("rm README"), says("done")]).url)
    assert [(step.command, step.why) for step in all_of(bench, ApprovalStep)] == [
        ("rm README", "Deletes files: rm README")
    ]
    assert [(step.approved, step.by, step.comment) for step in all_of(bench, DecisionStep)] == [
        (True, "person", "fine")
    ]
    # A command that is too long to be shown whole is not run.
    assert [step.execution for step in all_of(bench, ToolResultStep)] == ["answered", "held_back", "answered"]
