"""What an agent does in its workspace, and what becomes of it."""

from __future__ import annotations

from threading import Event

from drone.workspace import Delivery, Snapshot, Workspace, Workspaces
from shared.errors import Preempted
from shared.work_order import WorkOrder
from tests.support.repositories import git, no_blob
from tests.support.sandboxes import shell

AUTHOR = "Drone <drone@example.org>"
BRANCH = "fleet/0rder0rder00"


def ending(workspaces: Workspaces, order: WorkOrder) -> Workspace:
    """The workspace of an order whose run is asked to end as soon as it is prepared."""
    asked = Event()

    def check() -> None:
        if asked.is_set():
            raise Preempted

    workspace = workspaces.prepare(order, no_blob, check)
    asked.set()
    return workspace


def does(workspace: Workspace, line: str) -> str:
    """Run a shell line, which must succeed; returns its output."""
    result = shell(workspace.sandbox, workspace.path, line)
    assert result.return_code == 0, result.output
    return result.output


def keep(workspace: Workspace) -> Snapshot:
    """Take a checkpoint."""
    return workspace.checkpoint("0run0run0run", has_secret=lambda _: False)


def deliver(workspace: Workspace) -> Delivery:
    return workspace.deliver(BRANCH, "Fix it", AUTHOR)


def work(workspace: Workspace, line: str) -> Delivery:
    """Let the agent run a line, then deliver."""
    does(workspace, line)
    return deliver(workspace)


def changed_files(workspace: Workspace, made: Delivery) -> set[str]:
    """The files that a delivery changes."""
    if made.head_commit is None:
        return set()
    ends = (str(workspace.base_commit), made.head_commit)
    listing = git(workspace.session.git_dir, "diff-tree", "-r", "-z", "--name-only", *ends)
    return set(filter(None, listing.split("\0")))
