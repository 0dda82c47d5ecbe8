"""Pushes a commit to the remote: only over what is known to be there, and never after the permission expires."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from drone.workspace.authorship import is_by_order
from drone.workspace.failures import NO_HOST, explain
from drone.workspace.git import Git, GitFailed
from drone.workspace.remote import Remote
from shared.errors import FleetFault
from shared.redaction import shortened

ASK_SECONDS = 30.0
_TRIED = "refs/heads/fleet/check"
_THERE = "refs/dronefleet/there"
"""The actual commit of a branch on the remote, if it was not the known one."""


@dataclass(frozen=True)
class PushResult:
    """Whether the ref is on the remote now, and if not, why, in one sentence."""

    pushed: bool
    error: str | None = None
    passing: bool = False
    """The remote could not be reached or disconnected: the same push may succeed later."""


@dataclass(frozen=True)
class PushTarget:
    """Where to push a commit, and for how long that is allowed."""

    ref: str
    """The branch, without `refs/heads/`."""
    expected: str | None
    """The commit that the branch must be at now; None: it must not exist yet."""
    order_id: str
    """The order of the result: a push by an earlier run of the same order, unknown to the fleet, may be replaced."""
    seconds: float

    @property
    def full(self) -> str:
        return f"refs/heads/{self.ref}"


def push(git: Git, remote: Remote, commit: str, target: PushTarget) -> PushResult:
    """Push `commit`, which may be the name of a ref, to the branch, only over what is known to be there.

    A branch that no longer exists is created again. git is ended when the time is up.
    """
    git, until = git.adding(remote.login), time.monotonic() + target.seconds
    try:
        try:
            _push(git, remote, commit, target)
        except GitFailed as failure:
            if not _is_stale(failure):
                raise
            there = _commit_there(git, remote, target)
            if there is not None and not _is_by_an_earlier_run(git, there, commit, target):
                raise
            _push(git, remote, commit, replace(target, expected=there, seconds=until - time.monotonic()))
    except GitFailed as failure:
        return PushResult(False, _sentence(failure, remote, target), _is_passing(failure, remote))
    return PushResult(True)


def may_push(git: Git, remote: Remote, commit: str) -> bool | None:
    """Whether the remote would let this drone push a new branch: git asks it, and sends nothing.

    A hook or a rule of the host may still refuse a real push. None: the remote could not be asked.
    """
    asking = ("push", "-q", "--dry-run", "--porcelain", "--no-verify", "--no-recurse-submodules", "--no-signed")
    try:
        git.adding(remote.login).text(*asking, "--", remote.address, f"{commit}:{_TRIED}", seconds=ASK_SECONDS)
    except GitFailed as failure:
        return None if _is_passing(failure, remote) else False
    return True


def _push(git: Git, remote: Remote, commit: str, target: PushTarget) -> None:
    git.text(
        *("push", "-q", "--porcelain", "--no-verify", "--no-recurse-submodules", "--no-signed"),
        *(f"--force-with-lease={target.full}:{target.expected or ''}", "--", remote.address, f"{commit}:{target.full}"),
        seconds=target.seconds,
    )


def _commit_there(git: Git, remote: Remote, target: PushTarget) -> str | None:
    """The branch's commit on the remote now, which is fetched; None if the branch does not exist: a user deleted it."""
    if not git.text("ls-remote", "--", remote.address, target.full, seconds=target.seconds):
        return None
    fetching = ("fetch", "-q", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--", remote.address)
    git.text(*fetching, f"+{target.full}:{_THERE}", seconds=target.seconds)
    return git.text("rev-parse", _THERE)


def _is_by_an_earlier_run(git: Git, there: str, commit: str, target: PushTarget) -> bool:
    """Whether a run of this same order pushed the branch's commit; False if another party may have.

    A drone can die between its push and its report of it. Its grant has expired by now, so it pushes no more. That only
    this order's work is replaced is shown by its drone committer and the commit's trailer, if the project wants
    trailers, or by its being an ancestor of ours.
    """
    return is_by_order(git, there, target.order_id) or _is_ancestor(git, there, commit)


def _is_ancestor(git: Git, older: str, newer: str) -> bool:
    try:
        git.text("merge-base", "--is-ancestor", older, newer)
    except GitFailed:
        return False
    return True


def _is_stale(failure: GitFailed) -> bool:
    return "stale info" in failure.message or "fetch first" in failure.message


def _is_passing(failure: GitFailed, remote: Remote) -> bool:
    """Whether a retry may help: not if the remote refused the push; a push that took too long may be quicker then."""
    if failure.code is None:
        return True
    refused = _is_stale(failure) or "rejected" in failure.message
    error = explain(failure, remote)
    # The host's name was known when the work began.
    return not refused and (isinstance(error, FleetFault) or error.code == NO_HOST)


def _sentence(failure: GitFailed, remote: Remote, target: PushTarget) -> str:
    ref = target.ref
    if failure.code is None:
        return f"The push of {ref} exceeded its time limit of {target.seconds:.0f} s and was stopped."
    if _is_stale(failure):
        return f"The branch {ref} was changed on the remote meanwhile, so it was not overwritten."
    if "rejected" in failure.message:
        return f"The remote rejected {ref}: {_words(remote.clean(failure.message))}"
    error = explain(failure, remote)
    return f"{error.what[:1].upper()}{error.what[1:]}" + (f": {error.why}" if error.why else ".")


def _words(message: str) -> str:
    lines = [
        line.removeprefix("remote:").strip() for line in message.split("\n") if "remote:" in line or "rejected" in line
    ]
    return shortened("; ".join(filter(None, lines)) or message.strip(), 300)
