"""Changes inside submodules: no part of the project's tree, they are delivered as sections of the patch.

Into the submodules that the drone fetched looks its own git. What is in others is named, and only git in the sandbox
looks into these.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from drone.sandbox import Sandbox
from drone.workspace.git import Git, GitFailed
from drone.workspace.lfs import LfsFiles
from drone.workspace.plain_head import plain_head
from drone.workspace.session_directory import SessionDirectory
from drone.workspace.staging import CACHE, Parent, differing, read_tree, refresh, stage
from drone.workspace.submodule_sources import Submodule
from drone.workspace.submodules import Submodules, compared, content, submodules_of, unchanged
from shared.errors import FleetError, Preempted

FOREIGN = "a submodule that the drone did not fetch"


@dataclass(frozen=True)
class ChangedSubmodule:
    """A submodule with changes, which the drone's git directory has."""

    path: str
    commit: str
    """What the changes are relative to: the recorded commit, or that of the base if its repository does not have it."""
    tree: str
    files: int
    shown: str
    """The path, for users."""


class SubmoduleChanges:
    """The changes in the submodules of a session's work tree."""

    def __init__(self, session: SessionDirectory) -> None:
        self._session = session
        self._at: dict[str, str] = {}
        """The commit that the index of a submodule was last set to, by its path."""

    @property
    def fetched(self) -> frozenset[bytes]:
        """The paths of those that the drone fetched."""
        return frozenset(os.fsencode(each.path) for each in self._session.submodules if each.is_fetched)

    def named(self, found: Submodules) -> dict[bytes, str]:
        """Each submodule that differs from its commit, and what differs. Any content of a foreign one may differ."""
        reasons = {path + b"/": FOREIGN for path in self._foreign(found)}
        for each, recorded in self._present(found):
            known = self._known(each, recorded, asks=False)
            try:
                count = self._count(each, known)
            except (GitFailed, OSError) as error:
                reasons[_directory(each)] = f"a submodule that cannot be read: {error}"
                continue
            if count or known != recorded:
                reasons[_directory(each)] = f"a submodule in which files differ: {count:,}"
        return reasons

    def staged(self, found: Submodules, sandbox: Sandbox) -> tuple[list[ChangedSubmodule], dict[bytes, str]]:
        """The changed submodules for a delivery, and what cannot be delivered of all, each path with the reason.

        In the index of the session's git, a submodule becomes the commit that the agent checked out in it, as with
        `git add`, if its repository has that. If it does not have the recorded one, nobody could check that out: the
        one of the base is recorded again.
        """
        foreign = self._foreign(found)
        repositories = {path: found.commits[path] for path in foreign & found.repositories & found.commits.keys()}
        foreign -= unchanged(sandbox, self._session.work, repositories)
        changed: list[ChangedSubmodule] = []
        left_out = {path + b"/": FOREIGN for path in foreign}
        for each, recorded in self._present(found):
            commit = self._checked_out(each, self._known(each, recorded, asks=True))
            if commit != recorded and not each.around:
                self._record(each, commit)
            try:
                files, of_it = self._stage(each, commit)
            except (GitFailed, OSError) as error:
                left_out[_directory(each)] = f"a submodule that cannot be read: {error}"
                continue
            left_out |= {_directory(each) + path: reason for path, reason in of_it.items()}
            changed += files
        return changed, left_out

    def _foreign(self, found: Submodules) -> frozenset[bytes]:
        """Submodules with content that the drone did not fetch."""
        return found.filled - self.fetched

    def _present(self, found: Submodules) -> Iterator[tuple[Submodule, str]]:
        """Those that were fetched and are there, each with the commit that the project's index has for it.

        One that was removed or replaced is a change of the repository around it. The one in another is compared with
        what the base has.
        """
        for each in self._session.submodules:
            path = os.fsencode(each.path)
            recorded = each.commit if each.around else found.commits.get(path, "")
            is_there = recorded and path not in found.gone and content(self._session.git, path) is not None
            if each.is_fetched and is_there:
                yield each, recorded

    def _known(self, each: Submodule, commit: str, *, asks: bool) -> str:
        """The commit if the submodule's repository has it, as far as known or asked; else that of the base.

        A run that is to end waits for no server: what is not here is not known.
        """
        if commit == each.commit or each.mirror is None:
            return each.commit
        try:
            if asks:
                each.mirror.ensure(commit)
        except Preempted:
            pass
        except FleetError:
            return each.commit
        return commit if each.mirror.uninterrupted().has(commit) else each.commit

    def _checked_out(self, each: Submodule, commit: str) -> str:
        """What the agent checked out in a submodule of the project itself, if its repository has it; else `commit`."""
        head = None if each.around else plain_head(self._session.work / each.path)
        return commit if head is None or self._known(each, head, asks=True) != head else head

    def _record(self, each: Submodule, commit: str) -> None:
        entry = f"160000 {commit} 0\t".encode() + os.fsencode(each.path) + b"\0"
        self._session.git.uninterrupted().text("update-index", "-z", "--index-info", stdin=entry)

    def _git(self, each: Submodule) -> Git:
        return self._session.submodule_git(each.path).uninterrupted()

    def _count(self, each: Submodule, commit: str) -> int:
        """How many files differ from the commit, without caches."""
        git = self._git(each)
        if self._at.get(each.path) != commit:
            read_tree(git, commit)
            refresh(git)
            self._at[each.path] = commit
        differences = differing(git)
        lfs = LfsFiles(git, [commit]) if differences.paths else None
        changed = [path for path in differences.paths if lfs is None or not lfs.is_unchanged(path)]
        left_out = [path for path, reason in differences.left_out.items() if reason != CACHE]
        return len(changed) + len(left_out) + len(self._gone_in(git, each, commit))

    def _gone_in(self, git: Git, each: Submodule, commit: str) -> frozenset[bytes]:
        """The submodules of a submodule that were removed or replaced."""
        inner = any(other.around == each.path for other in self._session.submodules)
        return compared(git, commit, submodules_of(git)).gone if inner else frozenset()

    def _stage(self, each: Submodule, commit: str) -> tuple[list[ChangedSubmodule], Mapping[bytes, str]]:
        self._at.pop(each.path, None)
        git = self._git(each)
        # Submodules in it are among the others here.
        staged = stage(git, Parent(commit, (commit,)), lambda _: None, lambda _: {})
        if staged.tree == git.text("rev-parse", f"{commit}^{{tree}}"):
            return [], staged.left_out
        files = git.raw("diff-tree", "-r", "-z", "--name-only", "--no-renames", commit, staged.tree).count(b"\0")
        return [ChangedSubmodule(each.path, commit, staged.tree, files, each.shown)], staged.left_out


def _directory(each: Submodule) -> bytes:
    return os.fsencode(each.path) + b"/"
