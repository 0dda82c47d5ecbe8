"""An agent's instructions from the repository: read anew for every run, only from the default branch (S-010)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from drone.workspace.failures import reading
from drone.workspace.git import Git
from drone.workspace.history import History
from shared.errors import OrderError
from shared.instructions import MAX_BYTES, instructions_of, too_large


@dataclass(frozen=True)
class DefaultBranch:
    """The default branch of a repository in the drone's mirror. Reading its files needs no workspace."""

    git: Git
    """At the mirror."""
    name: str | None
    commit: str | None
    """None in an empty repository."""


def read_agent_instructions(branch: DefaultBranch, path: str, agent: str) -> str:
    """The instructions of `agent` in the file `path` of the default branch, never of an agent's own work.

    `branch` is a run's `workspace.published`, or `workspaces.default_branch(…)` if there is no workspace.

    Raises OrderError `E-AGENT-INSTRUCTIONS` if the file is missing, empty, too large, or not text; FleetFault
    `E-GIT-DAMAGED` if the mirror cannot be read.
    """
    try:
        with reading(branch.git.directory):
            return instructions_of(_content(branch, path))
    except ValueError as error:
        raise OrderError(
            f"the instructions of agent {agent} cannot be read",
            code="E-AGENT-INSTRUCTIONS",
            why=f"{path} on the branch {branch.name or '(none)'} {error}",
            next=f"add the file, or: fleet agent edit {agent} --instructions FILE",
        ) from error


def _content(branch: DefaultBranch, path: str) -> bytes:
    if branch.commit is None:
        raise ValueError("was not found: the repository has no commits")
    if ".." in Path(path).parts or Path(path).is_absolute():
        raise ValueError("is not a path inside the repository")
    with History(branch.git) as history:
        entry = history.entry(branch.commit, path)
        if entry is None:
            raise ValueError("was not found")
        if not entry.is_plain_file:
            raise ValueError("is a link" if entry.is_link else "is not a file")
        if entry.size > MAX_BYTES:
            raise ValueError(too_large(entry.size))
        return history.content(entry.blob)
