"""What the recorder lets through: no secrets, in bounds, text in flight before the event that completes it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from drone.reporting import journal
from drone.reporting.journal import RunIdentity
from drone.runs.recorder import SHOWN_OF_DOING, JournalRecorder
from shared.events import ApprovalStep, AssistantStep, CheckpointStep, ReasoningStep, ToolCallStep, UserStep
from shared.redaction import Redactor
from tests.support.clocks import HandClock
from tests.support.runs import KeptLink


@pytest.fixture
def link() -> KeptLink:
    return KeptLink()


@pytest.fixture
def recorder(tmp_path: Path, link: KeptLink) -> Iterator[JournalRecorder]:
    with journal.opened(tmp_path / "j", RunIdentity("r" * 12, "o" * 12, 1), HandClock()) as writer:
        yield JournalRecorder(writer, link, Redactor(["hunter2-secret"]))


def test_secrets_are_taken_out_of_events_wherever_they_stand(recorder: JournalRecorder, tmp_path: Path) -> None:
    recorder.record(ToolCallStep(call_id="c", tool="shell", arguments={"command": ["echo", "hunter2-secret"]}))
    assert "hunter2" not in (tmp_path / "j").read_text()
    assert "[redacted]" in (tmp_path / "j").read_text()


def test_signed_thinking_is_kept_as_it_is_or_not_at_all(recorder: JournalRecorder, tmp_path: Path) -> None:
    for thought in ("Let me see.", "It is hunter2-secret.", "long " * 100_000):
        block = {"type": "thinking", "thinking": thought, "signature": "c2"}
        recorder.record(ReasoningStep(text=thought, blocks=(block,)))
    assert [len(line.event.body.blocks) for line in journal.walk(tmp_path / "j")] == [1, 0, 0]


def test_half_a_secret_is_held_back_while_a_checkpoint_is_recorded(recorder: JournalRecorder, link: KeptLink) -> None:
    for kind in ("text", "thinking", "tool_call", "output"):
        link.said.clear()
        recorder.delta(kind, "the word is hunter2")  # type: ignore[arg-type]
        recorder.record(CheckpointStep())
        recorder.delta(kind, "-secret, remember it")  # type: ignore[arg-type]
        recorder.record(AssistantStep(text="the word is hunter2-secret, remember it"))
        assert "".join(text for _, text in link.said) == "the word is [redacted], remember it"
        # Text in flight is complete before its event is announced.
        assert link.said[-1] == ("recorded", "")


def test_what_follows_a_message_that_a_user_or_a_question_broke_off_is_another_message(
    recorder: JournalRecorder, link: KeptLink
) -> None:
    for step in (UserStep(text="Stop.", source="steer"), ApprovalStep(call_id="time-1", tool="run", why="time")):
        recorder.delta("text", "I begin")
        recorder.record(step)
    # The last word is held back until the message ends.
    assert link.offsets == [0, 2] * 2


def test_what_the_run_does_is_one_short_line_redacted_before_it_is_cut(
    recorder: JournalRecorder, link: KeptLink
) -> None:
    recorder.doing("shell: " + "x" * (SHOWN_OF_DOING - 12) + "\n hunter2-secret and more")
    ((_, line),) = link.said
    assert (len(line) <= SHOWN_OF_DOING, "\n" in line, "hunter" in line) == (True, False, False)
    # Output of which nothing can be shown yet is a sign of progress.
    recorder.delta("output", "hunter2")
    recorder.delta("output", "")
    assert link.said[1:] == [("progress", "")] * 2
