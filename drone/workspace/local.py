"""A repository on this machine, as a source for `drone run`: read, never written to."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from drone.workspace.git import git_is_missing
from shared.errors import NotFound, Precondition

_URL_SIGN = "://"


@dataclass(frozen=True)
class LocalSource:
    """What to fetch from, and a notice for the user."""

    url: str
    """A URL as it was given, or an absolute path."""
    notice: str = ""
    """One sentence, if the work tree has uncommitted changes, which will not be seen."""


def local_source(given: str) -> LocalSource:
    """Find the given repository: a URL, a bare repository, a work tree or a directory in one.

    Raises NotFound if there is no git repository, and Precondition if git does not read it.
    """
    if _URL_SIGN in given or _is_scp_address(given):
        return LocalSource(given)
    path = Path(given).expanduser().absolute()
    if not path.is_dir():
        raise _no_repository(path, "directory not found")
    top = _git(path, "rev-parse", "--show-toplevel")
    if top.returncode == 0 and top.stdout.strip():
        return LocalSource(top.stdout.strip(), _uncommitted(Path(top.stdout.strip())))
    bare = _git(path, "rev-parse", "--absolute-git-dir")
    if bare.returncode != 0:
        raise _unusable(path, bare.stderr.strip())
    return LocalSource(bare.stdout.strip())


def _is_scp_address(given: str) -> bool:
    """`git@host:path`, unless there is a file of that name: the same rule as git's own."""
    head, colon, _ = given.partition(":")
    return bool(colon) and "/" not in head and not Path(given).exists()


def _uncommitted(top: Path) -> str:
    status = _git(top, "status", "--porcelain", "--untracked-files=normal", "--ignore-submodules=all")
    count = len(status.stdout.splitlines())
    if not count:
        return ""
    files = "1 file" if count == 1 else f"{count} files"
    return f"{files} in {top} with uncommitted changes; the run starts from the last commit without them."


def _git(path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # No optional locks: `git status` would otherwise write the index of a repository that is not ours to write to.
    command = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-C", str(path), *arguments]
    environ = {**os.environ, "LC_ALL": "C"}  # git's messages are parsed
    try:
        return subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=120, check=False, env=environ
        )
    except FileNotFoundError as error:
        raise git_is_missing(Precondition) from error


def _unusable(path: Path, said: str) -> NotFound | Precondition:
    """The error for a directory in which git reads no repository, with what it said."""
    if "dubious ownership" in said:
        # Reading it would run the programs that its configuration names.
        return Precondition(
            f"the repository at {path} belongs to another user",
            code="E-GIT-OWNER",
            why="git does not read it unless you say that you trust its owner",
            next=said.splitlines()[-1].strip(),
        )
    first = next(iter(said.splitlines()), "not a git repository").removeprefix("fatal: ")
    if "not a git repository" in first:
        return _no_repository(path, first)
    return Precondition(
        f"git cannot read the repository at {path}", code="E-GIT-UNREADABLE", why=first, next=f"git -C {path} status"
    )


def _no_repository(path: Path, why: str) -> NotFound:
    return NotFound(
        f"no git repository at {path}",
        code="E-GIT-NOT-FOUND",
        why=why,
        next=f"git init {path}, or use another --repo",
    )
