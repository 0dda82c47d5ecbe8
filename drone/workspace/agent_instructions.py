"""An agent's instructions from the repository: read fresh for every run, from the default branch alone (S-010)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from drone.workspace.git import Git
from shared.errors import OrderError
from shared.instructions import MAX_BYTES, instructions_of, too_large


@dataclass(frozen=True)
class DefaultBranch:
    """The default branch of a repository as it lies in the drone's mirror. Its files need no workspace."""

    git: Git
    """At the mirror."""
    name: str | None
    commit: str | None
    """None in an empty repository."""


def read_agent_instructions(branch: DefaultBranch, path: str, agent: str) -> str:
    """The instructions of `agent` in the file `path` of the default branch, never of an agent's own work.

    `branch` is a run's `workspace.published`, or `workspaces.default_branch(…)` where no workspace is laid out.

    Raises OrderError `E-AGENT-INSTRUCTIONS` where the file is not there, is empty, too large, or no text.
    """
    try:
        return instructions_of(_content(branch, path))
    except ValueError as error:
        raise OrderError(
            f"the instructions of agent {agent} cannot be read",
            code="E-AGENT-INSTRUCTIONS",
            why=f"{path} on the branch {branch.name or '(none)'} {error}",
            next=f"put them there, or: fleet agent edit {agent} --instructions FILE",
        ) from error


def _content(branch: DefaultBranch, path: str) -> bytes:
    if branch.commit is None:
        raise ValueError("is not there: the repository has no commit")
    if ".." in Path(path).parts or Path(path).is_absolute():
        raise ValueError("is no path inside the repository")
    # Literally: a path may begin with `:`, which git would otherwise take for a pattern.
    git = branch.git.adding({"GIT_LITERAL_PATHSPECS": "1"})
    listing = git.raw("ls-tree", "-z", "--long", branch.commit, "--", path).decode(errors="replace")
    facts, _, name = listing.partition("\0")[0].partition("\t")
    if not facts or Path(name) != Path(path):
        raise ValueError("is not there")
    mode, kind, blob, size = facts.split()
    if kind != "blob" or not mode.startswith("100"):
        raise ValueError("is a link" if mode == "120000" else "is no file")
    if int(size) > MAX_BYTES:
        raise ValueError(too_large(int(size)))
    return git.raw("cat-file", "blob", blob)
