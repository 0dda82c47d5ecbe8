"""A checkpoint of an unchanged workspace costs little, even in a large repository."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from drone.sandbox import choose
from drone.workspace import Workspace, Workspaces
from tests.support.repositories import git, work_order
from tests.support.sandboxes import shell

pytestmark = [pytest.mark.bench, pytest.mark.usefixtures("sandboxes_closed")]

RUN = "0run0run0run"


@pytest.mark.parametrize(("count", "most"), [(4, 27), (20_000, 4)])
def test_a_checkpoint_after_a_command_that_changed_nothing_costs_few_calls_of_git_status(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, drone_git: dict[str, str], count: int, most: float
) -> None:
    """By processor time, ours and git's, so neither a slow nor a busy machine changes it much."""
    remote = _many_files(tmp_path / "many.git", count)
    workspaces = Workspaces(tmp_path / "workspace", drone_git, choose("auto", os.environ))
    with closing(workspaces.prepare(work_order(remote), lambda run, sha: b"", lambda: None)) as workspace:
        _milliseconds(workspace, ["true"])
        usual = _milliseconds(workspace, ["true"] * 9)
    with capsys.disabled():
        sys.stdout.write(f"\n{count} files: {usual.spent:.0f} ms of processor, a `git status` {usual.status:.0f} ms\n")
    assert usual.spent <= most * usual.status


class Cost(NamedTuple):
    """Milliseconds of processor time: of a checkpoint, and of a `git status` right before it."""

    spent: float
    status: float


def _milliseconds(workspace: Workspace, lines: list[str]) -> Cost:
    """The median of each."""
    return Cost(*map(statistics.median, zip(*_each(workspace, lines), strict=True)))


def _each(workspace: Workspace, lines: list[str]) -> Iterator[Cost]:
    for line in lines:
        shell(workspace.sandbox, workspace.path, line)
        began = _processor()
        git(workspace.path, "--no-optional-locks", "status", "--porcelain")
        spent = _processor()
        workspace.checkpoint(RUN, has_secret=lambda content: b"secret" in content, agent_commits=True)
        yield Cost(1000 * (_processor() - spent), 1000 * (spent - began))


def _processor() -> float:
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _many_files(path: Path, count: int) -> Path:
    """A bare repository with this many small files in one commit."""
    path.mkdir()
    git(path, "init", "-q", "--bare", "--initial-branch=main")
    content = "data 12\nsome content\n"
    files = "".join(f"M 100644 inline part{n // 100}/file{n}.py\n{content}" for n in range(count))
    head = "commit refs/heads/main\ncommitter Tester <tester@example.org> 1700000000 +0000\ndata 4\nMany\n"
    subprocess.run(["git", "fast-import", "--quiet"], cwd=path, input=f"{head}{files}".encode(), check=True)
    return path
