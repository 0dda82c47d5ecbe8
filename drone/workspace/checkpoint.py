"""The state of a workspace after a step, kept as a commit in the drone's own git directory and as a bundle for others.

Cheap if little changed: a separate index tracks each file from one checkpoint to the next, and the bundle is made only
for new content. No file of the workspace is altered (a removed work directory is recreated), and nothing of its `.git`
is read outside the sandbox.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from drone.sandbox import Sandbox
from drone.workspace.agent_commits import added_since, bring_over
from drone.workspace.authorship import AUTHOR_EMAIL, AUTHOR_NAME
from drone.workspace.bundles import BundleTooLarge, write_bundle
from drone.workspace.caches import caches_in
from drone.workspace.conversions import in_portions
from drone.workspace.git import Git, GitFailed, at_once
from drone.workspace.lfs import LfsFiles
from drone.workspace.patches import READABLE, Patches, branch_base
from drone.workspace.secret_scan import HasSecret, SecretScan
from drone.workspace.session_directory import CHECKPOINT_REFS, SessionDirectory
from drone.workspace.staging import (
    CACHE,
    differing,
    is_file,
    mend_work_tree,
    named,
    read_tree,
    refresh,
    remove_special_files,
    status_of,
    update_index,
    why_not,
)
from drone.workspace.starting_point import StartingPoint
from drone.workspace.statuses import Statuses, statuses_of
from drone.workspace.submodule_changes import SubmoduleChanges
from drone.workspace.submodules import compared, remove_from_index, submodules_of

LARGEST_FILE = 20 * 1000 * 1000
"""Bytes; a larger file is left out."""
LARGEST_BUNDLE = 32 * 1000 * 1000
"""Bytes; a larger checkpoint stays on this disk."""
_HOPELESS = 4 * LARGEST_BUNDLE
"""Bytes on disk from which packing into a bundle is not attempted."""
HOLDS_SECRET = "it contains a known secret"  # noqa: S105 - the reason shown to users
_UNKNOWN = "unknown"
_PATIENCE = 20.0
_COMMITS_SECONDS = 60.0


@dataclass(frozen=True)
class Snapshot:
    """The workspace after a step."""

    commit: str
    """Its tree is the workspace, its parent the agent's last commit; empty while nothing differs from the base."""
    head: str
    """The agent's own last commit; empty: the base."""
    changed: bool
    """Whether it differs from the checkpoint before it in this run; from the base, if there is none."""
    bundle: bytes | None
    """Adds the commit to a repository that has the remote's objects; None if nothing changed or if it is too large."""
    left_out: tuple[str, ...]
    """What is not in it, each with the reason; a file among them stays as in the parent."""
    kept_on_disk: tuple[str, ...]
    """What is not in it either, but stays in this workspace when a run goes back to it."""
    is_whole: bool
    """Whether only caches are not in it."""
    patches: Patches | None = None
    """The changes so far; None if nothing changed."""


@dataclass(frozen=True)
class Known:
    """The newest checkpoint."""

    tree: str = ""
    head: str = ""
    commit: str = ""
    run_id: str = ""

    def is_like(self, other: Known) -> bool:
        return (self.tree, self.head) == (other.tree, other.head)


@dataclass(frozen=True)
class _AgentsHead:
    """The head last seen in the workspace, and the commit that was kept from it."""

    seen: str = ""
    kept: str = ""
    goes_on: bool = True
    """Whether it descends from the base; else it is only kept, for the agent's own `.git`."""
    also: frozenset[bytes] = frozenset()
    """Files in a head that does not descend from the base, and not in the base: git may ignore them."""
    remark: str = ""


_Signature = tuple[int, int, int, int]


