"""The result of a workspace: one head commit, a patch against the base, a bundle, and what had to be left out."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from drone.sandbox import Sandbox
from drone.workspace.agent_commits import added_since, bring_over
from drone.workspace.checkpoint import WorkspaceCheckpoints
from drone.workspace.git import Git, at_once
from drone.workspace.lfs import LfsFiles
from drone.workspace.patches import COMPLETE, DIFF, branch_base
from drone.workspace.session_directory import SessionDirectory
from drone.workspace.staging import Parent, mend_work_tree, named, stage
from drone.workspace.submodule_changes import ChangedSubmodule
from drone.workspace.submodules import Submodules
from shared.trailers import has_trailers

DELIVERED = "refs/dronefleet/delivered"
"""In the drone's git directory of a session: the head of its last delivery."""
_AUTHOR = re.compile(r"(?P<name>[^<>]*)<(?P<email>[^<>]*)>\s*")


@dataclass(frozen=True)
class Delivery:
    """The result of a run, in git's terms."""

    head_commit: str | None
    """None if nothing changed."""
    base_commit: str | None = None
    """What the patch applies to: the base, or what was merged into if there is nothing but the merge."""
    patch: bytes = b""
    """Applies to the base commit with `git apply`, where its submodules are checked out if any of them was changed."""
    branch_patch: bytes | None = None
    """What a pull request of the branch would show; None: the same as `patch`."""
    bundle: bytes | None = None
    """Holds the branch; needs only what the remote has, even if the base was never pushed. None: it has all of it."""
    files_changed: int = 0
    lines_added: int = 0
    lines_removed: int = 0
    left_out: tuple[str, ...] = ()
    """What could not be delivered, each with the reason."""
    caches: tuple[str, ...] = ()
    """Left out as well, and no work."""
    submodules: tuple[ChangedSubmodule, ...] = ()
    """Those that were changed: the last sections of the patch, and not in the head commit."""
    notes: tuple[str, ...] = ()
    """Other remarks for users."""

    @property
    def has_work(self) -> bool:
        """Whether there is anything to deliver: a head commit, or changes in submodules alone."""
        return self.head_commit is not None or bool(self.submodules)


@dataclass(frozen=True)
class DeliveryRequest:
    """How to name and sign the result."""

    branch: str
    message: str
    author: str
    order_id: str
    published: str | None
    """The remote's tip, on which the bundle builds."""
    merged_into: str | None = None
    """If set, the base itself is a result, and this is the commit that its patch applies to."""


def make_delivery(
    session: SessionDirectory,
    sandbox: Sandbox,
    base: str | None,
    wanted: DeliveryRequest,
    checkpoints: WorkspaceCheckpoints,
) -> Delivery:
    """Take the agent's commits, add the rest of the work tree on top as one more; write branch, patch and bundle.

    Where the last checkpoint has something already, it is not made again.
    """
    git = session.git.uninterrupted()
    plain = git.at(session.git_dir)
    mend_work_tree(session.work)
    brought = bring_over(session, sandbox, base, known=checkpoints.agents_head)
    parent = brought.head or base
    submodules: list[ChangedSubmodule] = []

    def inside_submodules(found: Submodules) -> Mapping[bytes, str]:
        submodules[:], left_out = checkpoints.inside_submodules.staged(found, sandbox)
        return left_out

    also = added_since(plain, base, brought.apart) if base and brought.apart else frozenset()
    fetched = (base, wanted.published)
    staged = stage(git, Parent(parent, fetched, also), checkpoints.whole_tree, inside_submodules)
    notes = (*((brought.note,) if brought.note else ()), *named(LfsFiles(git, fetched).remarks(session.tree_of(base))))
    made = Delivery(None, base, left_out=named(staged.left_out), caches=named(staged.caches), notes=notes)
    if staged.tree != session.tree_of(base):
        is_committed = parent is not None and parent != base and staged.tree == session.tree_of(parent)
        head = parent if is_committed else _commit(git, staged.tree, parent, wanted)
        made = replace(made, head_commit=head)
    elif wanted.merged_into is not None:
        made = replace(made, head_commit=base, base_commit=wanted.merged_into)
    if made.head_commit is not None:
        made = _written(plain, made, made.base_commit or session.tree_of(None), wanted)
    return _with_submodules(plain, made, submodules)


