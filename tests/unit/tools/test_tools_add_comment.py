"""add_comment: an agent's only way to write into the thread (S-065)."""

from __future__ import annotations

from pathlib import Path

import pytest

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


@pytest.mark.parametrize("mode", MODES)
def test_an_agent_of_a_team_has_it_in_every_mode(workspace: Path, mode: str) -> None:
    names = toolbox(workspace, mode, thread=AddComment(print)).names
    assert set(names) - set(toolbox(workspace, mode).names) == {"add_comment"}


def test_an_order_without_a_team_has_it_in_no_mode(workspace: Path) -> None:
    assert all("add_comment" not in toolbox(workspace, mode).names for mode in MODES)


def test_a_comment_is_recorded_at_once_for_the_thread(workspace: Path) -> None:
    kept: list[CommentStep] = []
    tools = toolbox(workspace, thread=AddComment(kept.append))

    first = called(tools, "add_comment", message="  I begin.\n")
    # Several tags, and one of nobody: whom they name is decided when the turn ends.
    second = called(tools, "add_comment", message="Done. @tester @nobody")

    assert kept == [CommentStep(text="I begin.", to_task=True), CommentStep(text="Done. @tester @nobody", to_task=True)]
    assert [first, second] == [ToolResult(f"comment {n} of this turn is in the thread") for n in (1, 2)]


def test_it_needs_no_approval_since_it_changes_nothing_in_the_workspace(workspace: Path) -> None:
    assert "add_comment" in toolbox(workspace, thread=AddComment(print)).read_only


@pytest.mark.parametrize("message", ["", " \n\t"])
def test_an_empty_comment_is_wrong_use(workspace: Path, message: str) -> None:
    kept: list[CommentStep] = []
    said = called(toolbox(workspace, thread=AddComment(kept.append)), "add_comment", message=message)
    assert (said.is_error, kept) == (True, [])
    assert "the message is empty" in said.output


@pytest.mark.parametrize("message", ["x" * 100_001, "\N{SNOWMAN}" * 90_000], ids=["characters", "bytes"])
def test_a_comment_that_is_too_long_or_could_not_travel_whole_is_for_a_file(workspace: Path, message: str) -> None:
    kept: list[CommentStep] = []
    said = called(toolbox(workspace, thread=AddComment(kept.append)), "add_comment", message=message)
    assert (said.is_error, kept) == (True, [])
    assert f"{len(message):,} characters are too long for a comment; write them to a file" in said.output


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