class WorkspaceCheckpoints:
    """Takes the checkpoints of one run."""

    def __init__(self, session: SessionDirectory, sandbox: Sandbox, start: StartingPoint) -> None:
        self._session = session
        self._sandbox = sandbox
        self._start = start
        self._plain = session.git.at(session.git_dir).uninterrupted()
        own_index = {"GIT_INDEX_FILE": str(session.checkpoint_index)}
        self._git = session.git.uninterrupted().adding(own_index)
        self._scan = SecretScan(self._plain, session.history, lambda _: False)
        self._last = Known()
        self._head = _AgentsHead()
        self._parent = start.commit
        """The commit that the index was last set to."""
        self._tree = ""
        """Of the index."""
        self._left_out: dict[bytes, str] = {}
        self._gone: set[bytes] = set()
        self._added: set[bytes] = set()
        """Files in the index that are not in the parent; of these and of `_gone` git may say that it ignores them."""
        self.inside_submodules = SubmoduleChanges(session)
        self._submodules: Mapping[bytes, str] | None = None
        """Of the parent."""
        self._lfs: LfsFiles
        self._gone_submodules: frozenset[bytes] = frozenset()
        self._secret_files: dict[bytes, _Signature] = {}
        self._base_tree = ""
        self._too_large = ""
        self._too_large_at = 0
        self._is_ready = False
        self._seen: tuple[Statuses, _AgentsHead] | None = None
        """From what `_tree` was made, if each later change of the work tree must show in its statuses."""
        self._only_git_can_tell = False

    def go_on_from(self, known: Known) -> None:
        """Note that the work tree and the index were set to this checkpoint of an earlier run."""
        self._last = known
        self._head = self._head_at(known.head) if known.head else _AgentsHead()
        self._parent = _UNKNOWN

    def take(self, run_id: str, has_secret: HasSecret, agent_commits: bool) -> Snapshot:
        """Keep the workspace as it is now; see `Workspace.checkpoint`."""
        self._scan.has_secret = has_secret
        mend_work_tree(self._session.work)
        if agent_commits:
            self._head = self._look_at_head()
        tree = self._tree_of_work()
        now = self._committed(replace(self._last, tree=tree, head=self._head.kept), run_id)
        before = self._last if self._last.run_id == run_id else self._base()
        is_new = not now.is_like(before)
        bundle, patches = (
            at_once(partial(self._named_and_bundled, now), partial(self._patches, now)) if is_new else (None, None)
        )
        self._last = now
        stays = {path: reason for path, reason in self._left_out.items() if self._stays(path)}
        gone = {path: reason for path, reason in self._left_out.items() if path not in stays}
        too_large = self._too_large if now.commit else ""
        left_out = (*named(gone), *filter(None, [self._head.remark]))
        kept_on_disk = (*named(stays), *filter(None, [too_large]))
        is_whole = not (left_out or too_large) and all(reason == CACHE for reason in stays.values())
        return Snapshot(now.commit, now.head, is_new, bundle, left_out, kept_on_disk, is_whole, patches)

    def _stays(self, path: bytes) -> bool:
        """Whether a path that is left out stays when a run goes back: a cache, or the directory of a submodule."""
        in_index = self._submodules or {}
        return self._left_out[path] == CACHE or path.removesuffix(b"/") in {*in_index, *self.inside_submodules.fetched}

    @property
    def agents_head(self) -> str:
        """The agent's last commit that was brought over, if it descends from the base; else empty."""
        return self._head.kept if self._head.goes_on else ""

    def whole_tree(self, parent: str | None) -> str | None:
        """The work tree as a tree, as `stage` would write it relative to `parent`; None if only that can tell.

        That is so before the first checkpoint, and if a checkpoint leaves out what a delivery has.
        """
        if not self._is_ready or parent != self._parent:
            return None
        try:
            tree = self._tree_of_work()
            if self._left_out or self._has_undelivered():
                return None
        except GitFailed:
            return None  # as a failed checkpoint fails no run: a delivery has an index of its own
        # The session's next order starts with what git knows about the files.
        self._session.take_kept_index()
        return tree

    def _has_undelivered(self) -> bool:
        """Whether the index has a file that a delivery leaves out: git ignores it by now, or it belongs to a cache."""
        if not self._added:
            return False
        ignored = self._git.raw("ls-files", "-z", "--cached", "--ignored", "--exclude-standard").split(b"\0")
        return not self._added.isdisjoint(ignored) or any(caches_in(self._git, self._added))

    def change(self, has_secret: HasSecret) -> bytes:
        """The workspace as it is now, as a patch against the base; see `Workspace.change`."""
        self._scan.has_secret = has_secret
        mend_work_tree(self._session.work)
        return self._plain.raw(*READABLE, self._base().tree, self._tree_of_work())

    def _patches(self, now: Known) -> Patches:
        base = branch_base(self._plain, self._start.published, self._start.commit, now.head or self._start.commit)
        turn = self._plain.raw(*READABLE, self._base().tree, now.tree)
        return Patches(turn, self._plain.raw(*READABLE, base, now.tree) if base else None)

    def _ensure_index(self) -> None:
        """Ensure an index. A lock left by a killed git is stale, because only one run holds the session."""
        index = self._session.checkpoint_index
        index.with_name(f"{index.name}.lock").unlink(missing_ok=True)
        if not index.exists():
            self._session.keep_index()

    def _base(self) -> Known:
        if not self._base_tree:
            self._base_tree = self._session.tree_of(self._start.commit)
        return Known(self._base_tree)

    # The agent's own commits

    def _look_at_head(self) -> _AgentsHead:
        known = self._head
        brought = bring_over(
            self._session, self._sandbox, self._start.commit, known=known.seen, seconds=_COMMITS_SECONDS
        )
        head = brought.head or brought.apart
        if not head:
            return _AgentsHead(remark=brought.note)
        if head == known.seen:
            return known
        if reason := self._why_not_commits(head):
            remark = f"commits up to {head[:12]}: {reason}; their changes are kept without the commits"
            return replace(known, seen=head, remark=remark)
        return self._head_at(head)

    def _head_at(self, head: str) -> _AgentsHead:
        base = self._start.commit
        if base is None or self._plain.is_ancestor(base, head):
            return _AgentsHead(head, head)
        return _AgentsHead(head, head, goes_on=False, also=added_since(self._plain, base, head))

    def _why_not_commits(self, head: str) -> str:
        """Each version of each file counts: all of them would be in the bundle."""
        without = [f"^{commit}" for commit in (self._start.commit, self._head.kept) if commit]
        objects = self._plain.text("rev-list", "--objects", "--no-object-names", head, *without).split()
        if self._scan.largest(objects) > LARGEST_FILE:
            return "they contain a file over the checkpoint limit"
        return "they contain a known secret" if self._scan.with_secrets(objects) else ""

    # The work tree

    def _tree_of_work(self) -> str:
        statuses, seen, self._seen = self._statuses(), self._seen, None
        if seen is None or seen != (statuses, self._head) or self._parent != self._parent_now():
            self._tree = self._tree_by_git()
        if statuses is not None and statuses.settled:
            self._seen = statuses, self._head
        return self._tree

    def _statuses(self) -> Statuses | None:
        """What the file system notes of the work tree; None where only git can tell whether it changed."""
        if self._only_git_can_tell or self._submodules:
            return None
        found = statuses_of(self._session.work)
        self._only_git_can_tell = found is None
        return found

    def _tree_by_git(self) -> str:
        try:
            return self._staged(self._git.bounded(_PATIENCE))
        except GitFailed as failure:
            if failure.code is not None:
                raise
        # A FIFO named `.gitignore` makes git wait for a writer; if there is none, git is just slow.
        remove_special_files(self._session.work)
        return self._staged(self._git)

    def _parent_now(self) -> str | None:
        return self._head.kept if self._head.kept and self._head.goes_on else self._start.commit

    def _staged(self, git: Git) -> str:
        """Update the index to the work tree and return its tree; the index is only written if something changed."""
        self._ensure_index()
        parent = self._parent_now()
        if self._submodules is None:
            self._submodules, self._lfs = submodules_of(git), self._lfs_files(git)
        found = compared(git, parent, self._submodules)
        moved = parent != self._parent or found.gone != self._gone_submodules
        # If the rest is interrupted, the next call starts from the parent and checks each difference again.
        self._parent = _UNKNOWN
        if moved:
            read_tree(git, parent)
            self._gone, self._added = set(), set()
            self._submodules, self._lfs = submodules_of(git), self._lfs_files(git)
            found = compared(git, parent, self._submodules)
            remove_from_index(git, found.gone)
            self._gone_submodules = found.gone
        differences = differing(git, self._added, self._gone | self._head.also)
        changed = [path for path in differences.paths if not self._lfs.is_unchanged(path)]
        left_out, wanted = self._sorted_out([*changed, *self._back_again()])
        left_out |= self.inside_submodules.named(found) | differences.left_out
        tree = "" if moved or left_out.keys() != self._left_out.keys() else self._tree
        if wanted:
            update_index(git, wanted, left_out)
            write_tree = partial(git.text, "write-tree")
            secret, tree = at_once(partial(self._with_secrets, git, parent), write_tree)
            left_out |= secret
        elif not self._is_ready:
            # Files from the second in which the index was written are read each time until it is written again.
            refresh(git, "--force-write-index")
        if left_out and (wanted or not tree):
            self._put_as_in_parent(git, parent, [*left_out, *differences.cached])
            self._added -= differences.cached
            tree = ""
        self._tree = tree or git.text("write-tree")
        self._parent, self._left_out, self._is_ready = parent, left_out, True
        return self._tree

    def _lfs_files(self, git: Git) -> LfsFiles:
        return LfsFiles(git, (self._start.commit, self._start.published))

    def _back_again(self) -> Iterable[bytes]:
        """Files of the parent that were gone and exist again: git does not list them if it ignores them."""
        return [path for path in self._gone | self._head.also if is_file(self._session.work, path)]

    def _sorted_out(self, paths: Iterable[bytes]) -> tuple[dict[bytes, str], list[bytes]]:
        """The paths that cannot be taken, with the reasons, and those that can."""
        reasons = {path: self._why_not(path) for path in paths}
        return {path: why for path, why in reasons.items() if why}, [path for path, why in reasons.items() if not why]

    def _why_not(self, path: bytes) -> str:
        if path in self._secret_files and self._signature(path) == self._secret_files[path]:
            return HOLDS_SECRET
        return why_not(self._session.work, path, LARGEST_FILE, "over the checkpoint limit of")

    def _with_secrets(self, git: Git, parent: str | None) -> dict[bytes, str]:
        """The paths that differ from the parent and hold a known secret; their current signatures are remembered."""
        options = ("--cached", "--raw", "-z", "--no-abbrev", "--no-renames", "--ignore-submodules=all")
        fields = git.raw("diff-index", *options, parent or self._base().tree).split(b"\0")
        facts_of = {path: facts.split() for facts, path in zip(fields[::2], fields[1::2], strict=False)}
        self._added = {path for path, facts in facts_of.items() if facts[4] == b"A"}
        blobs = {path: facts[3].decode() for path, facts in facts_of.items()}
        self._gone = {path for path, blob in blobs.items() if not blob.strip("0")}
        blobs = {path: blob for path, blob in blobs.items() if path not in self._gone}
        secret = self._scan.with_secrets(blobs.values())
        found = [path for path, blob in blobs.items() if blob in secret or self._scan.has_secret(path)]
        self._secret_files |= {path: self._signature(path) for path in found}
        return dict.fromkeys(found, HOLDS_SECRET)

    def _signature(self, path: bytes) -> _Signature:
        try:
            status = status_of(self._session.work, path)
        except OSError:
            return (0, 0, 0, 0)
        return (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)

    def _put_as_in_parent(self, git: Git, parent: str | None, left_out: Iterable[bytes]) -> None:
        """Set each path in the index to its state in the parent, or remove it."""
        paths = [path for path in left_out if not path.endswith(b"/")]
        entries = dict.fromkeys(paths, b"0 " + b"0" * len(self._base().tree))
        for names in in_portions(paths) if parent else ():
            for line in filter(None, git.raw("ls-tree", "-z", parent or "", "--", *names).split(b"\0")):
                facts, _, path = line.partition(b"\t")
                if b" tree " not in facts:
                    entries[path] = facts
        lines = b"".join(facts + b"\t" + path + b"\0" for path, facts in entries.items())
        git.text("update-index", "-z", "--index-info", stdin=lines)

    # The commit and its bundle

    def _committed(self, now: Known, run_id: str) -> Known:
        """The same checkpoint with its commit."""
        commit = now.commit if now.is_like(self._last) else self._commit(now, run_id)
        return replace(now, commit=commit, run_id=run_id)

    def _named_and_bundled(self, now: Known) -> bytes | None:
        on_disk, _ = at_once(partial(self._on_disk, now), partial(self._name, now))
        return self._bundle(now, on_disk) if now.commit else None

    def _name(self, now: Known) -> None:
        """Let a ref of the run name the commit."""
        ref = f"{CHECKPOINT_REFS}/{now.run_id}"
        if now.commit and (now.commit, now.run_id) != (self._last.commit, self._last.run_id):
            self._plain.text("update-ref", ref, now.commit)
        elif not now.commit and self._last.commit and self._last.run_id == now.run_id:
            self._plain.text("update-ref", "-d", ref)

    def _commit(self, now: Known, run_id: str) -> str:
        if now.is_like(self._base()):
            return ""
        who = {"NAME": AUTHOR_NAME, "EMAIL": AUTHOR_EMAIL}
        signed = self._plain.adding({f"GIT_{role}_{k}": v for role in ("AUTHOR", "COMMITTER") for k, v in who.items()})
        parent = now.head or self._start.commit
        parents = ["-p", parent] if parent else []
        return signed.text("commit-tree", now.tree, *parents, "-m", f"Checkpoint of run {run_id}")

    def _on_disk(self, now: Known) -> int:
        """Bytes of what the bundle would hold."""
        if not now.commit:
            return 0
        published = self._start.published
        without = [f"^{published}"] if published else []
        return int(self._plain.text("rev-list", "--objects", "--disk-usage", now.commit, *without))

    def _bundle(self, now: Known, on_disk: int) -> bytes | None:
        # Deltas may make it smaller, but one that was too large before and has not shrunk is not packed again.
        if on_disk < (self._too_large_at or _HOPELESS):
            try:
                bundle = write_bundle(
                    self._plain, f"{CHECKPOINT_REFS}/{now.run_id}", self._start.published, LARGEST_BUNDLE
                )
            except BundleTooLarge:
                pass
            else:
                self._too_large = ""
                return bundle
        self._too_large_at = min(on_disk, self._too_large_at or on_disk)
        self._too_large = (
            f"all: {on_disk / 1e6:,.0f} MB, over {LARGEST_BUNDLE / 1e6:,.0f} MB, so it is stored only on this drone"
        )
        return None
