"""Schedules: tasks at the times of a cron expression."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from control_plane.contract.declarations.operation import (
    ADDS_WORK,
    READS,
    About,
    ByHand,
    Command,
    NoDoor,
    Operation,
    Tool,
)
from control_plane.contract.declarations.task_documents import TaskDocument, TaskRequest
from control_plane.contract.documents.base import Document, Request

NAME = About("schedule", "Name of the schedule.", source="schedules:name")
CRON = About("cron", "Cron expression: minute, hour, day, month, weekday, such as '0 6 * * 1-5'.")
TIMEZONE = About("time zone", "IANA time zone, such as Europe/Berlin.")
MISSED = About("missed", "Missed times: once (create one task for all of them) or skip.")
TASK = About("task", "The tasks to create: title, description, project, assignee, mode, priority, limits.")
ENABLED = About("state", "Enable or disable it.", flag="--on/--off")


class ScheduleRequest(Request):
    name: Annotated[str, NAME]
    cron: Annotated[str, CRON]
    timezone: Annotated[str, TIMEZONE] = "UTC"
    missed: Annotated[Literal["once", "skip"], MISSED] = "once"
    task: Annotated[TaskRequest, TASK]


class ScheduleEdit(Request):
    """Only the fields that are set change."""

    cron: Annotated[str | None, CRON] = None
    timezone: Annotated[str | None, TIMEZONE] = None
    missed: Annotated[Literal["once", "skip"] | None, MISSED] = None
    task: Annotated[TaskRequest | None, TASK] = None
    enabled: Annotated[bool | None, ENABLED] = None


class ScheduleDocument(Document):
    id: str
    name: Annotated[str, NAME]
    cron: Annotated[str, CRON]
    timezone: Annotated[str, TIMEZONE]
    missed: Annotated[str, MISSED]
    task: Annotated[dict[str, Any], TASK]
    enabled: Annotated[bool, ENABLED]
    next_at: Annotated[datetime | None, About("next")]
    """Null while it is disabled."""
    upcoming: list[datetime]
    """The next few times, so that a person can check the cron expression."""
    last_at: datetime | None
    last_task: Annotated[str | None, About("last task")]
    last_error: Annotated[str, About("last error")]
    created_at: datetime


NAMES = {"name": Annotated[str, NAME]}
WORK_UNASKED = NoDoor("it starts paid work without a request each time, so only people set it up")
TASK_OPTIONS = "its options describe the tasks that it creates"

ADD = Operation(
    name="create_schedule",
    role="admin",
    route="POST /schedules",
    status=201,
    errors=(404, 409, 413),
    request=ScheduleRequest,
    answer=ScheduleDocument,
    summary="Add a schedule",
    tool=WORK_UNASKED,
    command=ByHand("schedule add", TASK_OPTIONS),
)
LIST = Operation(
    name="list_schedules",
    role="viewer",
    route="GET /schedules",
    answer=list[ScheduleDocument],
    summary="List schedules",
    tool=Tool(
        "list_schedules",
        "List schedules",
        READS,
        "List the schedules, which create tasks at the times of a cron expression. upcoming has the next times, "
        "last_task the newest task, last_error why a task could not be created. To create a schedule's task now, call "
        "run_schedule.",
    ),
    command=Command(
        "schedule ls",
        "List the schedules.",
        "fleet schedule ls",
        columns=("name", "enabled", "cron", "timezone", "next_at", "last_task", "last_error"),
        empty="no schedules; fleet schedule add creates one",
    ),
)
SHOW = Operation(
    name="show_schedule",
    role="viewer",
    route="GET /schedules/{name}",
    names=NAMES,
    errors=(404,),
    answer=ScheduleDocument,
    summary="Show a schedule",
    tool=NoDoor("list_schedules returns every field"),
    command=Command(
        "schedule show",
        "Show a schedule and its next times.",
        "fleet schedule show nightly",
    ),
)
EDIT = Operation(
    name="edit_schedule",
    role="admin",
    route="PATCH /schedules/{name}",
    names=NAMES,
    errors=(404, 413),
    request=ScheduleEdit,
    answer=ScheduleDocument,
    summary="Change the given fields",
    tool=WORK_UNASKED,
    command=ByHand("schedule edit", TASK_OPTIONS),
)
RUN = Operation(
    name="run_schedule",
    role="operator",
    route="POST /schedules/{name}/run",
    names=NAMES,
    status=201,
    errors=(404, 409, 412, 413),
    answer=TaskDocument,
    summary="Run a schedule now",
    tool=Tool(
        "run_schedule",
        "Run a schedule now",
        ADDS_WORK,
        "Create the task of a schedule now, in addition to its regular times. Work on it begins at once, and each call "
        "creates another task. list_schedules has the names; follow the task with get_task. Requires the operator "
        "role.",
    ),
    command=Command(
        "schedule run",
        "Create the schedule's task now, in addition to its regular times.",
        "fleet schedule run nightly",
        then="  next  fleet task follow {id}",
    ),
)
REMOVE = Operation(
    name="remove_schedule",
    role="admin",
    route="DELETE /schedules/{name}",
    names=NAMES,
    errors=(404,),
    answer=ScheduleDocument,
    summary="Remove a schedule; its tasks are kept",
    tool=NoDoor("removal is left to people"),
    command=Command(
        "schedule rm",
        "Remove a schedule; the tasks that it created are kept.",
        "fleet schedule rm nightly",
        confirm="Remove schedule {name}?",
        done="schedule {name} removed",
    ),
)
