"""Tasks and their comments."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query
from pydantic import AwareDatetime

from control_plane.documents.tasks import (
    AssignRequest,
    CommentDocument,
    CommentRequest,
    TaskCancelRequest,
    TaskDocument,
    TaskRequest,
    TaskRetryRequest,
    TaskSummary,
)
from control_plane.operations import tasks
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.openapi import errors
from shared.states import TaskStatus

router = APIRouter(prefix="/tasks", tags=["tasks"])

TaskId = Annotated[str, Path(description="The task's id, for example PAYM-0001.", max_length=64)]
MAX_LISTED = 1000


@router.post("", status_code=201, summary="Create a task", responses=errors(401, 403, 404, 412, 413))
def create_task(core: CoreDep, caller: CallerDep, request: TaskRequest) -> TaskDocument:
    """Its first run begins as soon as the agent may; `reason` says what it waits for."""
    return tasks.create(core, caller, request)


@router.get("", summary="Tasks, newest first", responses=errors(401, 404))
def list_tasks(  # noqa: PLR0913, PLR0917 - one per filter
    core: CoreDep,
    caller: CallerDep,
    status: TaskStatus | None = None,
    assignee: Annotated[str | None, Query(description="An agent's name, or `user`.")] = None,
    project: Annotated[str | None, Query(description="Slug.")] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_LISTED)] = 50,
) -> list[TaskSummary]:
    return tasks.list_(core, caller, status, assignee, project, limit)


@router.get("/{task_id}", summary="A task with its timeline", responses=errors(401, 404))
def show_task(
    core: CoreDep,
    caller: CallerDep,
    task_id: TaskId,
    since: Annotated[
        AwareDatetime | None, Query(description="Leave out the comments that were written before.")
    ] = None,
) -> TaskDocument:
    return tasks.show(core, caller, task_id, since)


@router.post(
    "/{task_id}/comments", status_code=201, summary="Comment on a task", responses=errors(401, 403, 404, 409, 413)
)
def comment_task(core: CoreDep, caller: CallerDep, task_id: TaskId, request: CommentRequest) -> CommentDocument:
    """On open and failed tasks. The last valid `@agent` or `@user` in it decides whose turn it is."""
    return tasks.comment(core, caller, task_id, request)


@router.post("/{task_id}/preempt", summary="Take a task from its run", responses=errors(401, 403, 404, 409))
def preempt_task(core: CoreDep, caller: CallerDep, task_id: TaskId) -> TaskDocument:
    """`stopped_run` names the run; the task's next one begins when it has ended."""
    return tasks.preempt(core, caller, task_id)


@router.post("/{task_id}/done", summary="Mark a task as done", responses=errors(401, 403, 404, 409))
def done_task(core: CoreDep, caller: CallerDep, task_id: TaskId) -> TaskDocument:
    return tasks.done(core, caller, task_id)


@router.post("/{task_id}/reopen", summary="Open a done or failed task again", responses=errors(401, 403, 404, 409))
def reopen_task(core: CoreDep, caller: CallerDep, task_id: TaskId) -> TaskDocument:
    return tasks.reopen(core, caller, task_id)


@router.post(
    "/{task_id}/retry", summary="Give a done or failed task to an agent", responses=errors(401, 403, 404, 409, 412)
)
def retry_task(
    core: CoreDep, caller: CallerDep, task_id: TaskId, request: TaskRetryRequest | None = None
) -> TaskDocument:
    """To the named agent, else to the one that ran last."""
    return tasks.retry(core, caller, task_id, request or TaskRetryRequest())


@router.post("/{task_id}/cancel", summary="End a task for good", responses=errors(401, 403, 404, 409, 413))
def cancel_task(
    core: CoreDep, caller: CallerDep, task_id: TaskId, request: TaskCancelRequest | None = None
) -> TaskDocument:
    """A run that is on is asked to stop: `stopped_run` names it."""
    return tasks.cancel(core, caller, task_id, request or TaskCancelRequest())


@router.post(
    "/{task_id}/assign", summary="Give an open or failed task to somebody", responses=errors(401, 403, 404, 409)
)
def assign_task(core: CoreDep, caller: CallerDep, task_id: TaskId, request: AssignRequest) -> TaskDocument:
    return tasks.assign(core, caller, task_id, request)
