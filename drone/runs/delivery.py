"""What a run leaves behind: a patch and a bundle with the control plane, and the branch where it may be pushed."""

from __future__ import annotations

from dataclasses import dataclass

from drone.runs.blobs import Grant, Pushes, Store
from drone.runs.lease import Lease
from drone.workspace import Workspace
from shared import names
from shared.clock import Clock
from shared.errors import Conflict, FleetError
from shared.events import Delivered
from shared.work_order import WorkOrder

SUBJECT_CHARACTERS = 72
AUTHOR = "Dronefleet <drone@localhost>"
PUSH_MARGIN_SECONDS = 2.0
"""Left of a grant's time for ending `git push`: nothing may reach the remote after the grant."""
LATE_PUSH_SECONDS = 60.0


@dataclass(frozen=True)
class Pushing:
    """What a push rests on."""

    pushes: Pushes
    lease: Lease
    clock: Clock


def deliver(
    order: WorkOrder, workspace: Workspace, store: Store, pushing: Pushing | None
) -> tuple[Delivered, tuple[str, ...]]:
    """Commit what changed, store patch and bundle, and push the branch if `pushing` is given and a grant is.

    Blobs come first: when the event is written, all that it names is there. A push that fails is no failure of the run;
    the reason is in the result, and patch and bundle hold the same work. Beside the result come remarks for people:
    what had to be left out, and what else is to be known.

    Raises FleetError when patch or bundle could not be stored.
    """
    made = workspace.deliver(names.branch(order.order_id), commit_message(order), AUTHOR)
    remarks = (*(f"Left out: {each}" for each in made.left_out), *made.notes)
    if made.head_commit is None:
        return Delivered(base_commit=workspace.base_commit), remarks
    stored = Delivered(
        branch=names.branch(order.order_id),
        base_commit=workspace.base_commit,
        head_commit=made.head_commit,
        patch_sha256=store.put(made.patch),
        patch_bytes=len(made.patch),
        bundle_sha256=store.put(made.bundle) if made.bundle is not None else None,
        files_changed=made.files_changed,
    )
    return (stored if pushing is None else _pushed(stored, order, workspace, pushing)), remarks


def commit_message(order: WorkOrder) -> str:
    """First line of the prompt as subject, and a trailer that names the order."""
    first = next((line.strip() for line in order.prompt.splitlines() if line.strip()), "Work order")
    subject = first if len(first) <= SUBJECT_CHARACTERS else first[: SUBJECT_CHARACTERS - 1].rstrip() + "…"
    return f"{subject}\n\nFleet-Order: {order.order_id}\n"


def _pushed(stored: Delivered, order: WorkOrder, workspace: Workspace, pushing: Pushing) -> Delivered:
    if not pushing.lease.valid():
        return stored.model_copy(update={"push_error": "The fleet could not be reached, so nothing was pushed."})
    asked_at = pushing.clock.boottime()
    try:
        grant = pushing.pushes.ask()
    except Conflict:
        return _pushed_late(stored, order, workspace)
    except FleetError as error:
        return stored.model_copy(update={"push_error": f"The permission to push could not be had: {error.what}."})
    left = grant.expires_in - (pushing.clock.boottime() - asked_at) - PUSH_MARGIN_SECONDS
    return _push(stored, workspace, grant, left)


def _push(stored: Delivered, workspace: Workspace, grant: Grant, seconds: float) -> Delivered:
    assert stored.branch is not None
    if seconds <= 0:
        return stored.model_copy(update={"push_error": "The permission to push came too late to be used."})
    result = workspace.push(stored.branch, grant.known, seconds)
    return stored.model_copy(update={"pushed": result.pushed, "push_error": result.error})


def _pushed_late(stored: Delivered, order: WorkOrder, workspace: Workspace) -> Delivered:
    """Another run holds the order: this one's work goes to a ref of its own, where it is in nobody's way."""
    late = names.late_branch(order.order_id, order.attempt)
    result = workspace.push(late, None, LATE_PUSH_SECONDS)
    return stored.model_copy(
        update={
            "late_ref": late if result.pushed else None,
            "push_error": "Another run holds the order"
            + (
                f"; this work was pushed to {late}."
                if result.pushed
                else f", and {late} could not be pushed: {result.error}"
            ),
        }
    )
