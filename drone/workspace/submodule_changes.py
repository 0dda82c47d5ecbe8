"""Changes inside submodules: they would be changes of other repositories, so they are named instead of delivered.

Into the submodules that the drone fetched looks its own git, into others only git in the sandbox.
"""

from __future__ import annotations

import os

from drone.sandbox import Sandbox
from drone.workspace.git import Git, GitFailed
from drone.workspace.lfs import LfsFiles
from drone.workspace.session_directory import SessionDirectory
from drone.workspace.staging import CACHE, differing, read_tree, refresh
from drone.workspace.submodule_sources import Submodule
from drone.workspace.submodules import Submodules, compared, content, submodules_of, unchanged
from shared.errors import FleetError

_FOREIGN = "a submodule, and changes in it are not delivered"


class SubmoduleChanges:
    """What is left out of the directories of submodules."""

    def __init__(self, session: SessionDirectory) -> None:
        self._session = session
        self._at: dict[str, str] = {}
        """The commit that the index of a submodule was last set to, by its path."""

    def named(self, found: Submodules, sandbox: Sandbox | None = None) -> dict[bytes, str]:
        """The reasons, by the name of the directory. Without a sandbox, any content of a foreign one is a change."""
        fetched = [each for each in self._session.submodules if each.is_fetched]
        foreign = found.filled - {os.fsencode(each.path) for each in fetched}
        repositories = {path: found.commits[path] for path in foreign & found.repositories & found.commits.keys()}
        if sandbox is not None:
            foreign -= unchanged(sandbox, self._session.work, repositories)
        reasons = {path + b"/": _FOREIGN for path in foreign}
        for each in fetched:
            if reason := self._reason(each, found, asks=sandbox is not None):
                reasons[os.fsencode(each.path) + b"/"] = reason
        return reasons

    def _reason(self, each: Submodule, found: Submodules, *, asks: bool) -> str:
        path = os.fsencode(each.path)
        recorded = each.commit if each.around else found.commits.get(path, "")
        if not recorded or path in found.gone or content(self._session.git, path) is None:
            return ""  # removed or replaced, which is a change of the repository around it
        is_known = recorded == each.commit or self._has(each, recorded, asks=asks)
        try:
            count = self._count(each, recorded if is_known else each.commit)
        except (GitFailed, OSError) as error:
            return f"a submodule whose changes cannot be read: {error}"
        if not is_known:
            return f"a submodule, and its new commit {recorded[:12]} is not in its repository; files changed: {count:,}"
        return f"a submodule, and changes in it are not delivered; files changed: {count:,}" if count else ""

    def _has(self, each: Submodule, commit: str, *, asks: bool) -> bool:
        """Whether a commit that the agent recorded is in the submodule's repository, as far as known or asked."""
        if each.mirror is None or each.mirror.has(commit) or not asks:
            return each.mirror is not None and each.mirror.has(commit)
        try:
            each.mirror.ensure(commit)
        except FleetError:
            return False
        return True

    def _count(self, each: Submodule, commit: str) -> int:
        """How many files differ from the commit, without caches."""
        git = self._session.submodule_git(each.path)
        if self._at.get(each.path) != commit:
            read_tree(git, commit)
            refresh(git)
            self._at[each.path] = commit
        differences = differing(git)
        lfs = LfsFiles(git) if differences.paths else None
        changed = [path for path in differences.paths if lfs is None or not lfs.is_unchanged(path)]
        left_out = [path for path, reason in differences.left_out.items() if reason != CACHE]
        return len(changed) + len(left_out) + len(self._gone_in(git, each, commit))

    def _gone_in(self, git: Git, each: Submodule, commit: str) -> frozenset[bytes]:
        """The submodules of a submodule that were removed or replaced."""
        inner = any(other.around == each.path for other in self._session.submodules)
        return compared(git, commit, submodules_of(git)).gone if inner else frozenset()
