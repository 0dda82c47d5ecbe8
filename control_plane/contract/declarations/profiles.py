"""Profiles: named sets of defaults for orders."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from control_plane.contract.declarations.operation import READS, About, Command, NoDoor, Operation, Tool
from control_plane.contract.documents.base import Document, Request
from shared.budgets import OnLimit
from shared.work_order import Approve, Mode, ThinkingLevel

NAME = About("profile", "The profile's name.", source="profiles:name")
DESCRIPTION = About("description", "What it is for, in one line.")
UNSET = "not set"
PROVIDER = About("provider", "Provider of the model.", absent=UNSET, source="providers:name", none="none")
REVIEWER = About(
    "reviewer", "Provider whose model reviews changes.", absent=UNSET, source="providers:name", none="none"
)
MODE = About("mode", "plan (read-only), build, test, ship or develop.", absent=UNSET, none="none")
THINKING = About(
    "thinking", "How much the model thinks: off, minimal, low, medium, high or xhigh.", absent=UNSET, none="none"
)
APPROVE = About("approve", "Calls that require approval: yolo (none), risky or all.", absent=UNSET, none="none")
STEPS = About("max iterations", "Maximum steps (0 = unlimited).", absent=UNSET, none="none")
COST = About("cost limit", "Maximum cost in USD (0 = unlimited).", absent=UNSET, none="none")
TIME = About("max run seconds", "Time limit in seconds (0 = unlimited).", absent=UNSET, none="none")
ON_LIMIT = About("on limit", "When the money is used up: stop, or ask a user.", absent=UNSET, none="none")
VERIFY = About("verify attempts", "How often the agent may fix failed checks.", absent=UNSET, none="none")
LABELS = About(
    "labels",
    "Label k=v that the drone must have.",
    absent="any drone",
    flag="--label",
    metavar="k=v",
    none="--no-labels",
)


class ProfileSettings(Request):
    """What a profile can set; the names are those of an order's fields. None: it does not set it."""

    provider: Annotated[str | None, PROVIDER] = None
    reviewer: Annotated[str | None, REVIEWER] = None
    mode: Annotated[Mode | None, MODE] = None
    thinking: Annotated[ThinkingLevel | None, THINKING] = None
    approve: Annotated[Approve | None, APPROVE] = None
    max_iterations: Annotated[int | None, STEPS] = Field(None, ge=0)
    cost_limit: Annotated[float | None, COST] = Field(None, ge=0, allow_inf_nan=False)
    max_run_seconds: Annotated[float | None, TIME] = Field(None, ge=0, allow_inf_nan=False)
    on_limit: Annotated[OnLimit | None, ON_LIMIT] = None
    verify_attempts: Annotated[int | None, VERIFY] = Field(None, ge=0, le=1000)
    labels: Annotated[dict[str, str] | None, LABELS] = None


class ProfileRequest(ProfileSettings):
    name: Annotated[str, NAME]
    description: Annotated[str, DESCRIPTION] = ""


class ProfileEdit(ProfileSettings):
    """Only the given fields change; null makes the profile no longer set a field."""

    description: Annotated[str | None, DESCRIPTION] = None


class ProfileDocument(Document):
    name: Annotated[str, NAME]
    description: Annotated[str, DESCRIPTION]
    provider: Annotated[str | None, PROVIDER] = None
    reviewer: Annotated[str | None, REVIEWER] = None
    mode: Annotated[str | None, MODE] = None
    thinking: Annotated[str | None, THINKING] = None
    approve: Annotated[str | None, APPROVE] = None
    max_iterations: Annotated[int | None, STEPS] = None
    cost_limit: Annotated[float | None, COST] = None
    max_run_seconds: Annotated[float | None, TIME] = None
    on_limit: Annotated[str | None, ON_LIMIT] = None
    verify_attempts: Annotated[int | None, VERIFY] = None
    labels: Annotated[dict[str, str] | None, LABELS] = None
    created_at: Annotated[datetime, About("created")]


NAMES = {"name": Annotated[str, Field(max_length=64), NAME]}
BY_ADMINS = NoDoor("a profile decides what others' orders cost and which calls wait, so only people set it")

ADD = Operation(
    name="add_profile",
    role="admin",
    route="POST /profiles",
    status=201,
    errors=(404, 409),
    request=ProfileRequest,
    answer=ProfileDocument,
    summary="Add a profile",
    tool=BY_ADMINS,
    command=Command(
        "profile add",
        "Add a profile: defaults for the orders that name it.",
        "fleet profile add careful --approve risky --thinking high --cost-limit 1",
        arguments=("name",),
    ),
)
LIST = Operation(
    name="list_profiles",
    role="viewer",
    route="GET /profiles",
    answer=list[ProfileDocument],
    summary="List profiles",
    tool=Tool(
        "list_profiles",
        "List profiles",
        READS,
        "List the profiles: named sets of defaults for orders. submit_order takes a name as `profile`; what the order "
        "itself sets takes precedence.",
    ),
    command=Command(
        "profile ls",
        "List the profiles.",
        "fleet profile ls",
        columns=("name", "provider", "mode", "thinking", "reviewer", "cost_limit", "description"),
        empty="no profiles; fleet profile add creates one",
    ),
)
SHOW = Operation(
    name="show_profile",
    role="viewer",
    route="GET /profiles/{name}",
    names=NAMES,
    errors=(404,),
    answer=ProfileDocument,
    summary="Show a profile",
    tool=NoDoor("list_profiles returns every field"),
    command=Command("profile show", "Show a profile.", "fleet profile show careful"),
)
EDIT = Operation(
    name="edit_profile",
    role="admin",
    route="PATCH /profiles/{name}",
    names=NAMES,
    errors=(404,),
    request=ProfileEdit,
    answer=ProfileDocument,
    summary="Change the given fields",
    more="Orders that were submitted before keep what they have.",
    tool=BY_ADMINS,
    command=Command(
        "profile edit", "Change a profile; only the given options change.", "fleet profile edit careful --cost-limit 2"
    ),
)
REMOVE = Operation(
    name="remove_profile",
    role="admin",
    route="DELETE /profiles/{name}",
    names=NAMES,
    errors=(404,),
    answer=ProfileDocument,
    summary="Remove a profile; its orders are kept",
    tool=NoDoor("removal is left to people"),
    command=Command(
        "profile rm",
        "Remove a profile; its orders are kept.",
        "fleet profile rm careful",
        confirm="Remove profile {name}?",
        done="profile {name} removed",
    ),
)
