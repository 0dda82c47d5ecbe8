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
    "mode": "Which tools the agent has and how it is instructed: plan (reads only), build (the usual), test, ship or "
    "develop. Default: the session's, else build.",
    "priority": "-100 to 100; a higher number goes first. Default: 0.",
    "max_iterations": "At most so many rounds of the model; 0: no limit. Default: 50.",
    "cost_limit": "At most so many USD; 0: no limit. Default: 3.00.",
    "max_run_seconds": "At most so many seconds of work; 0: no limit. Default: 1800.",
}


class OfOrder(InOrganization):
    order_id: str = Field(max_length=64, description="The order's id: 12 hexadecimal characters.")


class Submit(InOrganization, SubmitRequest):
    idempotency_key: str | None = Field(
        None,
        min_length=1,
        max_length=255,
        description="Any text of your own. The same key with the same arguments gives the same order again, for 7 "
        "days: send one if you may have to repeat the call. Default: each call makes a new order.",
    )
    about: ClassVar[Mapping[str, str]] = {
        **LIMITS,
        "prompt": "What is to be done, in plain words, complete: the agent sees nothing but this, the repository and, "
        "in a session, what was said there before.",
        "project": "Slug of the project whose repository is worked on; list_projects has them.",
        "provider": "Name of the provider whose model is asked; list_providers has them. Default: the project's, else "
        "the organization's only one.",
        "drone": "Name of the drone that shall do it; list_drones has them. Default: any that fits.",
        "labels": 'Only a drone that has all these labels does it, such as {"gpu": "yes"}. Default: any drone.',
        "session": "Id of a session that this goes on: the agent remembers what was said there and starts from its "
        "last commit. Default: a new session.",
        "verify_attempts": "How often the agent may mend what the project's verify commands find. Default: the "
        "fleet's.",
        "approval_timeout": "Seconds after which a call that waits for a person counts as denied; 0: never. "
        "Default: a day.",
        "progress_timeout": "Seconds without any sign of progress after which a run is ended; 0: never. Default: the "
        "fleet's.",
        "max_attempts": "How many runs may be lost (drone gone, machine off) before the order fails. Default: 3.",
        "approve": "Which calls wait for a person: yolo (none), risky, all. Default: the session's, else yolo.",
        "allow": "Shell patterns of commands that need no approval, such as `npm test*`. Default: none.",
    }


class GetOrder(OfOrder):
    full: bool = Field(
        False,
        description="All steps with their whole outputs, and the patch of up to 1 MB. Without it: the last 20 steps, "
        "outputs cut to 500 characters, and no patch over 20,000 characters (then it is null; get_patch has it).",
    )


class GetPatch(OfOrder):
    offset: int = Field(0, ge=0, description="From which character on; to read a long patch in parts.")
    limit: int = Field(100_000, ge=1, le=1_000_000, description="At most so many characters.")


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
    """Have one prompt carried out by a coding agent in a project's repository. Returns at once with the order's id;
    the order is kept whatever happens. It is queued until a drone takes it (reason says what it waits for), then
    running. Call get_order every few seconds until its status is succeeded, failed or canceled; then response is the
    agent's answer, branch and get_patch the change. With status awaiting_approval call approve_call or deny_call. To
    say something to the agent while it works: say_to_order. For operators."""
    order = reading.submit(core, caller, request_of(SubmitRequest, arguments), arguments.idempotency_key)
    return shorter_order(order)


@TOOLS.declare("Show a work order", READS)
def get_order(core: Core, caller: Caller, arguments: GetOrder) -> OrderDocument:
    """All that is known of a work order: status (queued, assigned, running, awaiting_approval, canceling; ended are
    succeeded, failed, canceled), reason, what its run does (doing), the call that waits for a person (waiting_for),
    response, branch, patch, cost, runs, and the steps that the agent took. Call it again to wait for the end."""
    document = reading.show_order(core, caller, arguments.order_id)
    return document if arguments.full else shorter_order(document)


@TOOLS.declare("Show the patch of an order", READS)
def get_patch(core: Core, caller: Caller, arguments: GetPatch) -> PatchDocument:
    """What an order changed, as a unified diff against the commit that it began from: `git apply` takes it. Empty if
    nothing changed; an error while the order has not ended. A long one comes in parts: call again with next_offset as
    offset until that is null."""
    text = reading.patch_of(core, caller, arguments.order_id).decode("utf-8", "replace")
    end = arguments.offset + arguments.limit
    return PatchDocument(
        order=arguments.order_id,
        patch=text[arguments.offset : end],
        offset=arguments.offset,
        characters=len(text),
        next_offset=end if end < len(text) else None,
    )
