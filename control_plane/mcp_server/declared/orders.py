"""Tools for work orders: those whose answers are shortened or split into parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from control_plane.core import Caller, Core
from control_plane.declarations.operation import ADDS_WORK, READS
from control_plane.documents.base import Document
from control_plane.documents.orders import OrderDocument, SubmitRequest
from control_plane.mcp_server.shortening import shorter_order
from control_plane.mcp_server.tools import InOrganization, ServedTools, request_of
from control_plane.operations.orders import reading

TOOLS = ServedTools()
MAX_LISTED = 1000
LIMITS = {
    "mode": "Tools and instructions of the agent: plan (read-only), build, test, ship or develop. Default: the "
    "session's mode, else build.",
    "priority": "-100 to 100; orders with a higher number start first. Default: 0.",
    "max_iterations": "Maximum steps; 0 = unlimited. Default: 50.",
    "cost_limit": "Maximum cost in USD; 0 = unlimited. Default: 3.00.",
    "on_limit": "When its money is used up: stop, which keeps the work, or ask a user. Default: stop.",
    "max_run_seconds": "Maximum working time in seconds; 0 = unlimited. Default: 1800.",
}


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
    about: ClassVar[Mapping[str, str]] = {
        **LIMITS,
        "prompt": "Complete description of the work, in plain language: the agent sees only this text, the repository "
        "and, in a session, its earlier conversation.",
        "project": "Slug of the project to work on; list_projects has them.",
        "provider": "Name of the provider whose model is used; list_providers has them. Default: the project's "
        "provider, else the organization's only one.",
        "drone": "Name of the drone to use; list_drones has them. Default: any suitable drone.",
        "labels": 'Labels that the drone must have, such as {"gpu": "yes"}. Default: none.',
        "session": "Id of the session to continue: the agent keeps its conversation and starts from its last commit. "
        "Default: a new session.",
        "verify_attempts": "How many times the agent may fix failures of the project's verify commands. Default: 2.",
        "approval_timeout": "Seconds after which a call without an approval decision is denied; 0 = never. Default: "
        "86400 (24 h).",
        "progress_timeout": "Seconds without progress after which a run is stopped; 0 = never. Default: 900.",
        "max_attempts": "Number of lost runs (drone gone, machine off) after which the order fails. Default: 3.",
        "approve": "Calls that require approval: yolo (none), risky or all. Default: the session's setting, else yolo.",
        "allow": "Shell patterns of commands that need no approval, such as `npm test*`. Default: none.",
    }


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
    return shorter_order(order)


@TOOLS.declare("Show a work order", READS)
def get_order(core: Core, caller: Caller, arguments: GetOrder) -> OrderDocument:
    """Show a work order: status (queued, assigned, running, awaiting_approval or canceling; finally succeeded, failed
    or canceled), reason, what its run is doing (doing), the call that needs approval (waiting_for), response, branch,
    patch, cost, runs, and the agent's steps. Poll it to wait for the end."""
    document = reading.show_order(core, caller, arguments.order_id)
    return document if arguments.full else shorter_order(document)


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
