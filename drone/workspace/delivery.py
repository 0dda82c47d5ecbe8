"""The result of a workspace: one head commit, a patch against the base, a bundle, and what had to be left out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from drone.sandbox import Sandbox
from drone.workspace.agent_commits import bring_over
from drone.workspace.git import Git
from drone.workspace.session_directory import SessionDirectory
from drone.workspace.staging import stage
from shared.trailers import has_trailers

DELIVERED = "refs/dronefleet/delivered"
"""In the drone's git directory of a session: the head of its last delivery."""
_AUTHOR = re.compile(r"\s*(?P<name>[^<>]*?)\s*<(?P<email>[^<>]*)>\s*")
_DIFF = ("diff-tree", "-r", "--no-renames", "--ignore-submodules=dirty")
_PATCH = ("-p", "--binary", "--full-index", "--no-ext-diff", "--no-textconv", "--no-color")


@dataclass(frozen=True)
class Delivery:
    """The result of a run, in git's terms."""

    head_commit: str | None
    """None if nothing changed."""
    patch: bytes = b""
    """Applies to the base with `git apply`."""
    bundle: bytes | None = None
    """Holds the branch; needs only what the remote has, even if the base was never pushed."""
    files_changed: int = 0
    left_out: tuple[str, ...] = ()
    """What could not be delivered, each with the reason."""
    notes: tuple[str, ...] = ()
    """Other remarks for users."""


@dataclass(frozen=True)
class DeliveryRequest:
    """How to name and sign the result."""

    branch: str
    message: str
    author: str
    order_id: str
    published: str | None
    """The remote's tip, on which the bundle builds."""


def make_delivery(session: SessionDirectory, sandbox: Sandbox, base: str | None, wanted: DeliveryRequest) -> Delivery:
    """Take the agent's commits, add the rest of the work tree on top as one more; write branch, patch and bundle."""
    git = session.git.uninterrupted()
    mend_work_tree(session.work)
    brought = bring_over(session, sandbox, base)
    parent = brought.head or base
    staged = stage(git, parent)
    notes = (brought.note,) if brought.note else ()
    if staged.tree == session.tree_of(base):
        return Delivery(None, left_out=staged.left_out, notes=notes)
    is_committed = parent is not None and parent != base and staged.tree == session.tree_of(parent)
    head = parent if is_committed else _commit(git, staged.tree, parent, wanted)
    from_tree = base or session.tree_of(None)
    return _written(git.at(session.git_dir), Delivery(head, left_out=staged.left_out, notes=notes), from_tree, wanted)


def mend_work_tree(work: Path) -> None:
    """Recreate a removed workspace: everything in it counts as deleted. A link in its place is not followed."""
    if work.is_symlink() or work.is_file():
        work.unlink()
    work.mkdir(exist_ok=True)


def _commit(git: Git, tree: str, parent: str | None, wanted: DeliveryRequest) -> str:
    found = _AUTHOR.fullmatch(wanted.author)
    name, email = (found["name"], found["email"]) if found else (wanted.author, "")
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
    branch = f"refs/heads/{wanted.branch}"
    git.text("update-ref", branch, head)
    git.text("update-ref", DELIVERED, head)
    changed = git.raw(*_DIFF, "-z", "--name-only", from_tree, head)
    bundle = (git.directory or Path("/")) / "delivered.bundle"
    # Not on the base: that may be the work of an earlier order, which is only here if it could not be pushed.
    known = [f"^{wanted.published}"] if wanted.published else []
    git.text("bundle", "create", "-q", str(bundle), branch, *known)
    try:
        return Delivery(
            head,
            patch=git.raw(*_DIFF, *_PATCH, from_tree, head),
            bundle=bundle.read_bytes(),
            files_changed=changed.count(b"\0"),
            left_out=made.left_out,
            notes=made.notes,
        )
    finally:
        bundle.unlink(missing_ok=True)
