"""Pull requests: a drone opens one for the branch of an order, or of a task."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from control_plane.declarations import orders
from control_plane.declarations.operation import SETS_WORK, About, ByHand, Operation, Tool
from control_plane.documents.base import Document, Request
from control_plane.documents.orders import OrderSummary

TASK_ID = About("task", "The task's id: PAYM-0001.")
TITLE = About("title", "The title of the pull request.", absent="the first line of what the work is about")
DRAFT = About("draft", "Open it as a draft, not ready for review.")


class PullRequestRequest(Request):
    title: Annotated[str | None, TITLE] = None
    draft: Annotated[bool, DRAFT] = False


class PullRequestDocument(Document):
    """What became of an order's pull request."""

    state: Literal["asked", "opened", "updated", "ready", "failed"]
    url: str | None
    number: int | None
    via: str
    head: str
    base: str | None
    title: str
    body: str
    why: str
    order: str
    """The service order that did it."""


COMMAND = ByHand("pull-request", "one command takes the id of an order or of a task")
ERRORS = (404, 409, 412, 413)

FOR_ORDER = Operation(
    name="open_pull_request",
    role="operator",
    route="POST /orders/{order_id}/pull-request",
    names=orders.NAMES,
    errors=ERRORS,
    run="orders.pull_requests:for_order",
    request=PullRequestRequest,
    answer=OrderSummary,
    summary="Open a pull request, or bring the open one up to date",
    more="A drone opens it with its workstation's logins; the order's `pull_request` says what became of it.",
    tool=Tool(
        "open_pull_request",
        "Open a pull request",
        SETS_WORK,
        "Open a pull request for the branch of a work order that has ended, or bring the open one up to date. A drone "
        "does it with its own logins: get_order's pull_request says what became of it. For operators.",
    ),
    command=COMMAND,
)
FOR_TASK = Operation(
    name="open_task_pull_request",
    role="operator",
    route="POST /tasks/{task_id}/pull-request",
    names={"task_id": Annotated[str, Field(max_length=64), TASK_ID]},
    errors=ERRORS,
    run="orders.pull_requests:for_task",
    request=PullRequestRequest,
    answer=OrderSummary,
    summary="Open a pull request for a task's newest branch",
    more="Returns the order that has the branch. One that was opened for an earlier run of the task is closed.",
    tool=Tool(
        "open_task_pull_request",
        "Open a pull request for a task",
        SETS_WORK,
        "Open a pull request for the newest branch of a task's runs, or bring the open one up to date; one of an "
        "earlier run is closed. The answer is the order that has the branch: get_order's pull_request says what "
        "became of it. For operators.",
    ),
    command=COMMAND,
)
