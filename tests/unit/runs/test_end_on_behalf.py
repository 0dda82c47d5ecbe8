"""The end of a run that its process could not write: no call stays without an answer, and what is there stays."""

from __future__ import annotations

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


def test_open_calls_are_answered_before_the_last_event(directory: RunDirectory) -> None:
    before = [STARTED, ASKED, ToolCallStep(call_id="a", tool="shell"), ToolResultStep(call_id="a", output="done")]
    record(directory, *before, ToolCallStep(call_id="b", tool="shell"))

    broken_off, called, not_run, died, last = end(directory)

    assert isinstance(broken_off, ToolResultStep)
    assert isinstance(not_run, ToolResultStep)
    assert (broken_off.call_id, broken_off.execution) == ("b", "broken_off")
    assert called == ToolCallStep(call_id="c", tool="shell", arguments={"command": "ls"})
    assert (not_run.call_id, not_run.execution) == ("c", "held_back")
    assert (died, last) == (DIED, END)
    assert problems(messages_of(bodies(directory))) == []


def test_calls_that_ran_at_the_same_time_are_answered_if_they_have_no_result(directory: RunDirectory) -> None:
    called = [ToolCallStep(call_id=name, tool="file_read") for name in "abc"]
    record(directory, STARTED, ASKED, *called, ToolResultStep(call_id="a", output="done"))

    answers = [body for body in end(directory) if isinstance(body, ToolResultStep)]

    assert [(answer.call_id, answer.execution) for answer in answers] == [("b", "broken_off"), ("c", "broken_off")]
    assert problems(messages_of(bodies(directory))) == []


def test_a_run_that_recorded_nothing_gets_its_first_event_too_and_answers_of_an_earlier_turn_are_not_given_again(
    directory: RunDirectory,
) -> None:
    assert end(directory) == [STARTED, DIED, END]
    directory.journal.unlink()
    answered = [ToolResultStep(call_id=name, output="done") for name in "abc"]
    record(directory, STARTED, ASKED, *answered, AssistantStep(text="Done."))
    assert end(directory) == [DIED, END]


def test_an_end_that_was_written_in_part_is_completed(directory: RunDirectory) -> None:
    record(directory, STARTED, ASKED, ToolCallStep(call_id="a", tool="shell"))
    record(directory, ToolResultStep(call_id="a", output="not run"), DIED)

    added = end(directory)

    assert [body.kind for body in added] == ["tool_call", "tool_result", "tool_call", "tool_result", "run_ended"]


def test_a_journal_that_the_process_still_holds_is_left_alone(directory: RunDirectory) -> None:
    assert directory.lock() is not None

    with pytest.raises(BlockingIOError):
        end(directory)
    assert bodies(directory) == []
