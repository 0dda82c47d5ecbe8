"""The supervisor's check for due schedules: each creates its task exactly once per time.

A schedule's row has its next time, which is moved in the transaction that writes the task. Even if two supervisors
check at once, or one is stopped in the middle, either both happen or neither. The time only ever moves forward: a clock
that is set back creates nothing twice.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from sqlalchemy import BindParameter, Select, select
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as NoConnection
from sqlalchemy.orm import Session

from control_plane.automation.cron_times import Times, times_of
from control_plane.automation.task_creation import make_task
from control_plane.contract.declarations.task_documents import TaskRequest
from control_plane.core import Core
from control_plane.db.automation import Schedule
from shared.errors import FleetError
from shared.terminal import logs

log = logs.get(__name__)

GRACE = timedelta(seconds=60)
"""A time noticed within this delay does not count as missed."""
_AT_ONCE = 200
_PLACE = re.compile(r"\{\{\s*(date|time)\s*\}\}")


def due(now: datetime | BindParameter[datetime]) -> Select[str, datetime | None]:
    """Id and time of each schedule that is due."""
    ready = Schedule.enabled, Schedule.removed_at.is_(None), Schedule.next_at <= now
    return select(Schedule.id, Schedule.next_at).where(*ready)


def make_due(core: Core) -> int:
    """Create the tasks of all schedules that are due; returns the number created.

    A schedule that cannot be read is turned off, with the reason: it would fail in every round, and enough of them
    would keep all others from being looked at. Raises FleetFault for an unavailable service, and what a database
    refuses for a reason that concerns all schedules.
    """
    made = 0
    for schedule_id, due_at in _due(core):
        try:
            made += _make_one(core, schedule_id, due_at)
        except (FleetError, OperationalError, InterfaceError, NoConnection):
            raise
        except Exception as error:  # noqa: BLE001 - what one row holds must not hold up the others
            _turn_off(core, schedule_id, error)
    return made


def filled(request: TaskRequest, at: datetime, zone: str) -> TaskRequest:
    """The request with `{{date}}` and `{{time}}` in its texts replaced by the local values of the zone."""
    local = at.astimezone(ZoneInfo(zone))
    values = {"date": f"{local:%Y-%m-%d}", "time": f"{local:%H:%M}"}

    def fill(text: str) -> str:
        return _PLACE.sub(lambda found: values[found[1]], text)

    description = fill(request.description) if request.description is not None else None
    return request.model_copy(update={"title": fill(request.title), "description": description})


def _due(core: Core) -> list[tuple[str, datetime]]:
    earliest = due(core.clock.now()).order_by(Schedule.next_at).limit(_AT_ONCE)
    with core.database.read() as db:
        return [(schedule_id, at) for schedule_id, at in db.execute(earliest) if at is not None]


def _make_one(core: Core, schedule_id: str, due_at: datetime) -> bool:
    """True if a task was created."""

    def work(db: Session) -> tuple[bool, str | None]:
        row = db.get_one(Schedule, schedule_id, with_for_update=True, populate_existing=True)
        # Another supervisor was first, or a person changed the schedule.
        if row.next_at != due_at or not row.enabled or row.removed_at is not None:
            return False, None
        now, times = core.clock.now(), times_of(row.cron, row.timezone)
        row.next_at = times.after(max(now, due_at))
        if row.missed == "skip" and _missed(times, due_at, now):
            row.last_error = f"the task due at {due_at:%Y-%m-%d %H:%M} UTC was missed and skipped"
            return False, None
        return _make(db, core, row, due_at if now - due_at <= GRACE else now)

    made, order_id = core.database.transact(work)
    if order_id is not None:
        core.broker.changed(order_id)
    return made


def _turn_off(core: Core, schedule_id: str, error: Exception) -> None:
    log.error("a schedule cannot be read and is turned off", schedule=schedule_id, error=type(error).__name__)
    with core.database.write() as db:
        row = db.get_one(Schedule, schedule_id, with_for_update=True)
        row.enabled = False
        row.last_error = f"turned off, because it cannot be read ({type(error).__name__}): edit it, or add it again"


def _missed(times: Times, due_at: datetime, now: datetime) -> bool:
    """Whether even the schedule's latest time passed longer ago than the grace period."""
    if now - due_at <= GRACE:
        return False
    latest = times.after(now - GRACE - timedelta(microseconds=1))
    return latest is None or latest > now


def _make(db: Session, core: Core, row: Schedule, at: datetime) -> tuple[bool, str | None]:
    """Whether a task was created, and its order, if it began. A refusal is recorded, and the schedule continues."""
    try:
        task = make_task(db, core, row, filled(TaskRequest.model_validate(row.task), at, row.timezone))
    except FleetError as error:
        row.last_error = f"no task created at {at:%Y-%m-%d %H:%M} UTC: {error.what}"
        return False, None
    row.last_at, row.last_task_id, row.last_error = core.clock.now(), task.id, ""
    return True, task.order_id
