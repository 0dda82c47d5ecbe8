"""Whether what a notice reports still waits for its user."""

from __future__ import annotations

from sqlalchemy.orm import Session

from control_plane.core import Core
from control_plane.db.attention import AttentionNotice
from control_plane.db.drones import Drone
from control_plane.db.teams import Task
from control_plane.db.waits import Wait
from shared.states import OFFLINE_AFTER, TaskStatus

_WITH_USER = (TaskStatus.OPEN, TaskStatus.FAILED)


def only_reports(notice: AttentionNotice) -> bool:
    """Whether nothing waits: who had a page in front has seen it there."""
    return notice.wait_number is None and notice.task_id is None and notice.drone_id is None


def is_over(db: Session, core: Core, notice: AttentionNotice) -> bool:
    """Whether a user acted meanwhile, or it became unnecessary. A mere report is never over."""
    if notice.wait_number is not None:
        return open_wait_of(db, notice) is None
    if notice.task_id is not None:
        task = db.get(Task, notice.task_id)
        return task is None or task.assignee_id is not None or task.status not in _WITH_USER
    if notice.drone_id is not None:
        drone = db.get(Drone, notice.drone_id)
        return drone is None or drone.removed_at is not None or not needs_care(core, drone)
    return False


def open_wait_of(db: Session, notice: AttentionNotice) -> Wait | None:
    """The unanswered question of the notice, as it was asked then; None if it was answered, closed or asked again."""
    wait = db.get(Wait, notice.wait_number)
    if wait is None or wait.closed_at is not None or wait.answered_at is not None:
        return None
    return wait if notice.subject.endswith(f":{wait.asked_at.timestamp():.6f}") else None


def needs_care(core: Core, drone: Drone) -> str:
    """Why this drone needs its owner; empty if it does not."""
    if drone.keys_revoked_at is not None:
        return "its keys were revoked; register it again"
    if drone.over_quota_at is not None:
        return "it holds more of the broker's memory than it may"
    silent = core.clock.now() - drone.last_seen_at if drone.last_seen_at else None
    # An ephemeral drone may end without a word, and is removed then: its owner has nothing to do.
    stays = drone.pool_id is None
    if stays and silent is not None and silent >= 2 * OFFLINE_AFTER and not drone.stopped_at:
        return "it has been silent for some minutes"
    return ""
