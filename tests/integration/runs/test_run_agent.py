"""The agent inside a run, with real tools, endpoint and journal: children, lists, questions, interruptions."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from shared.control import Compact, Decide
from shared.events import (
    ApprovalStep,
    ChildStep,
    CompactionStep,
    DecisionStep,
    Delivered,
    TodoStep,
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


def test_the_list_of_what_is_left_to_do_is_recorded_whole(bench: Bench, scripted: ScriptedFactory) -> None:
    items = [{"text": "Read", "status": "done"}, {"text": "Write", "status": "in_progress"}]
    bench.run(scripted([calls("todo", items=items), says("done")]).url)
    assert [item.model_dump() for item in all_of(bench, TodoStep)[0].items] == items


def test_a_risky_command_waits_and_is_run_when_it_is_approved(bench: Bench, scripted: ScriptedFactory) -> None:
    bench.order = bench.order.model_copy(update={"approve": "risky"})
    when(bench, "waiting for approval", lambda: bench.controls.receive(decision(bench, approved=True)))
    bench.run(scripted([shell("ls README"), shell("rm README"), says("done")]).url)
    assert [step.why for step in all_of(bench, ApprovalStep)] == ["Deletes files: rm README"]
    assert [step.command for step in all_of(bench, ApprovalStep)] == ["rm README"]
    assert [(step.approved, step.by, step.comment) for step in all_of(bench, DecisionStep)] == [
        (True, "person", "fine")
    ]
    assert [step.return_code for step in all_of(bench, ToolResultStep)] == [0, 0]


def test_a_command_that_is_too_long_to_be_shown_whole_is_not_run(bench: Bench, scripted: ScriptedFactory) -> None:
    bench.order = bench.order.model_copy(update={"approve": "risky"})
    when(bench, "waiting for approval", lambda: bench.controls.receive(decision(bench, approved=True)))
    fits, too_long = (f"rm README; : {'x' * length}" for length in (15_000, 25_000))
    bench.run(scripted([shell(too_long), shell(fits), says("done")]).url)
    assert [step.command for step in all_of(bench, ApprovalStep)] == [fits]
    assert "may have at most 20,000 characters" in all_of(bench, ToolResultStep)[0].output
    assert all_of(bench, ToolResultStep)[0].execution == "held_back"


def test_a_denied_command_is_not_run(bench: Bench, scripted: ScriptedFactory) -> None:
    bench.order = bench.order.model_copy(update={"approve": "risky"})
    when(bench, "waiting for approval", lambda: bench.controls.receive(decision(bench, approved=False)))
    end = bench.run(scripted([shell("rm README"), says("done")]).url)
    assert all_of(bench, ToolResultStep)[0].output == "This call was not approved: fine"
    assert end.status == "success"


def test_what_the_order_allows_does_not_wait(bench: Bench, scripted: ScriptedFactory) -> None:
    bench.order = bench.order.model_copy(update={"approve": "all", "allow": ("rm READ*",)})
    bench.run(scripted([shell("rm README"), says("done")]).url)
    assert all_of(bench, ApprovalStep) == []


def test_an_interruption_breaks_a_command_off_and_the_model_hears_it(bench: Bench, scripted: ScriptedFactory) -> None:
    word = said("Not that one.", interrupt=True)
    when(bench, "shell: echo begun", lambda: bench.controls.receive(word))
    server = scripted([shell("echo begun; sleep 60"), says("done")])
    end = bench.run(server.url)
    result = all_of(bench, ToolResultStep)[0]
    assert end.status == "success"
    assert result.is_error
    assert result.output.startswith("begun\n")
    assert all_of(bench, UserStep)[1].text == "Not that one."
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


def test_a_compaction_that_is_asked_for_happens_before_the_next_question(
    bench: Bench, scripted: ScriptedFactory
) -> None:
    bench.controls.receive(Compact(run_id="run000000000", instructions="Keep the names."))
    reads = [calls("file_read", mode="view", path="README") for _ in range(3)]
    server = scripted([says("They greeted."), *reads, says("done")])
    history = [
        {"role": "user", "content": "Hello. " * 4000},
        {"role": "assistant", "content": "Hello yourself. " * 4000},
    ]
    bench.order = type(bench.order).model_validate(
        {
            **bench.order.model_dump(),
            "context": history,
            "provider": {**bench.order.provider.model_dump(), "context_window": 32_000},
        }
    )
    bench.run(server.url)
    step = all_of(bench, CompactionStep)[0]
    assert step.cause == "asked"
    assert "They greeted." in step.summary
    assert "Keep the names." in str(server.requests[0]["messages"])
    assert [problems(request["messages"]) for request in server.requests] == [[]] * len(server.requests)


def decision(bench: Bench, *, approved: bool) -> Decide:
    """The answer to the call that waits."""
    call_id = all_of(bench, ApprovalStep)[-1].call_id
    return Decide(run_id=bench.order.run_id, call_id=call_id, approved=approved, comment="fine")
