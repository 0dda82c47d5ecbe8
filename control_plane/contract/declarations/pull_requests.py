"""Pull requests: a drone opens one for the branch of an order, or of a task."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from control_plane.contract.declarations import orders
from control_plane.contract.declarations.operation import SETS_WORK, About, ByHand, Operation, Tool
from control_plane.contract.documents.base import Document, Request
from control_plane.contract.documents.orders import OrderSummary

TASK_ID = About("task", "The task's id, for example PAYM-0001.")
TITLE = About("title", "Title of the pull request.", absent="the task's title, or the first line of the order's prompt")
DRAFT = About("draft", "Open it as a draft, not ready for review.")


class PullRequestRequest(Request):
    title: Annotated[str | None, TITLE] = None
    draft: Annotated[bool, DRAFT] = False


class PullRequestDocument(Document):
    """The pull request of an order, and its state."""

    state: Literal["asked", "opened", "updated", "ready", "failed", "merged", "closed"]
    url: str | None
    number: int | None
    via: str
    head: str
    base: str | None
    title: str
    body: str
    why: str
    order: str
    """Id of the service order that opens it."""


COMMAND = ByHand("pull-request", "one command takes the id of an order or of a task")
ERRORS = (404, 409, 412, 413)

FOR_ORDER = Operation(
    name="open_pull_request",
    role="operator",
    route="POST /orders/{order_id}/pull-request",
    names=orders.NAMES,
    errors=ERRORS,
    request=PullRequestRequest,
    answer=OrderSummary,
    summary="Open a pull request for an order's branch, or update the open one",
    more="A drone opens it with the credentials of its workstation; the order's `pull_request` shows the result.",
    tool=Tool(
        "open_pull_request",
        "Open a pull request",
        SETS_WORK,
        "Open a pull request for the branch of a work order that has ended, or update the open one. A drone does this "
        "with the credentials of its workstation; get_order shows the result under pull_request. Requires the operator "
        "role.",
    ),
    command=COMMAND,
)
FOR_TASK = Operation(
    name="open_task_pull_request",
    role="operator",
    route="POST /tasks/{task_id}/pull-request",
    names={"task_id": Annotated[str, Field(max_length=64), TASK_ID]},
    errors=ERRORS,
    request=PullRequestRequest,
    answer=OrderSummary,
    summary="Open a pull request for a task's newest branch, or update the open one",
    more="Returns the order of that branch. A pull request of an earlier run of the task is closed.",
    tool=Tool(
        "open_task_pull_request",
        "Open a pull request for a task",
        SETS_WORK,
        "Open a pull request for the newest branch of a task's runs, or update the open one; a pull request of an "
        "earlier run is closed. Returns the order of that branch; get_order shows the result under pull_request. "
        "Requires the operator role.",
    ),
    command=COMMAND,
)
