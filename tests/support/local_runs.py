"""Shared by the tests of `drone run`: a repository to work on, and scripts for a scripted model (a stand-in)."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

MODEL = "openai/scripted"
BROKEN = "def add(a, b):\n    return a - b\n"
FIXED = "def add(a, b):\n    return a + b\n"


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    """A reply that calls one tool."""
    return {"text": f"I use {tool}.", "tool_calls": [{"name": tool, "arguments": arguments}]}


WRITE = call("file_write", path="sums.py", content=FIXED)
TALK = [{"text": "There is nothing to do."}]
MEND = [
    call("file_read", path="sums.py"),
    WRITE,
    call("shell", command="python3 -c 'import sums; print(sums.add(2, 3))'"),
    {"text": "The sum is right now."},
]


def git(path: Path, *words: str) -> str:
    """The output of a git command in a repository; raises if the command fails."""
    done = subprocess.run(["git", "-C", str(path), *words], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def make_repository(path: Path) -> Path:
    """A work tree with a wrong sum in one commit, on a branch that is not `main`."""
    path.mkdir()
    (path / "sums.py").write_text(BROKEN)
    git(path, "init", "--quiet", "--initial-branch", "trunk")
    git(path, "add", ".")
    git(path, "-c", "user.name=T", "-c", "user.email=t@example.org", "commit", "--quiet", "--message", "Start")
    return path


def files_of(path: Path) -> dict[str, tuple[int, bytes]]:
    """Every file below `path`, with its modification time and content."""
    return {str(file): (file.stat().st_mtime_ns, file.read_bytes()) for file in path.rglob("*") if file.is_file()}
