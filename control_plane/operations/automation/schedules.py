"""Schedules: tasks at the times of a cron expression. For admins; operators may run one immediately."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Select, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from control_plane.automation.cron_times import Times, read_times, times_of
from control_plane.automation.schedules import filled
from control_plane.automation.task_creation import check_names, make_task
from control_plane.contract.declarations import schedules as declared
from control_plane.contract.declarations.schedules import ScheduleDocument, ScheduleEdit, ScheduleRequest
from control_plane.contract.declarations.task_documents import TaskDocument, TaskRequest
from control_plane.contract.documents.base import MAX_COMMENT, MAX_TITLE
from control_plane.contract.validation.checks import check_name, check_text, shown, unknown
from control_plane.core import Caller, Core
from control_plane.db.automation import Schedule
from control_plane.operations.gateway import performs
from control_plane.operations.row_documents import document_of
from shared.errors import Conflict
from shared.names import new_id


@performs(declared.ADD)
def create(core: Core, caller: Caller, request: ScheduleRequest) -> ScheduleDocument:
    """Create a schedule; its first task is created at the next time of the cron expression.

    Raises Invalid for a cron expression that never matches or an unknown time zone, Conflict for a name that is taken.
    """
    now = core.clock.now()
    row = Schedule(
        id=new_id(),
        organization_id=caller.organization_id,
        **columns_of(request, now),
        enabled=True,
        last_error="",
        user=caller.user,
        created_at=now,
    )
    try:
        with core.database.write() as db:
            check_names(db, caller.organization_id, request.task)
            db.add(row)
            db.flush()
            return _document(row, now)
    except IntegrityError as error:
        raise Conflict(
            f"schedule {shown(row.name)} already exists",
            code="E-SCHEDULE-NAME",
            next=f"fleet schedule edit {row.name}",
        ) from error


@performs(declared.LIST)
def list_(core: Core, caller: Caller) -> list[ScheduleDocument]:
    """All schedules of the organization by name."""
    with core.database.read() as db:
        now = core.clock.now()
        rows = db.scalars(_alive(caller.organization_id).order_by(Schedule.name))
        return [_document(row, now) for row in rows]


@performs(declared.SHOW)
def show(core: Core, caller: Caller, name: str) -> ScheduleDocument:
    """One schedule. Raises NotFound with similar names."""
    with core.database.read() as db:
        return _document(find_schedule(db, caller.organization_id, name), core.clock.now())


@performs(declared.EDIT)
def edit(core: Core, caller: Caller, name: str, changes: ScheduleEdit) -> ScheduleDocument:
    """Change the fields that are set. A new cron expression, time zone or enabled state recomputes the next time."""

    def work(db: Session) -> ScheduleDocument:
        row = find_schedule(db, caller.organization_id, name, lock=True)
        now = core.clock.now()
        if changes.task is not None:
            check_names(db, caller.organization_id, changes.task)
            row.task = _checked(changes.task)
        row.missed = changes.missed if changes.missed is not None else row.missed
        row.enabled = changes.enabled if changes.enabled is not None else row.enabled
        if changes.cron is not None or changes.timezone is not None or changes.enabled is not None:
            _set_times(row, changes, now)
        return _document(row, now)

    return core.database.transact(work)


@performs(declared.REMOVE)
def remove(core: Core, caller: Caller, name: str) -> ScheduleDocument:
    """Remove a schedule; the tasks that it created are kept."""

    def work(db: Session) -> ScheduleDocument:
        row = find_schedule(db, caller.organization_id, name, lock=True)
        row.removed_at = core.clock.now()
        row.enabled = False
        return _document(row, row.removed_at)

    return core.database.transact(work)


@performs(declared.RUN)
def run_now(core: Core, caller: Caller, name: str) -> TaskDocument:
    """Create the schedule's task now, in addition to its regular times. Raises the errors of `tasks.create`."""
    from control_plane.operations import tasks

    def work(db: Session) -> tuple[str, str | None]:
        row = find_schedule(db, caller.organization_id, name, lock=True)
        now = core.clock.now()
        task = make_task(db, core, row, filled(TaskRequest.model_validate(row.task), now, row.timezone))
        row.last_at, row.last_task_id, row.last_error = now, task.id, ""
        return task.id, task.order_id

    task_id, order_id = core.database.transact(work)
    if order_id is not None:
        core.broker.changed(order_id)
    return tasks.show(core, caller, task_id)


def find_schedule(db: Session, organization_id: str, name: str, *, lock: bool = False) -> Schedule:
    """The schedule with this name; `lock` locks its row until the commit.

    Raises NotFound with similar names.
    """
    wanted = _alive(organization_id).where(Schedule.name == name)
    row = db.scalar(wanted.with_for_update() if lock else wanted)
    if row is None:
        known = [each.name for each in db.scalars(_alive(organization_id))]
        raise unknown("schedule", name, known, "fleet schedule ls")
    return row


def _alive(organization_id: str) -> Select[Schedule]:
    return select(Schedule).where(Schedule.organization_id == organization_id, Schedule.removed_at.is_(None))


def _set_times(row: Schedule, changes: ScheduleEdit, now: datetime) -> None:
    cron = changes.cron if changes.cron is not None else row.cron
    zone = changes.timezone if changes.timezone is not None else row.timezone
    times = read_times(cron, zone, now)
    row.cron, row.timezone = times.cron, zone
    row.next_at = times.after(now) if row.enabled else None


def columns_of(request: ScheduleRequest, now: datetime) -> dict[str, Any]:
    """What the request sets. Raises Invalid."""
    times = read_times(request.cron, request.timezone, now)
    return {
        "name": check_name("schedule", request.name),
        "cron": times.cron,
        "timezone": request.timezone,
        "missed": request.missed,
        "task": _checked(request.task),
        "next_at": times.after(now),
    }


def _checked(request: TaskRequest) -> dict[str, Any]:
    check_text("the title", request.title, limit=MAX_TITLE)
    if request.description is not None:
        check_text("the description", request.description, limit=MAX_COMMENT)
    return request.model_dump(mode="json", exclude_none=True, exclude_defaults=True)


def _document(row: Schedule, now: datetime) -> ScheduleDocument:
    return document_of(
        ScheduleDocument,
        row,
        next_at=row.next_at if row.enabled else None,
        upcoming=_upcoming(times_of(row.cron, row.timezone), row, now) if row.enabled else [],
        last_task=row.last_task_id,
    )


def _upcoming(times: Times, row: Schedule, now: datetime) -> list[datetime]:
    """The next five times. The first is the row's `next_at`, even if the supervisor is behind."""
    if row.next_at is None:
        return []
    return [row.next_at, *times.upcoming(max(now, row.next_at), 4)]
