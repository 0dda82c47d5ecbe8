"""All tools, in the order in which they are listed (S-124): hand-written ones, then the derived ones.

The answers of the hand-written ones are shortened for a reader with limited attention, or split into parts: what was
left out can be requested.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from control_plane.contract.declarations.operation import ADDS_WORK, READS
from control_plane.contract.declarations.orders import FOR_MODELS, SUBMIT, SubmitRequest
from control_plane.contract.declarations.task_documents import TaskDocument, TaskRunDetail
from control_plane.contract.documents.base import Document
from control_plane.contract.documents.orders import OrderDocument, StepDocument
from control_plane.core import Caller, Core
from control_plane.operations import tasks
from control_plane.operations.orders import reading
from control_plane.operations.tasks import runs
from control_plane.web.mcp_server.derived_tools import descriptions, tools
from control_plane.web.mcp_server.tools import InOrganization, ServedTools, request_of

TOOLS = ServedTools()
SHOWN_STEPS = 20
SHOWN_OUTPUT = 500
"""Characters of an output; as `fleet run show` without `--full` (S-123)."""
SHOWN_PATCH = 20_000


class OfTask(InOrganization):
    task_id: str = Field(max_length=64, description="The task's id, such as PAYM-0001; list_tasks has them.")


class GetRun(InOrganization):
    run_id: str = Field(max_length=64, description="The run's id, from list_runs or a task's timeline.")
    full: bool = Field(
        False, description="true: complete texts and outputs. Default: false, which cuts them to 500 characters."
    )


@TOOLS.declare("Show a task", READS)
def get_task(core: Core, caller: Caller, arguments: OfTask) -> TaskDocument:
    """Show a task with its timeline (comments and runs in chronological order), branch and cost. Status open with an
    agent as assignee: it is waiting for its run to start, and reason says why; in_progress: a run is active; open or
    failed with assignee `user`: it is your turn; done and canceled are final. To wait, call get_task every few seconds
    until the assignee is `user` or the task has ended. Then read the last comments, and call add_comment with an
    @name to continue, complete_task to close it, or retry_task if it failed."""
    return tasks.show(core, caller, arguments.task_id)


@TOOLS.declare("Show a run", READS)
def get_run(core: Core, caller: Caller, arguments: GetRun) -> TaskRunDetail:
    """Show a run with its steps: the agent's reasoning, messages, tool calls and their results, and the full text of
    errors. Use it to find out why a run failed."""
    run = runs.show_run(core, caller, arguments.run_id)
    return run if arguments.full else run.model_copy(update={"steps": [shortened(step) for step in run.steps]})


class OfOrder(InOrganization):
    order_id: str = Field(
        max_length=64, description="The order's id, a unique prefix of it, or @last (your newest order)."
    )


class Submit(InOrganization, SubmitRequest):
    idempotency_key: str | None = Field(
        None,
        min_length=1,
        max_length=255,
        description="Any unique text. For 7 days, a repeated call with the same key and arguments returns the same "
        "order instead of creating another: send a key if you may have to repeat the call. Default: none.",
    )
    about: ClassVar[Mapping[str, str]] = {**descriptions(SUBMIT), **FOR_MODELS}


class GetOrder(OfOrder):
    full: bool = Field(
        False,
        description="true: all steps with complete outputs, and a patch of up to 1 MB. Default: false, which returns "
        "the last 20 steps, outputs cut to 500 characters, and null for a patch over 20,000 characters (use "
        "get_patch).",
    )


class GetPatch(OfOrder):
    offset: int = Field(0, ge=0, description="First character to return, to read a long patch in parts. Default: 0.")
    limit: int = Field(100_000, ge=1, le=1_000_000, description="Maximum number of characters. Default: 100000.")


class PatchDocument(Document):
    """A part of an order's patch."""

    order: str
    patch: str
    """A unified diff; empty if nothing changed."""
    offset: int
    characters: int
    """Of the whole patch."""
    next_offset: int | None
    """Where the next part begins; null at the end."""


@TOOLS.declare("Submit a work order", ADDS_WORK)
def submit_order(core: Core, caller: Caller, arguments: Submit) -> OrderDocument:
    """Submit one prompt to a coding agent that works in a project's repository. Returns the order's id at once; the
    order is stored durably. It is queued until a drone takes it (reason says what it is waiting for), then running.
    Call get_order every few seconds until its status is succeeded, failed or canceled; then response is the agent's
    answer, and branch and get_patch have the change. If the status is awaiting_approval, call approve_call or
    deny_call. To send the agent a message while it works, call say_to_order. Requires the operator role."""
    order = reading.submit(core, caller, request_of(SubmitRequest, arguments), arguments.idempotency_key)
    return _shorter_order(order)


@TOOLS.declare("Show a work order", READS)
def get_order(core: Core, caller: Caller, arguments: GetOrder) -> OrderDocument:
    """Show a work order: status (queued, assigned, running, awaiting_approval or canceling; finally succeeded, failed
    or canceled), reason, what its run is doing (doing), the call that needs approval (waiting_for), response, branch,
    patch, cost, runs, and the agent's steps. Poll it to wait for the end."""
    document = reading.show_order(core, caller, arguments.order_id)
    return document if arguments.full else _shorter_order(document)


@TOOLS.declare("Show the patch of an order", READS)
def get_patch(core: Core, caller: Caller, arguments: GetPatch) -> PatchDocument:
    """Show the changes of an order as a unified diff against the commit that it started from, for `git apply`. It is
    empty if nothing changed. Fails while the order has not ended. To read a long patch in parts, call again with
    next_offset as offset until next_offset is null."""
    text = reading.patch_of(core, caller, arguments.order_id).decode("utf-8", "replace")
    end = arguments.offset + arguments.limit
    return PatchDocument(
        order=arguments.order_id,
        patch=text[arguments.offset : end],
        offset=arguments.offset,
        characters=len(text),
        next_offset=end if end < len(text) else None,
    )


TOOLS.update({tool.name: tool for tool in tools()})


def _shorter_order(order: OrderDocument) -> OrderDocument:
    """The order with its last steps, their outputs cut, and its patch if that is short."""
    steps = [_shorter_step(step) for step in order.steps[-SHOWN_STEPS:]]
    patch = order.patch if order.patch is None or len(order.patch) <= SHOWN_PATCH else None
    return order.model_copy(update={"steps": steps, "patch": patch})


def shortened(step: dict[str, Any]) -> dict[str, Any]:
    """A step with its texts cut; each cut says how much was left out."""
    return {key: _cut(value) if isinstance(value, str) else value for key, value in step.items()}


def _shorter_step(step: StepDocument) -> StepDocument:
    return step.model_copy(update=shortened(step.model_extra or {}))


def _cut(text: str) -> str:
    left = len(text) - SHOWN_OUTPUT
    return text if left <= 0 else f"{text[:SHOWN_OUTPUT]}… ({left:,} more characters; shown with full=true)"
