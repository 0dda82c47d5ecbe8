"""A large repository can be worked on. The full size runs with `-m long`, and shows how long that took."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from drone.sandbox import choose
from drone.workspace import Workspaces
from tests.support.repositories import MakeWorkspaces, git, large_repository, work_order
from tests.support.sandboxes import shell


@pytest.fixture
def workspaces(tmp_path: Path, drone_git: dict[str, str], workspaces_in: MakeWorkspaces) -> Workspaces:
    return workspaces_in(tmp_path / "workspace", drone_git, choose("auto", os.environ))


def _worked_on(workspaces: Workspaces, remote: Path) -> dict[str, float]:
    """Prepare twice, deliver once; seconds for each."""
    times = {}
    for name in ("first", "second"):
        begun = time.monotonic()
        workspace = workspaces.prepare(work_order(f"file://{remote}"), lambda run, sha: b"", lambda: None)
        times[name] = time.monotonic() - begun
    shell(workspace.sandbox, workspace.path, "echo done > done.txt")
    begun = time.monotonic()
    delivery = workspace.deliver("fleet/x", "Do it", "Drone <drone@localhost>")
    times["deliver"] = time.monotonic() - begun
    assert workspace.base_commit == git(remote, "rev-parse", "main")
    assert delivery.files_changed == 1
    return times


def test_a_large_repository_in_its_short_form(tmp_path: Path, workspaces: Workspaces) -> None:
    remote = large_repository(tmp_path / "large.git", commits=1000, megabytes=15)

    _worked_on(workspaces, remote)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_repository_of_20000_commits_and_300_mb(tmp_path: Path, workspaces: Workspaces) -> None:
    remote = large_repository(tmp_path / "large.git")

    times = _worked_on(workspaces, remote)

    print({name: round(seconds, 2) for name, seconds in times.items()})  # noqa: T201 - shown by -s
