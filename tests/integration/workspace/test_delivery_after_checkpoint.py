"""A delivery uses what the last checkpoint has, and is the same as without one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from drone.sandbox import choose
from drone.workspace import Workspace
from tests.support.repositories import MakeWorkspaces, calc_project, git, work_order
from tests.support.sandboxes import shell

RUN = "0run0run0run"
SECRET = b"sk-0123456789"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """The log of all git processes of the drone."""
    return tmp_path / "trace"


@pytest.fixture
def workspace(tmp_path: Path, drone_git: dict[str, str], workspaces_in: MakeWorkspaces, trace: Path) -> Workspace:
    traced = drone_git | {"GIT_TRACE": str(trace)}
    workspaces = workspaces_in(tmp_path / "workspace", traced, choose("none", os.environ))
    return workspaces.prepare(work_order(calc_project(tmp_path / "calc.git")), lambda run, sha: b"", lambda: None)


def work(workspace: Workspace, line: str) -> None:
    assert shell(workspace.sandbox, workspace.path, line).return_code == 0


def checkpoint(workspace: Workspace) -> None:
    workspace.checkpoint(RUN, has_secret=lambda content: SECRET in content)


def delivered(workspace: Workspace) -> list[str]:
    """The names of the files that differ from the base in what is delivered."""
    made = workspace.deliver("fleet/0rder0rder00", "Fix it", "Drone <drone@example.org>")
    assert made.files_changed == made.patch.count(b"diff --git ")
    changed = ("diff-tree", "-r", "--name-only", str(workspace.base_commit), str(made.head_commit))
    return git(workspace.session.git_dir, *changed).splitlines()


def commands(trace: Path) -> list[str]:
    """The git commands since the last call, those that git started itself included."""
    lines = [line.split("trace: built-in: git ")[1] for line in trace.read_text().splitlines() if "built-in" in line]
    trace.unlink()
    return [line.split()[0] for line in lines]


def test_what_a_checkpoint_has_is_not_made_again(workspace: Workspace, trace: Path) -> None:
    work(workspace, "echo 1 >> calc.py")
    checkpoint(workspace)
    commands(trace)

    assert delivered(workspace) == ["calc.py"]

    again = {"read-tree", "update-index", "write-tree"}
    assert again.isdisjoint(commands(trace))


def test_a_checkpoint_of_a_changed_file_takes_ten_processes_of_git(workspace: Workspace, trace: Path) -> None:
    checkpoint(workspace)
    work(workspace, "echo 1 >> calc.py")
    commands(trace)

    checkpoint(workspace)

    assert len(commands(trace)) <= 10


def test_a_change_after_the_last_checkpoint_and_what_only_it_left_out_are_delivered(workspace: Workspace) -> None:
    work(workspace, f"echo 1 > one; echo 1 > two; echo {SECRET.decode()} > key")
    checkpoint(workspace)
    work(workspace, "rm one; echo 3 > three")

    assert delivered(workspace) == ["key", "three", "two"]


def test_what_git_ignores_only_since_a_checkpoint_is_not_delivered(workspace: Workspace) -> None:
    work(workspace, "mkdir made; echo 1 > made/one; echo 2 > two")
    checkpoint(workspace)
    work(workspace, "echo '*' > made/.gitignore")
    checkpoint(workspace)

    assert delivered(workspace) == ["two"]


def test_special_files_are_named_and_the_rest_is_still_not_made_again(workspace: Workspace, trace: Path) -> None:
    work(workspace, "echo 1 > one; mkfifo pipe")
    checkpoint(workspace)
    commands(trace)

    made = workspace.deliver("fleet/0rder0rder00", "Fix it", "Drone <drone@example.org>")

    assert made.left_out == ("pipe: neither a file nor a link",)
    assert "write-tree" not in commands(trace)


def test_commits_that_a_checkpoint_brought_over_are_not_brought_again(workspace: Workspace, trace: Path) -> None:
    work(workspace, "echo 1 > one; git add one; git commit -q -m One; echo 2 > two")
    checkpoint(workspace)
    commands(trace)

    assert delivered(workspace) == ["one", "two"]

    assert "index-pack" not in commands(trace)
