"""Brings the agent's own commits over: as a bundle, made by git inside the sandbox, checked on its way in."""

from __future__ import annotations

import re
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path

from drone.sandbox import Sandbox
from drone.workspace.git import Git, GitFailed
from drone.workspace.history import History
from drone.workspace.session import Session, remove
from shared.blobs import MAX_BYTES

_BUNDLE_SECONDS = 300.0
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_REF = "refs/dronefleet/agent"


@dataclass(frozen=True)
class Brought:
    """The agent's last commit, if there is one on top of the base, and a word if there is one that could not come."""

    head: str | None
    note: str = ""


def bring_over(session: Session, sandbox: Sandbox, base: str | None) -> Brought:
    """Fetch what the agent committed on top of `base` into the drone's git directory.

    Nothing of the workspace's `.git` is read outside the sandbox: its configuration may name programs to run. Where
    something is wrong with it, the work tree's own state is delivered all the same.
    """
    name = f"{secrets.token_hex(8)}.bundle"
    bundle = session.scratch / "tmp" / name
    exclude = f"^{base}" if base else ""
    # The scratch's tmp is TMPDIR in every sandbox, whatever it is called inside.
    line = f'git rev-parse --verify -q "HEAD^{{commit}}" && git bundle create -q "$TMPDIR/{name}" HEAD {exclude}'
    try:
        made = sandbox.run(line, workspace=session.work, timeout=_BUNDLE_SECONDS)
        head = next((text for text in made.output.splitlines() if _COMMIT.fullmatch(text)), None)
        # git refuses an empty bundle: HEAD then is an old commit, and the work tree says what is to be delivered.
        if head is None or head == base or "empty bundle" in made.output:
            return Brought(None)
        if made.return_code != 0:
            return Brought(None, f"the commits up to {head[:12]} could not be read: {made.output.strip()[-200:]}")
        return _fetch(session, bundle, base)
    finally:
        remove(bundle)


def _fetch(session: Session, bundle: Path, base: str | None) -> Brought:
    if not _is_acceptable(bundle):
        return Brought(None, "the agent's own commits are too large to be taken over")
    git = _strict(session.git.at(session.git_dir).uninterrupted())
    try:
        git.text("fetch", "-q", "--no-tags", "--no-write-fetch-head", str(bundle), f"+HEAD:{_REF}")
        head = git.text("rev-parse", "--verify", f"{_REF}^{{commit}}")
    except GitFailed as failure:
        return Brought(None, f"the agent's own commits are damaged: {failure.message.strip()[-200:]}")
    with History(session.git_dir, git.environment) as history:
        if base and not history.is_ancestor(base, head):
            return Brought(None, "the agent's own commits do not go on from the base; their content is one commit here")
    return Brought(head)


def _is_acceptable(bundle: Path) -> bool:
    try:
        status = bundle.lstat()
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size <= MAX_BYTES


def _strict(git: Git) -> Git:
    """A bundle is a local file for git; what comes in it is checked object by object."""
    return git.adding(
        {
            "GIT_ALLOW_PROTOCOL": "file",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "fetch.fsckObjects",
            "GIT_CONFIG_VALUE_0": "true",
        }
    )
