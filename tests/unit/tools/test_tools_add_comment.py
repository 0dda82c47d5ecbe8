"""add_comment: an agent's only way to write into the thread (S-065)."""

from __future__ import annotations

from pathlib import Path

from drone.agent.values import ToolResult
from drone.reporting import journal
from drone.reporting.journal import RunIdentity
from drone.runs.recorder import JournalRecorder
from drone.tools import AddComment
from drone.tools.arguments import AddCommentArguments
from shared.clock import SystemClock
from shared.events import CommentStep
from shared.redaction import Redactor
from tests.support.runs import KeptLink
from tests.support.toolboxes import called, toolbox, workspace

__all__ = ["workspace"]
MODES = ["plan", "build", "test", "ship", "develop"]


def test_an_agent_of_a_team_has_it_in_every_mode_and_an_order_without_a_team_in_none(workspace: Path) -> None:
    for mode in MODES:
        tools = toolbox(workspace, mode, thread=AddComment(print))
        assert set(tools.names) - set(toolbox(workspace, mode).names) == {"add_comment"}, mode
        assert "add_comment" in tools.read_only, "it needs no approval"


def test_a_comment_is_recorded_at_once_for_the_thread(workspace: Path) -> None:
    kept: list[CommentStep] = []
    tools = toolbox(workspace, thread=AddComment(kept.append))

    first = called(tools, "add_comment", message="  I begin.\n")
    # Several tags, and one of nobody: whom they name is decided when the turn ends.
    second = called(tools, "add_comment", message="Done. @tester @nobody")

    assert kept == [CommentStep(text="I begin.", to_task=True), CommentStep(text="Done. @tester @nobody", to_task=True)]
    assert [first, second] == [ToolResult(f"comment {n} of this turn is in the thread") for n in (1, 2)]


def test_a_comment_that_is_empty_or_could_not_travel_whole_is_wrong_use(workspace: Path) -> None:
    kept: list[CommentStep] = []
    tools = toolbox(workspace, thread=AddComment(kept.append))
    for message in ("", " \n\t", "x" * 100_001, "\N{SNOWMAN}" * 90_000):
        assert called(tools, "add_comment", message=message).is_error
    assert kept == []


def test_the_longest_comment_is_recorded_whole(workspace: Path) -> None:
    kept: list[CommentStep] = []
    called(toolbox(workspace, thread=AddComment(kept.append)), "add_comment", message="word\n" * 19_999 + "@user")
    assert len(kept[0].text) == 100_000


def test_what_a_broken_off_run_wrote_is_not_written_again_but_anything_else_is(workspace: Path) -> None:
    kept: list[CommentStep] = []
    tools = toolbox(workspace, thread=AddComment(kept.append, ["Half done.", "Half done."]))

    said = [called(tools, "add_comment", message=text).output for text in (*["Half done."] * 3, "All done.")]

    assert [step.text for step in kept] == ["Half done.", "All done."]
    assert ["already" in text for text in said] == [True, True, False, False]


def test_a_child_cannot_be_given_it(workspace: Path) -> None:
    tools = toolbox(workspace, thread=AddComment(print), spawn=lambda *_: ToolResult("never"))
    said = called(tools, "spawn", task="Look.", tools=["add_comment"])
    assert said.is_error
    assert said.output.startswith("Error: a child cannot use 'add_comment'; available tools: file_read, ")


def test_a_secret_in_a_comment_does_not_leave_the_drone(tmp_path: Path) -> None:
    """Comments go the way of all events: redacted before they are written down."""
    identity = RunIdentity("r" * 12, "o" * 12, 1)
    with journal.opened(tmp_path / "journal", identity, SystemClock()) as writer:
        recorder = JournalRecorder(writer, KeptLink(), Redactor(["hunter2-hunter2"]))
        AddComment(recorder.record)(AddCommentArguments(message="The key is hunter2-hunter2. @user"))
    (line,) = journal.walk(tmp_path / "journal")
    assert isinstance(line.event.body, CommentStep)
    assert "hunter2" not in line.event.model_dump_json()
    assert line.event.body.text.endswith(". @user")
