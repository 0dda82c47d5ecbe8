"""Pull requests."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from control_plane.documents.orders import OrderSummary
from control_plane.documents.pull_requests import PullRequestRequest
from control_plane.operations.orders import pull_requests
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.openapi import errors

router = APIRouter(prefix="", tags=["orders"])

OrderId = Annotated[str, Path(description="The order's id: 12 hexadecimal characters.", max_length=64)]
TaskId = Annotated[str, Path(description="The task's id, `PAYM-0001`.", max_length=64)]


@router.post(
    "/orders/{order_id}/pull-request",
    summary="Open a pull request, or bring the open one up to date",
    responses=errors(401, 403, 404, 409, 412, 413),
)
def ask_for_order(
    core: CoreDep, caller: CallerDep, order_id: OrderId, request: PullRequestRequest | None = None
) -> OrderSummary:
    """A drone opens it with its workstation's logins; the order's `pull_request` says what became of it."""
    return pull_requests.ask(core, caller, order_id, request)


@router.post(
    "/tasks/{task_id}/pull-request",
    tags=["tasks"],
    summary="Open a pull request for a task's newest branch",
    responses=errors(401, 403, 404, 409, 412, 413),
)
def ask_for_task(
    core: CoreDep, caller: CallerDep, task_id: TaskId, request: PullRequestRequest | None = None
) -> OrderSummary:
    """Returns the order that has the branch. One that was opened for an earlier run of the task is closed."""
    return pull_requests.ask(core, caller, task_id, request)