def _commit(git: Git, tree: str, parent: str | None, wanted: DeliveryRequest) -> str:
    found = _AUTHOR.fullmatch(wanted.author)
    name, email = (found["name"].strip(), found["email"]) if found else (wanted.author, "")
    signed = git.adding(
        {
            "GIT_AUTHOR_NAME": name or "drone",
            "GIT_AUTHOR_EMAIL": email,
            "GIT_COMMITTER_NAME": name or "drone",
            "GIT_COMMITTER_EMAIL": email,
        }
    )
    parents = ["-p", parent] if parent else []
    return signed.text("commit-tree", tree, *parents, "-F", "-", stdin=_with_trailers(wanted).encode(errors="replace"))


def _with_trailers(wanted: DeliveryRequest) -> str:
    """The message with its own trailers; if it has none, with the order's id."""
    message = wanted.message.replace("\0", " ").rstrip() or "Work of a drone"
    return f"{message}\n" if has_trailers(message) else f"{message}\n\nFleet-Order: {wanted.order_id}\n"


def _written(git: Git, made: Delivery, from_tree: str, wanted: DeliveryRequest) -> Delivery:
    """Name the head, and write patch and bundle. Without a work tree: the agent's attribute files have no effect."""
    head = made.head_commit or ""
    named_and_bundled = partial(_named_and_bundled, git, head, wanted)
    changes, bundle = at_once(partial(_changes, git, from_tree, head), named_and_bundled)
    branched_at = branch_base(git, wanted.published, made.base_commit, head)
    whole = git.raw(*DIFF, *COMPLETE, branched_at, head) if branched_at else None
    return replace(_with_changes(made, *changes), bundle=bundle, branch_patch=whole)


def _with_submodules(git: Git, made: Delivery, submodules: Sequence[ChangedSubmodule]) -> Delivery:
    """The delivery with the changes in submodules, by their paths from the project's root."""
    for each in submodules:
        prefixes = (f"--src-prefix=a/{each.path}/", f"--dst-prefix=b/{each.path}/")
        made = _with_changes(made, *_changes(git, each.commit, each.tree, *prefixes))
        pattern = shlex.quote(f"{each.shown}/*")
        note = (
            f"{each.shown}: files changed in this submodule: {each.files:,}. They are in the patch, not on the branch, "
            f"and the session's next order begins without them. git apply --include={pattern} applies them alone, "
            "in a clone of the project in which the submodule is checked out"
        )
        made = replace(made, notes=(*made.notes, note))
    return replace(made, submodules=tuple(submodules))


def _with_changes(made: Delivery, changed: list[list[bytes]], patch: bytes) -> Delivery:
    return replace(
        made,
        patch=made.patch + patch,
        files_changed=made.files_changed + len(changed),
        # Of a binary file, git counts no lines.
        lines_added=made.lines_added + sum(int(added) for added, _, _ in changed if added != b"-"),
        lines_removed=made.lines_removed + sum(int(removed) for _, removed, _ in changed if removed != b"-"),
    )


def _changes(git: Git, from_tree: str, head: str, *options: str) -> tuple[list[list[bytes]], bytes]:
    """Lines added, lines removed and path of each file; and the patch."""
    # Each line of the numbers ends with a zero byte, and so do all of them together.
    numbers, _, patch = git.raw(*DIFF, "-z", "--numstat", *COMPLETE, *options, from_tree, head).partition(b"\0\0")
    return [line.split(b"\t", 2) for line in numbers.split(b"\0") if line], patch


def _named_and_bundled(git: Git, head: str, wanted: DeliveryRequest) -> bytes | None:
    """Let the branch and `DELIVERED` name the head, and return the bundle; None if the remote has the head already."""
    branch = f"refs/heads/{wanted.branch}"
    git.text("update-ref", "--stdin", stdin=f"update {branch} {head}\nupdate {DELIVERED} {head}\n".encode())
    if wanted.published and git.is_ancestor(head, wanted.published):
        return None  # git refuses to write an empty bundle
    bundle = (git.directory or Path("/")) / "delivered.bundle"
    # Not on the base: that may be the work of an earlier order, which is only here if it could not be pushed.
    known = [f"^{wanted.published}"] if wanted.published else []
    try:
        git.text("bundle", "create", "-q", str(bundle), branch, *known)
        return bundle.read_bytes()
    finally:
        bundle.unlink(missing_ok=True)
