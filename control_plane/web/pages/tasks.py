"""Tasks: the board, the list, and the thread of one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request
from markupsafe import Markup
from starlette.responses import Response

from control_plane.contract.declarations import pull_requests
from control_plane.contract.declarations import tasks as declared
from control_plane.contract.declarations.operation import Operation
from control_plane.contract.declarations.task_documents import TaskDocument
from control_plane.core import Caller, Core
from control_plane.operations.agents import reading as agents
from control_plane.operations.tasks import reading
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.forms.commands import command_of
from control_plane.web.forms.filters import Filters
from control_plane.web.markup.markdown import markdown
from control_plane.web.pages.frame import frame_for
from control_plane.web.problems import problem_of
from control_plane.web.rendering import page, wants_part
from control_plane.web.task_board import board_tasks, columns_of, is_with_user
from shared.errors import Refused
from shared.states import TaskStatus

router = APIRouter(prefix="/tasks", include_in_schema=False)
_RESTS = frozenset({TaskStatus.OPEN, TaskStatus.FAILED})
_ENDED = frozenset({TaskStatus.DONE, TaskStatus.CANCELED})


@router.get("")
def list_tasks(request: Request, core: CoreDep, caller: CallerDep) -> Response:
    """The board, or with `view=list` or a status the list, narrowed by what the address says."""
    filters = Filters.of("/tasks", declared.LIST, request.query_params)
    as_list = request.query_params.get("view") == "list" or "status" in filters.terms
    part = wants_part(request)
    topic = (filters if as_list else replace(filters, path="/board")).topic
    around = frame_for(request, caller, "tasks", [topic])
    shown = {**_shown(request, core, caller, filters, as_list), "here": _here(filters, as_list), "topic": topic}
    context = {**around, **shown, "filters": filters, "as_list": as_list}
    if part:
        return page("tasks/list.html" if as_list else "tasks/board.html", context)
    return page("tasks/page.html", {**context, "offers": filters.offers(core, caller)})


def _here(filters: Filters, as_list: bool) -> str:
    """The address of what is shown."""
    if not as_list:
        return filters.address
    return f"{filters.address}{'&' if filters.terms else '?'}view=list"


def _shown(request: Request, core: Core, caller: Caller, filters: Filters, as_list: bool) -> dict[str, Any]:
    try:
        if as_list:
            listed = reading.list_(core, caller, **filters.arguments())
            return {"tasks": listed, "more": filters.more([each.id for each in listed]), "problem": None}
        return {"columns": columns_of(board_tasks(core, caller, filters), filters), "problem": None}
    except Refused as error:
        problem = problem_of(request.scope, error).model_dump()
        return {"tasks": [], "columns": [], "more": None, "problem": problem}


@router.get("/{task_id}")
def show_task(request: Request, core: CoreDep, caller: CallerDep, task_id: str) -> Response:
    """The thread of a task: comments, hand-offs and runs in one timeline, and what can be done now."""
    part = wants_part(request)
    around = frame_for(request, caller, "tasks", [f"task:{task_id}"])
    task = reading.show(core, caller, task_id)
    context = {
        **around,
        "task": task,
        "actions": actions_of(task),
        "text_of": thread_text,
        "with_user": is_with_user(task),
    }
    if part:
        return page("tasks/thread.html", context)
    names = [each.name for each in agents.list_(core, caller)]
    return page("tasks/task.html", {**context, "agents": names})


def thread_text(text: str) -> Markup:
    """A comment or a description as the thread shows it."""
    return markdown(text)


def actions_of(task: TaskDocument) -> list[dict[str, Any]]:
    """The operations that the task's state allows, the first one foremost, each with its command."""
    allowed: list[tuple[Operation, str, str]] = []
    if is_with_user(task):
        allowed.append((declared.DONE, "Mark as done", "act"))
    if task.status in {TaskStatus.FAILED, TaskStatus.DONE}:
        allowed += [(declared.RETRY, "Retry", "act"), (declared.REOPEN, "Reopen", "act")]
    if task.status == TaskStatus.IN_PROGRESS:
        allowed.append((declared.PREEMPT, "Preempt", "act"))
    if task.status in _RESTS:
        allowed.append((declared.ASSIGN, "Assign", "form"))
    if task.pushed and not _has_pull_request(task):
        allowed.append((pull_requests.FOR_TASK, "Open pull request", "form"))
    if task.status not in _ENDED:
        allowed.append((declared.CANCEL, "Cancel", "form"))
    names = {"task_id": task.id}
    return [
        {"name": operation.name, "label": label, "how": how, "command": command_of(operation, names, {})}
        for operation, label, how in allowed
    ]


def _has_pull_request(task: TaskDocument) -> bool:
    """Whether there is one of the newest branch, or one is being opened."""
    there = task.pull_request or {}
    return there.get("state") == "asked" or bool(there.get("url") and there.get("head") == task.branch)
