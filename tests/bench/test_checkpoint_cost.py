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
from time import perf_counter
from typing import NamedTuple

import pytest

from drone.sandbox import choose
from drone.workspace import Workspace, Workspaces
from tests.support.repositories import calc_project, git, work_order
from tests.support.sandboxes import shell

pytestmark = [pytest.mark.bench, pytest.mark.usefixtures("networks_closed")]

RUN = "0run0run0run"


def test_a_checkpoint_of_a_small_repository(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, drone_git: dict[str, str]
) -> None:
    with closing(_prepared(tmp_path, drone_git, calc_project(tmp_path / "calc.git"))) as workspace:
        ratio = _measured(capsys, "4 files", workspace)

    assert ratio <= 27


def test_a_checkpoint_of_a_repository_of_20000_files(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, drone_git: dict[str, str]
) -> None:
    with closing(_prepared(tmp_path, drone_git, _many_files(tmp_path / "many.git", 20_000))) as workspace:
        ratio = _measured(capsys, "20,000 files", workspace)

    assert ratio <= 4


def _prepared(tmp_path: Path, drone_git: dict[str, str], remote: Path) -> Workspace:
    workspaces = Workspaces(tmp_path / "workspace", drone_git, choose("auto", os.environ))
    return workspaces.prepare(work_order(remote), lambda run, sha: b"", lambda: None)


def _measured(capsys: pytest.CaptureFixture[str], name: str, workspace: Workspace) -> float:
    """Print a table; return the cost of a checkpoint after a shell that changed nothing, in multiples of a `git
    status`.

    The unit is CPU time, ours and git's, so neither a slow nor a busy machine changes it much.
    """
    rows = {
        "first": _milliseconds(workspace, ["true"]),
        "nothing changed, no shell": _milliseconds(workspace, [""] * 9),
        "nothing changed": _milliseconds(workspace, ["true"] * 9),
        "a file changed": _milliseconds(workspace, [f"echo {number} > new{number}" for number in range(9)]),
        "a commit": _milliseconds(workspace, ["git add -A; git commit -q -m Mine"]),
    }
    lines = [f"{name}, {what}: {cost.spent:.0f} ms of processor, {cost.wall:.0f} ms" for what, cost in rows.items()]
    usual = rows["nothing changed"]
    ratio = usual.spent / usual.status
    lines.append(f"{name}, nothing changed: {ratio:.1f} times a `git status` ({usual.status:.0f} ms)")
    with capsys.disabled():
        sys.stdout.write("\n".join(["", *lines, ""]))
    return ratio


class Cost(NamedTuple):
    """Milliseconds: CPU and wall time of a checkpoint, and CPU time of a `git status` right before it."""

    spent: float
    wall: float
    status: float


def _milliseconds(workspace: Workspace, lines: list[str]) -> Cost:
    """The median of each."""
    return Cost(*map(statistics.median, zip(*_each(workspace, lines), strict=True)))


def _each(workspace: Workspace, lines: list[str]) -> Iterator[Cost]:
    for line in lines:
        if line:
            shell(workspace.sandbox, workspace.path, line)
        began = _processor()
        git(workspace.path, "--no-optional-locks", "status", "--porcelain")
        begun, spent = perf_counter(), _processor()
        workspace.checkpoint(RUN, has_secret=lambda content: b"secret" in content, agent_commits=bool(line))
        yield Cost(1000 * (_processor() - spent), 1000 * (perf_counter() - begun), 1000 * (spent - began))


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
