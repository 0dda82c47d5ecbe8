"""A delivery uses what the last checkpoint has, and is the same as without one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from drone.sandbox import choose
from drone.workspace import Workspace
from tests.integration.workspace.agent import changed_files, deliver, does
from tests.support.repositories import MakeWorkspaces, prepared, work_order

SECRET = b"sk-0123456789"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """The log of all git processes of the drone."""
    return tmp_path / "trace"


@pytest.fixture
def workspace(
    tmp_path: Path, drone_git: dict[str, str], workspaces_in: MakeWorkspaces, trace: Path, remote: Path
) -> Workspace:
    traced = drone_git | {"GIT_TRACE": str(trace)}
    return prepared(workspaces_in(tmp_path / "workspace", traced, choose("none", os.environ)), work_order(remote))


def checkpoint_after(workspace: Workspace, line: str) -> None:
    does(workspace, line)
    workspace.checkpoint("0run0run0run", has_secret=lambda content: SECRET in content)


def commands(trace: Path) -> list[str]:
    """The git commands since the last call, those that git started itself included."""
    lines = [line.split("trace: built-in: git ")[1] for line in trace.read_text().splitlines() if "built-in" in line]
    trace.unlink()
    return [line.split()[0] for line in lines]


def test_a_checkpoint_takes_eleven_processes_of_git_and_what_it_has_is_not_made_again(
    workspace: Workspace, trace: Path
) -> None:
    # With a change, so that a process of git that stays has answered before its command is counted.
    checkpoint_after(workspace, "echo 0 >> calc.py")
    commands(trace)
    checkpoint_after(workspace, "echo 1 >> calc.py")
    assert len(commands(trace)) <= 11
    checkpoint_after(workspace, "echo 1 > one; git add one; git commit -q -m One; mkfifo pipe")
    commands(trace)

    made = deliver(workspace)

    assert changed_files(workspace, made) == {"calc.py", "one"}
    assert (made.files_changed, made.left_out) == (2, ("pipe: neither a file nor a link",))
    again = {"read-tree", "update-index", "write-tree", "index-pack"}
    assert again.isdisjoint(commands(trace))


def test_what_changed_or_is_ignored_since_the_last_checkpoint_and_what_only_it_left_out_counts(
    workspace: Workspace,
) -> None:
    key = SECRET.decode()
    checkpoint_after(workspace, f"echo 1 > one; echo 1 > two; echo {key} > key; mkdir made; echo 1 > made/x")
    checkpoint_after(workspace, "echo '*' > made/.gitignore")
    does(workspace, "rm one; echo 3 > three")

    assert changed_files(workspace, deliver(workspace)) == {"key", "three", "two"}
