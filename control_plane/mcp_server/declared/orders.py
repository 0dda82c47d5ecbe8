"""Tools for work orders: those whose answers are shortened or split into parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from control_plane.core import Caller, Core
from control_plane.declarations.operation import ADDS_WORK, READS
from control_plane.declarations.orders import FOR_MODELS
from control_plane.documents.base import Document
from control_plane.documents.orders import OrderDocument, SubmitRequest
from control_plane.mcp_server.shortening import shorter_order
from control_plane.mcp_server.tools import InOrganization, ServedTools, request_of
from control_plane.operations.orders import reading

TOOLS = ServedTools()
MAX_LISTED = 1000


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
    about: ClassVar[Mapping[str, str]] = FOR_MODELS


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
