"""The tasks of the evaluation: folders in `tests/eval/tasks`.

NAME/task.toml         title, language, kind, and either `check` or `words`
NAME/prompt.md         what both agents are told
NAME/repo/             the repository at its only commit
NAME/hidden/           files that are copied over the result before `check` runs; no agent ever sees them
NAME/reference.patch   a right solution, or reference.md: a right answer where nothing may be changed
NAME/wrong.patch       a plausible wrong one
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

TASKS = Path(__file__).parent / "tasks"
Kind = Literal["bug", "feature", "refactoring", "question", "stop"]
_WHO = ("-c", "user.name=Evaluation", "-c", "user.email=evaluation@example.org")


@dataclass(frozen=True)
class EvalTask:
    """One task."""

    directory: Path
    title: str
    language: str
    kind: Kind
    """`question`: only a question is right. `stop`: only stopping with the reason is right. Otherwise: a solution."""
    check: str = ""
    """The shell line that runs the hidden tests; empty where nothing may be changed."""
    words: tuple[str, ...] = ()
    """Regular expressions, each of which a right question or reason contains, in any case."""

    @property
    def name(self) -> str:
        return self.directory.name

    @cached_property
    def prompt(self) -> str:
        return (self.directory / "prompt.md").read_text(encoding="utf-8")

    def text(self, name: str) -> str:
        """The content of a file of the folder; empty if there is none."""
        path = self.directory / name
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def make_repository(self, where: Path) -> Path:
        """Create the task's repository with its one commit in a directory that does not exist yet."""
        shutil.copytree(self.directory / "repo", where)
        git(where, "init", "--quiet", "--initial-branch", "main")
        git(where, "add", "--all")
        git(where, *_WHO, "commit", "--quiet", "--message", "Start")
        return where

    def add_hidden_files(self, repository: Path) -> None:
        hidden = self.directory / "hidden"
        if hidden.is_dir():
            shutil.copytree(hidden, repository, dirs_exist_ok=True)


def load(names: Sequence[str] = ()) -> list[EvalTask]:
    """Return the tasks in the order of their names; with names, only these. Raises ValueError for an unknown one."""
    there = sorted(path.parent.name for path in TASKS.glob("*/task.toml"))
    if unknown := sorted(set(names) - set(there)):
        raise ValueError(f"unknown task {', '.join(unknown)}; there are: {', '.join(there)}")
    return [_read(TASKS / name) for name in there if not names or name in names]


def _read(directory: Path) -> EvalTask:
    facts = tomllib.loads((directory / "task.toml").read_text(encoding="utf-8"))
    return EvalTask(directory, **{**facts, "words": tuple(facts.get("words", ()))})


def git(repository: Path, *words: str, given: bytes | None = None) -> bytes:
    """The output of git, without the user's own configuration. Raises CalledProcessError."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", "-C", str(repository), *words], input=given, capture_output=True, check=True, env=environment
    )
    return done.stdout
