"""The results of a run: a patch and a bundle on the control plane, and the branch if it may be pushed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from drone.agent.values import Ruling
from drone.runs.blobs import Grant, Pushes, Store
from drone.runs.lease import RunLease
from drone.runs.stop_requests import Wish
from drone.workspace import PushResult, SecretFinder, Workspace
from drone.workspace.git import at_once
from shared import names
from shared.backoff import delay
from shared.clock import Clock
from shared.errors import Conflict, FleetError, FleetFault, OrderError, Preempted
from shared.events import Delivered
from shared.outcome import Verification
from shared.titles import title
from shared.trailers import trailers_of
from shared.visible_text import visible
from shared.work_order import WorkOrder

AUTHOR = "Dronefleet <drone@localhost>"
PUSH_MARGIN_SECONDS = 2.0
"""Reserved at the end of a grant for ending `git push`: nothing may reach the remote after the grant."""
LATE_PUSH_SECONDS = 60.0
PATIENCE_SECONDS = 300.0
"""How long to retry a remote or a control plane that does not answer; then the branch stays unpushed."""
PAUSE_SECONDS = 2.0
LONGEST_PAUSE_SECONDS = 30.0
BREAK_OFF_SECONDS = 5.0
"""Time for an active push to finish once the run was asked to end."""
_TICK_SECONDS = 0.2


@dataclass(frozen=True)
class Pushing:
    """What a push depends on."""

    pushes: Pushes
    lease: RunLease
    clock: Clock
    wish: Callable[[], Wish | None] = field(default=lambda: None)
    """Why the run is to end, if it is: then there is no waiting."""
    say: Callable[[str], None] = field(default=lambda _: None)
    """Shows what the run is waiting for."""
    patience: float = PATIENCE_SECONDS
    verification: Verification = Verification.NOT_REACHED
    """The result of the project's own commands."""


class Pusher(Protocol):
    """Work that can be pushed: of a workspace, or as the control plane stored it."""

    def push(self, ref: str, expect: str | None, deadline_s: float, check: Callable[[], None] = ...) -> PushResult:
        """Push it to the branch `ref`, which must be at `expect`, within `deadline_s` seconds."""
        ...


@dataclass(frozen=True)
class _Tried:
    """The outcome of one push attempt."""

    result: Delivered
    away: str = ""
    """The party that did not answer, but may later; empty if the result is final."""


@dataclass(frozen=True)
class SecretCheck:
    """What happens before work leaves the drone."""

    secrets: SecretFinder
    """Recognizes what must not leave."""
    ask: Callable[[str], Ruling] | None = None
    """Asks a person whether work with secrets, found in these places, may leave; None: it may not."""


def deliver(
    order: WorkOrder, workspace: Workspace, store: Store, pushing: Pushing | None, check: SecretCheck | None = None
) -> tuple[Delivered, tuple[str, ...]]:
    """Commit the changes, store patch and bundle, and push the branch if `pushing` is given and a grant is received.

    Blobs come first: when the event is written, everything that it names exists. A remote that does not answer is
    retried for some minutes. A failed push does not fail the run; the reason is in the result, and patch and bundle
    hold the same work. The result comes with remarks for users: files that were left out, and other notes.

    `check` is made before anything leaves the drone; None: it all stays on this machine.

    Raises FleetError if patch or bundle cannot be stored, OrderError `E-WORK-SECRET`, and what `check` raises.
    """
    made = workspace.deliver(names.branch(order.order_id), commit_message(order), AUTHOR)
    remarks = (*(f"Left out: {each}" for each in (*made.left_out, *made.caches)), *made.notes)
    if not made.has_work:
        return Delivered(base_commit=made.base_commit, left_out=made.left_out), remarks
    if check is not None and (places := workspace.places_of_secrets(made, check.secrets)):
        _released("; ".join(places), order, check)
    patch, bundle = at_once(partial(store.put, made.patch), partial(_put_if_any, store, made.bundle))
    # Nothing in it is new: what was on the branch before was delivered before, and every version was searched above.
    whole = patch if made.branch_patch is None else store.put(made.branch_patch)
    stored = Delivered(
        branch=names.branch(order.order_id) if made.head_commit else None,
        base_commit=made.base_commit,
        head_commit=made.head_commit,
        patch_sha256=patch,
        patch_bytes=len(made.patch),
        branch_patch_sha256=whole if made.head_commit else None,
        bundle_sha256=bundle,
        files_changed=made.files_changed,
        lines_added=made.lines_added,
        lines_removed=made.lines_removed,
        left_out=made.left_out,
    )
    to_push = None if made.head_commit is None else pushing
    return (stored if to_push is None else pushed(stored, order, workspace, to_push)), remarks


def _put_if_any(store: Store, content: bytes | None) -> str | None:
    return None if content is None else store.put(content)


def _released(places: str, order: WorkOrder, check: SecretCheck) -> None:
    """Return if a person lets the work leave with what was found. Raises OrderError."""
    ruling = check.ask(places) if check.ask is not None else None
    if ruling is not None and ruling.approved:
        return
    denied = f"; the delivery was denied{f': {ruling.comment}' if ruling.comment else ''}" if ruling is not None else ""
    raise OrderError(
        "the work contains a secret, so it was neither pushed nor uploaded",
        code="E-WORK-SECRET",
        why=f"found in {places}{denied}; the work is kept on the drone in session {order.session.id}",
        next="order the same work without the secret, or see docs/security.md to get the work from the drone",
    )


