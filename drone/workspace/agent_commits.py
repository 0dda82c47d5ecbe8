"""Imports the agent's own commits: as a bundle, made by git inside the sandbox, checked on import."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from pathlib import Path

from drone.sandbox import CommandSpec, Sandbox
from drone.sandbox.trees import remove
from drone.workspace.bundles import read_bundle
from drone.workspace.git import Git, GitFailed
from drone.workspace.plain_head import plain_head
from drone.workspace.session_directory import SessionDirectory
from shared.redaction import last_part

_BUNDLE_SECONDS = 300.0
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REF = "refs/dronefleet/agent"


@dataclass(frozen=True)
class AgentCommits:
    """The agent's last commit, if there is one on top of the base, and a note if it could not be imported."""

    head: str | None
    note: str = ""
    apart: str = ""
    """The last commit if it does not descend from the base: it is here, but nothing is built on it."""


def bring_over(
    session: SessionDirectory, sandbox: Sandbox, base: str | None, *, known: str = "", seconds: float = _BUNDLE_SECONDS
) -> AgentCommits:
    """Fetch the agent's commits on top of `base` into the drone's git directory.

    git reads the workspace's `.git` only inside the sandbox: its configuration may name programs to run. If it is
    damaged, the work tree's own state is still delivered. If the head is still `known`, which was imported before,
    nothing is fetched.
    """
    plain = plain_head(session.work)
    if plain is not None and plain in {base, known}:
        # As after most steps: no sandbox has to be started to find that nothing was committed.
        return AgentCommits(None if plain == base else plain)
    name = f"{secrets.token_hex(8)}.bundle"
    bundle = session.scratch / "tmp" / name
    exclude = f"^{base}" if base else ""
    # The scratch's tmp is TMPDIR in every sandbox, whatever its name inside.
    line = (
        f'head=$(git rev-parse --verify -q "HEAD^{{commit}}") && echo "$head" && '
        f'{{ [ "$head" = "{known or "-"}" ] || git bundle create -q "$TMPDIR/{name}" HEAD {exclude}; }}'
    )
    try:
        made = sandbox.run(CommandSpec(line, workspace=session.work, timeout=seconds))
        head = next((text for text in made.output.splitlines() if _COMMIT.fullmatch(text)), None)
        # git refuses an empty bundle: HEAD is then an old commit, and the work tree decides what is delivered.
        if head is None or head == base:
            return AgentCommits(None)
        if "empty bundle" in made.output:
            return AgentCommits(None, apart=head if session.history.has(head) else "")
        if made.return_code != 0:
            said = last_part(made.output.strip(), 200)
            return AgentCommits(None, f"the commits up to {head[:12]} could not be read: {said}")
        return AgentCommits(known) if head == known else _fetch(session, bundle, base, head)
    finally:
        remove(bundle)


def added_since(git: Git, base: str, head: str) -> frozenset[bytes]:
    """The files that the commit `head` has and `base` does not: work of the agent, also where git ignores them."""
    options = ("-r", "-z", "--name-only", "--no-renames", "--diff-filter=A")
    return frozenset(filter(None, git.raw("diff-tree", *options, base, head).split(b"\0")))


def _fetch(session: SessionDirectory, bundle: Path, base: str | None, head: str) -> AgentCommits:
    git = session.git.at(session.git_dir).uninterrupted()
    try:
        read_bundle(git, bundle)
        git.text("update-ref", _REF, git.text("rev-parse", "--verify", f"{head}^{{commit}}"))
    except GitFailed as failure:
        return AgentCommits(None, f"the agent's own commits are damaged: {last_part(failure.message.strip(), 200)}")
    if base and not git.is_ancestor(base, head):
        note = "the agent's own commits do not descend from the base; their content is in one commit here"
        return AgentCommits(None, note, head)
    return AgentCommits(head)
