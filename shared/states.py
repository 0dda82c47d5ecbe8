"""The states of orders, runs, turns and drones, and the one table of allowed transitions for each."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum


class OrderStatus(StrEnum):
    """A work order's life, from submission to its one end."""

    QUEUED = "queued"
    ASSIGNED = "assigned"
    RUNNING = "running"
    AWAITING_APPROVAL = "awaiting_approval"
    CANCELING = "canceling"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"


class RunStatus(StrEnum):
    """One attempt's life on one drone."""

    RUNNING = "running"
    SUCCESS = "success"
    FAILED = "failed"
    PREEMPTED = "preempted"
    LOST = "lost"


class TurnStatus(StrEnum):
    """What the user sees of an order in its session."""

    PROCESSING = "processing"
    FINISHED = "finished"
    ERROR = "error"
    ABORTED = "aborted"


class TaskStatus(StrEnum):
    """A task's life (S-023). `open` waits for its assignee: an agent, or the user."""

    OPEN = "open"
    IN_PROGRESS = "in_progress"
    FAILED = "failed"
    """Returned to the user."""
    DONE = "done"
    """Can be reopened."""
    CANCELED = "canceled"
    """Final."""


class DroneStatus(StrEnum):
    """What users see of a drone; derived, never stored."""

    ONLINE = "online"
    BUSY = "busy"
    DRAINING = "draining"
    UNRESPONSIVE = "unresponsive"
    OFFLINE = "offline"
    REMOVED = "removed"


_O = OrderStatus
_IN_HAND = (_O.ASSIGNED, _O.RUNNING, _O.AWAITING_APPROVAL)

ORDER_TRANSITIONS: dict[OrderStatus, frozenset[OrderStatus]] = {
    _O.QUEUED: frozenset({_O.ASSIGNED, _O.CANCELED}),
    _O.ASSIGNED: frozenset({_O.RUNNING, _O.QUEUED, _O.CANCELING, _O.FAILED}),
    _O.RUNNING: frozenset({_O.SUCCEEDED, _O.FAILED, _O.AWAITING_APPROVAL, _O.QUEUED, _O.CANCELING}),
    _O.AWAITING_APPROVAL: frozenset({_O.RUNNING, _O.QUEUED, _O.CANCELING, _O.FAILED}),
    _O.CANCELING: frozenset({_O.CANCELED}),
    _O.SUCCEEDED: frozenset(),
    _O.FAILED: frozenset({_O.QUEUED}),
    _O.CANCELED: frozenset({_O.QUEUED}),
}
"""A transition that is not in this table is a `Conflict` that names both states."""

RUN_TRANSITIONS: dict[RunStatus, frozenset[RunStatus]] = {
    RunStatus.RUNNING: frozenset({RunStatus.SUCCESS, RunStatus.FAILED, RunStatus.PREEMPTED, RunStatus.LOST}),
    RunStatus.SUCCESS: frozenset(),
    RunStatus.FAILED: frozenset(),
    RunStatus.PREEMPTED: frozenset(),
    RunStatus.LOST: frozenset(),
}

TURN_TRANSITIONS: dict[TurnStatus, frozenset[TurnStatus]] = {
    TurnStatus.PROCESSING: frozenset({TurnStatus.FINISHED, TurnStatus.ERROR, TurnStatus.ABORTED}),
    TurnStatus.FINISHED: frozenset(),
    TurnStatus.ERROR: frozenset({TurnStatus.PROCESSING}),
    TurnStatus.ABORTED: frozenset({TurnStatus.PROCESSING}),
}

_T = TaskStatus
TASK_TRANSITIONS: dict[TaskStatus, frozenset[TaskStatus]] = {
    # To itself: a comment's tag changes the assignee.
    _T.OPEN: frozenset({_T.OPEN, _T.IN_PROGRESS, _T.DONE, _T.CANCELED}),
    _T.IN_PROGRESS: frozenset({_T.OPEN, _T.FAILED, _T.CANCELED}),
    _T.FAILED: frozenset({_T.OPEN, _T.DONE, _T.CANCELED}),
    _T.DONE: frozenset({_T.OPEN}),
    _T.CANCELED: frozenset(),
}
"""S-024; the callers define who may request which transition, and with which assignee."""

NOTICES = (
    "order.succeeded",
    "order.failed",
    "order.canceled",
    "order.awaiting_approval",
    "task.waiting",
    "task.failed",
    "task.done",
    "task.canceled",
    "budget.warning",
    "budget.exhausted",
)
"""Events that people wait for, and that webhooks send. `task.waiting`: the task was assigned to the user."""

ENDED = frozenset({_O.SUCCEEDED, _O.FAILED, _O.CANCELED})
IN_HAND = frozenset(_IN_HAND)
TAKES_WORK = frozenset({DroneStatus.ONLINE, DroneStatus.BUSY})
"""States of a drone in which orders are sent to it."""
"""States in which a drone holds, or is about to hold, an order."""

UNRESPONSIVE_AFTER = timedelta(seconds=15)
OFFLINE_AFTER = timedelta(seconds=60)
BEAT_EVERY = timedelta(seconds=5)


def drone_status(  # noqa: PLR0913 - one argument per fact that decides
    *,
    now: datetime,
    last_seen_at: datetime | None,
    stopped: bool,
    removed: bool,
    draining: bool,
    running: int,
    concurrency: int,
) -> DroneStatus:
    """Return the status that users see for a drone with these facts."""
    silence = now - last_seen_at if last_seen_at else OFFLINE_AFTER
    if removed:
        return DroneStatus.REMOVED
    if stopped or silence >= OFFLINE_AFTER:
        return DroneStatus.OFFLINE
    if silence >= UNRESPONSIVE_AFTER:
        return DroneStatus.UNRESPONSIVE
    if draining:
        return DroneStatus.DRAINING
    return DroneStatus.BUSY if running >= concurrency else DroneStatus.ONLINE
