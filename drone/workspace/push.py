"""Pushes a commit to the remote: only over what is known to be there, and not a second past the permission."""

from __future__ import annotations

from dataclasses import dataclass

from drone.workspace.failures import explain
from drone.workspace.git import Git, GitFailed
from drone.workspace.remote import Remote


@dataclass(frozen=True)
class PushResult:
    """Whether the ref is on the remote now, and if not, why, in one sentence."""

    pushed: bool
    error: str | None = None


def push(git: Git, remote: Remote, commit: str, ref: str, lease: tuple[str | None, float]) -> PushResult:
    """Push `commit` to the branch `ref`, within `lease`: what the branch must be there now, and seconds.

    None means that the branch must not exist yet. git is ended when the time is up.
    """
    expected, seconds = lease
    full = f"refs/heads/{ref}"
    try:
        git.adding(remote.login).text(
            *("push", "-q", "--porcelain", "--no-verify", "--no-recurse-submodules", "--no-signed"),
            *(f"--force-with-lease={full}:{expected or ''}", "--", remote.address, f"{commit}:{full}"),
            seconds=seconds,
        )
    except GitFailed as failure:
        return PushResult(False, _sentence(failure, remote, ref, seconds))
    return PushResult(True)


def _sentence(failure: GitFailed, remote: Remote, ref: str, seconds: float) -> str:
    if failure.code is None:
        return f"The push of {ref} took longer than the {seconds:.0f} s that were granted, and was ended."
    if "stale info" in failure.message or "fetch first" in failure.message:
        return f"The branch {ref} on the remote is not what it was known to be, so it was left as it is."
    if "rejected" in failure.message:
        return f"The remote refused {ref}: {_words(remote.clean(failure.message))}"
    error = explain(failure, remote)
    return f"{error.what[:1].upper()}{error.what[1:]}" + (f": {error.why}" if error.why else ".")


def _words(message: str) -> str:
    lines = [
        line.removeprefix("remote:").strip() for line in message.splitlines() if "remote:" in line or "rejected" in line
    ]
    return "; ".join(filter(None, lines))[:300] or message.strip()[:300]
