"""What the recorder lets through: no secrets, in bounds, text in flight before the event that completes it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from drone.agent.values import DeltaKind
from drone.reporting import journal
from drone.reporting.journal import RunIdentity
from drone.runs.recorder import SHOWN_OF_DOING, JournalRecorder
from shared.events import AssistantStep, Body, CheckpointStep, CommentStep, ReasoningStep, ToolCallStep
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


@pytest.mark.parametrize(
    ("thought", "kept"), [("Let me see.", 1), ("It is hunter2-secret.", 0), ("long " * 100_000, 0)]
)
def test_signed_thinking_is_kept_as_it_is_or_not_at_all(
    recorder: JournalRecorder, tmp_path: Path, thought: str, kept: int
) -> None:
    recorder.record(ReasoningStep(text=thought, blocks=({"type": "thinking", "thinking": thought, "signature": "c2"},)))
    event = next(journal.walk(tmp_path / "j")).event
    assert len(event.body.blocks) == kept


def test_a_secret_that_comes_in_pieces_is_not_shown(recorder: JournalRecorder, link: KeptLink) -> None:
    recorder.delta("text", "the word is hunter2")
    recorder.delta("text", "-secret, remember it")
    recorder.record(AssistantStep(text="the word is hunter2-secret, remember it"))
    shown = "".join(text for kind, text in link.said if kind == "text")
    assert shown == "the word is [redacted], remember it"


@pytest.mark.parametrize("beside", [CheckpointStep(), CommentStep(text="No checkpoint could be taken")])
@pytest.mark.parametrize("kind", ["text", "thinking", "tool_call", "output"])
def test_half_a_secret_is_held_back_although_a_checkpoint_is_recorded_meanwhile(
    recorder: JournalRecorder, link: KeptLink, kind: DeltaKind, beside: Body
) -> None:
    recorder.delta(kind, "the word is hunter2")
    recorder.record(beside)
    recorder.delta(kind, "-secret, remember it")
    recorder.record(AssistantStep(text="the word is hunter2-secret, remember it"))
    assert "".join(text for _, text in link.said) == "the word is [redacted], remember it"


def test_text_in_flight_is_complete_before_the_event_is_announced(recorder: JournalRecorder, link: KeptLink) -> None:
    recorder.delta("text", "half a wor")
    recorder.record(AssistantStep(text="half a wor"))
    assert link.said[-1] == ("recorded", "")
    assert "".join(text for kind, text in link.said if kind == "text") == "half a wor"


def test_what_the_run_does_is_redacted_too(recorder: JournalRecorder, link: KeptLink) -> None:
    recorder.doing("running curl -u hunter2-secret")
    assert link.said == [("doing", "running curl -u [redacted]")]


def test_what_the_run_does_is_one_short_line_that_was_redacted_before_it_was_cut(
    recorder: JournalRecorder, link: KeptLink
) -> None:
    recorder.doing("shell: " + "x" * (SHOWN_OF_DOING - 12) + "\n hunter2-secret and more")
    ((_, line),) = link.said
    assert len(line) <= SHOWN_OF_DOING
    assert "\n" not in line
    assert "hunter" not in line


def test_output_of_which_nothing_can_be_shown_yet_is_a_sign_of_progress(
    recorder: JournalRecorder, link: KeptLink
) -> None:
    recorder.delta("output", "hunter2")
    recorder.delta("output", "")
    assert link.said == [("progress", ""), ("progress", "")]