def commit_message(order: WorkOrder) -> str:
    """The commit message: the first line of the prompt as the subject, and the trailers of the project."""
    # The briefing of a task begins with a heading: `# Task PAYM-0001: Fix the sum`.
    text = order.prompt.lstrip().removeprefix("# Task ") if order.task is not None else order.prompt
    subject = visible(title(text)) or "Work order"
    trailers = trailers_of(
        order.project.trailers, model=order.provider.model, order_id=order.order_id, ticket=order.ticket
    )
    return "\n".join([subject, "", *trailers, ""])


def pushed(stored: Delivered, order: WorkOrder, workspace: Pusher, pushing: Pushing) -> Delivered:
    """Push, and retry while the remote or the fleet is unavailable, until patience ends or the run is to end."""
    began, attempt = pushing.clock.monotonic(), 0
    while True:
        attempt += 1
        tried = _try(stored, order, workspace, pushing)
        if not tried.away:
            return tried.result
        pause = min(delay(attempt, base=PAUSE_SECONDS), LONGEST_PAUSE_SECONDS)
        spent = pushing.clock.monotonic() - began
        if spent + pause > pushing.patience:
            return _given_up(tried.result, order, f"Tried {_times(attempt)} in {spent:.0f} s.")
        pushing.say(f"{tried.away} does not answer; retrying the push in {pause:.0f} s")
        if wish := _wait(pause, pushing):
            if wish.kind == "stale":
                return _pushed_late(stored, order, workspace)
            return _given_up(tried.result, order, f"Not retried, because the run was ending: {wish.reason}.")


def _try(stored: Delivered, order: WorkOrder, workspace: Pusher, pushing: Pushing) -> _Tried:
    """One push attempt within one grant."""
    if not pushing.lease.valid():
        return _Tried(
            _unpushed(stored, "The control plane could not be reached, so nothing was pushed."), "the control plane"
        )
    asked_at = pushing.clock.boottime()
    try:
        grant = pushing.pushes.ask(pushing.verification)
    except Conflict:
        return _Tried(_pushed_late(stored, order, workspace))
    except FleetError as error:
        away = "the control plane" if isinstance(error, FleetFault) else ""
        return _Tried(_unpushed(stored, f"Permission to push was not granted: {error.what}."), away)
    return _push(stored, workspace, pushing, (grant, asked_at + grant.expires_in - PUSH_MARGIN_SECONDS))


def _push(stored: Delivered, workspace: Pusher, pushing: Pushing, granted: tuple[Grant, float]) -> _Tried:
    assert stored.branch is not None
    grant, until = granted
    seconds = until - pushing.clock.boottime()
    if seconds <= 0:
        return _Tried(_unpushed(stored, "Permission to push arrived too late to be used."), "the control plane")
    try:
        result = workspace.push(stored.branch, grant.known, seconds, _Breaking(pushing, until))
    except Preempted:
        return _Tried(_unpushed(stored, "The push was interrupted."), "the remote")
    made = stored.model_copy(update={"pushed": result.pushed, "push_error": result.error})
    return _Tried(made, "the remote" if result.passing else "")


class _Breaking:
    """The check of an active push: a push that is almost done when the run is asked to end should still arrive.

    Nothing arrives after `until`, in boot time: git's own deadline does not advance while the machine sleeps.
    """

    def __init__(self, pushing: Pushing, until: float) -> None:
        self._pushing = pushing
        self._until = until
        self._wished_at: float | None = None

    def __call__(self) -> None:
        """Raise Preempted at the end of the grant, and some seconds after the run was asked to end."""
        if self._pushing.clock.boottime() >= self._until:
            raise Preempted
        if self._pushing.wish() is None:
            return
        now = self._pushing.clock.monotonic()
        self._wished_at = self._wished_at if self._wished_at is not None else now
        if now - self._wished_at >= BREAK_OFF_SECONDS:
            raise Preempted


def _wait(seconds: float, pushing: Pushing) -> Wish | None:
    """Wait, or return at once with the wish to end the run."""
    until = pushing.clock.monotonic() + seconds
    while (wish := pushing.wish()) is None and pushing.clock.monotonic() < until:
        pushing.clock.sleep(_TICK_SECONDS)
    return wish


def _unpushed(stored: Delivered, why: str) -> Delivered:
    return stored.model_copy(update={"push_error": why})


def _given_up(tried: Delivered, order: WorkOrder, how: str) -> Delivered:
    """The result of the last attempt, with the number of attempts and the location of the work."""
    kept = f"The work is kept: fleet patch {order.order_id} | git apply, or fleet session checkout {order.session.id}"
    why = tried.push_error or "The branch was not pushed"
    return _unpushed(tried, f"{why.rstrip('.')}. {how} {kept}")


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _pushed_late(stored: Delivered, order: WorkOrder, workspace: Pusher) -> Delivered:
    """Another run holds the order: push this run's work to a separate ref, where it conflicts with nothing."""
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
