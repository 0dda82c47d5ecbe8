"""Small git repositories for tests: bare remotes with a failing test, an empty one, and a large one from a seed.

All functions run git with a separate configuration, never with that of the user who runs the tests.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from drone.workspace import Workspace, Workspaces, copy_owner_config, git_environment
from drone.workspace.starting_point import AcceptBranch, FetchBlob, refuse_rewritten
from shared.names import new_id
from shared.work_order import Base, OrderProject, OrderProvider, OrderSession, WorkOrder

_IDENTITY = {
    "GIT_AUTHOR_NAME": "Tester",
    "GIT_AUTHOR_EMAIL": "tester@example.org",
    "GIT_COMMITTER_NAME": "Tester",
    "GIT_COMMITTER_EMAIL": "tester@example.org",
}
CALC = {
    "calc.py": '"""Sums."""\n\n\ndef add(a: int, b: int) -> int:\n    return a - b\n',
    "test_calc.py": "from calc import add\n\nassert add(2, 3) == 5, add(2, 3)\n",
    "README.md": "# calc\n\nAdds. `python3 test_calc.py` tests it.\n",
    ".gitignore": "__pycache__/\n*.cache\n",
}
"""A tiny project whose only test fails: `add` subtracts."""


def git(directory: Path, *words: str, stdin: bytes = b"") -> str:
    """Run git in anyone's directory and return its output; a failure fails the test with git's own message."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {**_IDENTITY, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
    done = subprocess.run(
        ["git", "-c", "safe.directory=*", *words],
        cwd=directory,
        env=environment,
        input=stdin,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, f"git {' '.join(words)}: {done.stderr.decode(errors='replace')}"
    return done.stdout.decode(errors="replace").strip()


def work_tree(path: Path, files: Mapping[str, str] = CALC, branch: str = "main") -> Path:
    """A repository with a work tree and one commit with `files`."""
    path.mkdir(parents=True)
    git(path, "init", "-q", f"--initial-branch={branch}")
    commit_files(path, files, "Begin")
    return path


def commit_files(path: Path, files: Mapping[str, str], message: str = "Change") -> str:
    """Write files in a work tree and commit all changes; return the commit."""
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(content)
    git(path, "add", "-A")
    git(path, "commit", "-q", "--allow-empty", "-m", message)
    return git(path, "rev-parse", "HEAD")


def bare_remote(path: Path, files: Mapping[str, str] = CALC, branch: str = "main") -> Path:
    """A bare repository at `path`, with one commit on its default branch `branch`."""
    source = work_tree(path.with_name(f"{path.name}-source"), files, branch)
    path.parent.mkdir(parents=True, exist_ok=True)
    git(path.parent, "clone", "-q", "--bare", str(source), str(path))
    return path


def calc_project(path: Path, branch: str = "main") -> Path:
    """A bare repository with the project whose test fails; returns `path`."""
    return bare_remote(path, CALC, branch)


def empty_remote(path: Path) -> Path:
    """A bare repository without a commit."""
    path.mkdir(parents=True)
    git(path, "init", "-q", "--bare", "--initial-branch=main")
    return path


def push_commit(remote: Path, files: Mapping[str, str], branch: str = "main") -> str:
    """Add a commit to a branch of a bare remote; return the commit."""
    clone = remote.with_name(f"{remote.name}-{new_id()}")
    git(remote.parent, "clone", "-q", "--branch", branch, str(remote), str(clone))
    commit = commit_files(clone, files)
    git(clone, "push", "-q", "origin", f"HEAD:{branch}")
    return commit


def large_repository(path: Path, *, commits: int = 20_000, megabytes: int = 300, seed: int = 1) -> Path:
    """A bare repository with this many commits and megabytes, always the same for the same seed."""
    path.mkdir(parents=True)
    git(path, "init", "-q", "--bare", "--initial-branch=main")
    with subprocess.Popen(["git", "fast-import", "--quiet"], cwd=path, stdin=subprocess.PIPE) as importer:
        assert importer.stdin
        for piece in _history(commits, megabytes * 1_000_000 // commits, random.Random(seed)):
            importer.stdin.write(piece)
    assert importer.returncode == 0
    return path


def _history(commits: int, size: int, numbers: random.Random) -> Iterator[bytes]:
    """Commits for `git fast-import`: each writes one of 2,000 files with bytes that do not compress."""
    for number in range(1, commits + 1):
        content = numbers.randbytes(size)
        name = f"part{numbers.randrange(40):02}/file{numbers.randrange(50):02}.bin"
        head = f"commit refs/heads/main\ncommitter Tester <tester@example.org> {1_700_000_000 + number} +0000\n"
        subject = f"Commit {number}\n"
        yield f"{head}data {len(subject)}\n{subject}M 100644 inline {name}\ndata {size}\n".encode() + content + b"\n"


@pytest.fixture
def owner_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a machine owner, with an empty git configuration `.gitconfig`."""
    home = tmp_path / "owner"
    home.mkdir()
    (home / ".gitconfig").touch()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    machine = [name for name in os.environ if name.startswith("GIT_") or name.lower().endswith("_proxy")]
    [monkeypatch.delenv(name) for name in machine]
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    return home


@pytest.fixture
def drone_git(owner_home: Path, tmp_path: Path) -> dict[str, str]:
    """The environment of a drone's git that may fetch from `file://`."""
    config = tmp_path / "drone-gitconfig"
    copy_owner_config(config, os.environ)
    return git_environment(config, os.environ, allow_file=True)


MakeWorkspaces = Callable[..., Workspaces]


class _ClosedAtTheEnd(Workspaces):
    """Workspaces that a test need not close: without a close their git readers would outlive the test."""

    def __init__(self, opened: ExitStack, *settings: Any) -> None:
        super().__init__(*settings)
        self._opened = opened

    def prepare(
        self,
        order: WorkOrder,
        fetch_blob: FetchBlob,
        check: Callable[[], None],
        accept: AcceptBranch = refuse_rewritten,
    ) -> Workspace:
        workspace = super().prepare(order, fetch_blob, check, accept)
        self._opened.callback(workspace.close)
        return workspace


@pytest.fixture
def workspaces_in(sandboxes_closed: None) -> Iterator[MakeWorkspaces]:
    """A function that creates a drone's workspaces below a directory; all opened ones are closed after the test."""
    with ExitStack() as opened:
        yield partial(_ClosedAtTheEnd, opened)


def work_order(
    url: str | Path,
    *,
    session: str | None = None,
    order_id: str | None = None,
    branch: str | None = None,
    base: Base | None = None,
) -> WorkOrder:
    """A work order on a repository; each call creates a new order, in a new session unless one is given."""
    return WorkOrder(
        order_id=order_id or new_id(),
        run_id=new_id(),
        generation=1,
        drone_id=new_id(),
        project=OrderProject(id=new_id(), name="Calc", slug="calc", git_url=str(url), branch=branch),
        session=OrderSession(id=session or new_id(), name="test"),
        provider=OrderProvider(name="scripted", model="openai/scripted"),
        base=base or Base(),
        prompt="Fix it",
        submitted_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


def no_blob(run_id: str, sha256: str) -> bytes:
    """For a workspace that needs none."""
    raise AssertionError(f"no blob was expected: {run_id} {sha256}")


def prepared(workspaces: Workspaces, order: WorkOrder) -> Workspace:
    """The workspace of an order that needs no blob."""
    return workspaces.prepare(order, no_blob, lambda: None)
