"""A run that waits for a person ends at the calls that have no result, and another goes on with exactly these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from shared.control import Decide, Suspend
from shared.events import (
    ApprovalStep,
    AssistantStep,
    CheckpointStep,
    DecisionStep,
    Delivered,
    ToolCallStep,
    ToolResultStep,
)
from tests.support.runs import Bench, KeptCheckpoints, going_on
from tests.support.scripted import ScriptedFactory, says
from tests.support.transcripts import problems

pytestmark = pytest.mark.usefixtures("warm_model")
RISKY = "rm -f README; echo b > b"


@pytest.fixture
def bench(bench: Bench) -> Bench:
    bench.checkpoint_store = KeptCheckpoints()
    bench.change(approve="risky", questions=True)
    return bench


@pytest.fixture
def second(another: Callable[[str], Bench]) -> Bench:
    """The run that goes on, on another drone."""
    return another("second")


def commands(*lines: str) -> dict[str, Any]:
    """One answer with a call for each command."""
    return {"text": "", "tool_calls": [{"name": "shell", "arguments": {"command": line}} for line in lines]}


def when_it_waits(bench: Bench, *messages: Any) -> None:
    """Send the run these messages about its call, one each time that it waits for a person."""
    left = list(messages)

    def does(text: str) -> None:
        if "approval" in text or "answer" in text:
            run, call = bench.order.run_id, bench.last(ApprovalStep).call_id
            bench.controls.receive(left.pop(0)(run_id=run, call_id=call))

    bench.on_doing = does


def approved(**about: str) -> Decide:
    return Decide(approved=True, **about)


def last_checkpoint(bench: Bench) -> int:
    return [event.seq for event in bench.events if isinstance(event.body, CheckpointStep)][-1]


def test_the_next_run_does_what_was_approved_and_what_came_after_it(
    bench: Bench, second: Bench, scripted: ScriptedFactory
) -> None:
    server = scripted([commands("echo a > a; mkdir .venv; echo cached > .venv/x", RISKY, "cat a b > c"), says("Done.")])
    when_it_waits(bench, Suspend)
    end = bench.run(server.url)
    assert (end.status, end.suspended, end.give_back) == ("preempted", True, True)
    assert (bench.of(DecisionStep), len(bench.of(ToolResultStep)), len(server.requests)) == ([], 1, 1)

    going_on(bench, second, last_checkpoint(bench), cut_off=False)
    when_it_waits(second, approved)
    assert (second.run(server.url).response, len(server.requests)) == ("Done.", 2)
    assert second.last(ApprovalStep).call_id == bench.last(ApprovalStep).call_id
    assert [len(second.of(kind)) for kind in (ToolCallStep, ToolResultStep, AssistantStep)] == [2, 2, 1]
    messages = server.requests[-1]["messages"]
    roles = [message["role"] for message in messages[2:]]
    assert (problems(messages), roles) == ([], ["assistant", *["tool"] * 3, "user"])
    patch = second.blobs[second.last(Delivered).patch_sha256].decode()
    assert ("@@ -0,0 +1,2 @@\n+a\n+b\n" in patch, "deleted file mode" in patch) == (True, True)


def test_a_question_is_put_again_and_a_late_answer_is_the_clocks(
    bench: Bench, second: Bench, scripted: ScriptedFactory
) -> None:
    ask = {"text": "", "tool_calls": [{"name": "ask", "arguments": {"question": "Which?", "default": "SQLite"}}]}
    server = scripted([ask, says("Done.")])
    when_it_waits(bench, Suspend)
    assert bench.run(server.url).suspended
    going_on(bench, second, last_checkpoint(bench), cut_off=False)
    when_it_waits(second, lambda **about: Decide(approved=False, in_time=False, **about))
    assert second.run(server.url).status == "success"
    decided = second.last(DecisionStep)
    assert (decided.by, decided.answer, len(server.requests)) == ("clock", "SQLite", 2)


def test_a_run_whose_files_no_checkpoint_may_have_keeps_waiting(bench: Bench, scripted: ScriptedFactory) -> None:
    server = scripted([commands("echo key=hunter2-secret > .env", RISKY), says("Done.")])
    when_it_waits(bench, Suspend, approved)
    end = bench.run(server.url)
    assert (end.status, end.suspended, len(server.requests)) == ("success", False, 2)
    assert [body.kind for body in bench.of(ApprovalStep, DecisionStep)] == ["approval", "approval", "decision"]
    assert len(bench.of(ToolResultStep)) == 2


def test_a_child_keeps_waiting_since_no_other_run_has_its_conversation(bench: Bench, scripted: ScriptedFactory) -> None:
    spawn = {"text": "", "tool_calls": [{"name": "spawn", "arguments": {"task": "Remove it"}}]}
    # The child is given the same answers from the start, and may not spawn.
    server = scripted([spawn, commands(RISKY), says("Done.")])

    def suspended_and_approved(**about: str) -> Decide:
        bench.controls.receive(Suspend(**about))
        return approved(**about)

    when_it_waits(bench, suspended_and_approved, approved)
    assert (bench.run(server.url).response, len(server.requests)) == ("Done.", 6)
