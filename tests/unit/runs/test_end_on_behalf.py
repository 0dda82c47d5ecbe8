"""The end of a run that its process could not write: no call stays without an answer, and what is there stays."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from drone.reporting import journal
from drone.reporting.journal import RunIdentity
from drone.runs.directory import Meta, RunDirectory
from drone.runs.end_on_behalf import end_on_behalf
from shared.clock import SystemClock
from shared.events import AssistantStep, Body, ErrorStep, RunEnded, RunStarted, ToolCallStep, ToolResultStep
from shared.messages import ToolCall
from shared.transcripts import messages_of
from tests.support.transcripts import problems

IDENTITY = RunIdentity("run000000000", "order0000000", 1)
STARTED = RunStarted(boot_id="b" * 12, sandbox="none")
DIED = ErrorStep(what="the process ended", code="E-RUN-DIED")
END = RunEnded(status="failed", exit_status="lost", reason="the process ended")
ASKED = AssistantStep(
    tool_calls=tuple(ToolCall(id=name, name="shell", arguments='{"command": "ls"}') for name in "abc")
)


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    made = RunDirectory(tmp_path / "runs" / IDENTITY.run_id)
    made.create(Meta(IDENTITY.order_id, 1, "b" * 12, datetime.now(UTC).isoformat()))
    return made


def record(directory: RunDirectory, *bodies: Body) -> None:
    with journal.opened(directory.journal, IDENTITY, SystemClock()) as writer:
        for body in bodies:
            writer.append(body)


def bodies(directory: RunDirectory) -> list[Body]:
    return [line.event.body for line in journal.walk(directory.journal)]


def end(directory: RunDirectory) -> list[Body]:
    return [event.body for event in end_on_behalf(directory, IDENTITY, SystemClock(), STARTED, [DIED, END])]


@pytest.mark.parametrize("called", ["ab", "abc"])
def test_open_calls_are_answered_before_the_last_event(directory: RunDirectory, called: str) -> None:
    steps = [ToolCallStep(call_id=name, tool="shell") for name in called]
    record(directory, STARTED, ASKED, *steps, ToolResultStep(call_id="a", output="done"))

    *answers, died, last = end(directory)

    results = [(body.call_id, body.execution) for body in answers if isinstance(body, ToolResultStep)]
    assert results == [("b", "broken_off"), ("c", "broken_off" if "c" in called else "held_back")]
    added = [body for body in answers if isinstance(body, ToolCallStep)]
    assert added == ([] if "c" in called else [ToolCallStep(call_id="c", tool="shell", arguments={"command": "ls"})])
    assert (died, last) == (DIED, END)
    assert problems(messages_of(bodies(directory))) == []


def test_a_run_without_events_gets_its_first_one_too_and_earlier_calls_no_second_answer(
    directory: RunDirectory,
) -> None:
    assert end(directory) == [STARTED, DIED, END]
    directory.journal.unlink()
    answered = [ToolResultStep(call_id=name, output="done") for name in "abc"]
    record(directory, STARTED, ASKED, *answered, AssistantStep(text="Done."))
    assert end(directory) == [DIED, END]


def test_an_end_that_was_written_in_part_is_completed_once_the_process_is_gone(directory: RunDirectory) -> None:
    record(directory, STARTED, ASKED, ToolCallStep(call_id="a", tool="shell"))
    record(directory, ToolResultStep(call_id="a", output="not run"), DIED)
    held = directory.lock()
    with pytest.raises(BlockingIOError):
        end(directory)
    assert held is not None
    os.close(held)
    added = [body.kind for body in end(directory)]
    assert added == ["tool_call", "tool_result", "tool_call", "tool_result", "run_ended"]
