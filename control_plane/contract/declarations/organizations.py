"""Organizations: the isolated units, as a whole, as files, and at a glance."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from control_plane.contract.declarations.agents import AgentNode
from control_plane.contract.declarations.budgets import BudgetDocument
from control_plane.contract.declarations.operation import (
    ADDS,
    ENDS,
    LONGEST,
    OVERWRITES,
    READS,
    TOP_LEVEL,
    About,
    ByHand,
    Command,
    NoDoor,
    Operation,
    Tool,
)
from control_plane.contract.declarations.run_settings import LIMITS, LIMITS_FOR_MODELS, THINKING
from control_plane.contract.documents.base import Document, Request
from control_plane.contract.documents.limits import LimitsGiven
from control_plane.contract.documents.totals import Totals
from shared.work_order import ThinkingLevel

NAME = About("organization", "The organization's name.", source="organizations:name")
DESCRIPTION = About("purpose", "Purpose of the organization; its agents read it in every run.")
PROJECT = About(
    "project",
    "Default project of its tasks.",
    absent="no default project",
    source="projects:slug",
    none="none",
)
REVIEWER = About(
    "reviewer",
    "Provider, or its model, that reviews changes before they are delivered.",
    absent="no review",
    source="providers:name",
    none="none",
)
CONCURRENCY = About("concurrency", "Maximum number of tasks in progress (0 = unlimited).", unit="tasks")
HAND_OFFS = About("hand-offs", "Maximum hand-offs in a row before a task returns to the user (0 = unlimited).")


class OrganizationRequest(Request):
    name: Annotated[str, NAME]
    description: Annotated[str, DESCRIPTION] = ""
    project: Annotated[str | None, PROJECT] = None
    """Slug of the default project; it must already exist, so a new organization has none."""
    reviewer: Annotated[str | None, REVIEWER] = None
    """It must already exist, so a new organization has none."""
    concurrency: Annotated[int, CONCURRENCY] = Field(4, ge=0, le=1000)
    max_hand_offs: Annotated[int, HAND_OFFS] = Field(20, ge=0, le=10_000)
    limits: Annotated[dict[str, Any], LIMITS, LimitsGiven] = Field(default_factory=dict)
    thinking: Annotated[ThinkingLevel | None, THINKING] = None


class OrganizationEdit(Request):
    """Only the given fields change; the name cannot be changed (S-005)."""

    description: Annotated[str | None, DESCRIPTION] = None
    project: Annotated[str | None, PROJECT] = None
    reviewer: Annotated[str | None, REVIEWER] = None
    concurrency: Annotated[int | None, CONCURRENCY] = Field(None, ge=0, le=1000)
    max_hand_offs: Annotated[int | None, HAND_OFFS] = Field(None, ge=0, le=10_000)
    limits: Annotated[dict[str, Any] | None, LIMITS, LimitsGiven] = None
    thinking: Annotated[ThinkingLevel | None, THINKING] = None


class OrganizationDocument(Document):
    id: str
    name: str
    description: str
    acronym: str
    project: str | None
    reviewer: str | None
    """The provider whose model reviews the changes of its orders."""
    concurrency: int
    max_hand_offs: int
    limits: dict[str, Any]
    thinking: str | None
    paused: bool
    paused_at: datetime | None
    agent_count: int
    tasks: dict[str, int]
    """The number of tasks in each state."""
    totals: Totals
    created_at: datetime
    agents: list[AgentNode] | None = None
    """The tree; null in lists."""
    warnings: list[str] = Field(default_factory=list)


class StatusDocument(Document):
    """`fleet status` (S-122)."""

    server: str
    version: str
    organization: str
    paused: bool
    drones: dict[str, int]
    """The number of drones in each status."""
    orders: dict[str, int]
    """The number of unfinished orders in each state."""
    tasks: dict[str, int]
    active_runs: int
    max_concurrency: int
    totals: Totals
    budgets: list[BudgetDocument]
    """Those of which little or nothing is left."""


NAMES = {"name": Annotated[str, Field(max_length=255), NAME]}
ONE = "/organizations/{name}"

ADD = Operation(
    name="create_organization",
    role="admin",
    everywhere=True,
    in_organization=False,
    route="POST /organizations",
    status=201,
    errors=(404, 409),
    request=OrganizationRequest,
    answer=OrganizationDocument,
    summary="Create an organization",
    more="Requires an admin token that is valid in every organization.",
    tool=Tool(
        "create_organization",
        "Create an organization",
        ADDS,
        "Create an empty organization. Next it needs a project and a provider, which are added in the terminal (fleet "
        "project add and fleet provider add, both with --org), and agents (create_agent). Requires the admin role and "
        "a token that is valid in every organization.",
        about={
            "limits": LIMITS_FOR_MODELS,
            "name": "Lowercase letters, digits and underscores, starting with a letter, such as `payments`. It cannot "
            "be changed later. `user` and `system` are reserved.",
            "project": "Omit it: a new organization has no projects yet. Set it later with update_organization.",
            "reviewer": "Omit it: a new organization has no providers yet. Set it later with update_organization.",
        },
    ),
    command=Command(
        "organization add",
        "Create an organization. Requires an admin token that is valid in every organization.",
        "fleet organization add payments --description 'Card payments'",
        arguments=("name",),
        without=("project", "reviewer"),
    ),
)
LIST = Operation(
    name="list_organizations",
    role="viewer",
    in_organization=False,
    route="GET /organizations",
    answer=list[OrganizationDocument],
    summary="List organizations",
    more="Returns the token's own organization, or all of them for a token that is valid in every organization.",
    tool=Tool(
        "list_organizations",
        "List organizations",
        READS,
        "List the organizations in which the API token is valid. An organization is an isolated unit with its own "
        "projects, agents, tasks and members. Other tools take its name as `organization`.",
    ),
    command=Command(
        "organization ls",
        "List the organizations that you can access.",
        "fleet organization ls",
    ),
)
SHOW = Operation(
    name="show_organization",
    role="viewer",
    in_organization=False,
    route=f"GET {ONE}",
    names=NAMES,
    errors=(404,),
    answer=OrganizationDocument,
    summary="Show an organization with its tree of agents",
    tool=Tool(
        "get_organization",
        "Show an organization",
        READS,
        "Show an organization with the tree of its agents (bosses, reports and descriptions), its limits, its number "
        "of tasks in each state, and its cost so far.",
    ),
    command=Command(
        "organization show",
        "Show an organization and its agents.",
        "fleet organization show payments",
    ),
)
EDIT = Operation(
    name="edit_organization",
    role="admin",
    in_organization=False,
    route=f"PATCH {ONE}",
    names=NAMES,
    errors=(404,),
    request=OrganizationEdit,
    answer=OrganizationDocument,
    summary="Change the given fields",
    more="The name cannot be changed.",
    tool=Tool(
        "update_organization",
        "Change an organization",
        OVERWRITES,
        "Change an organization's description, project or limits. Only the given arguments change, and at least one is "
        "required. The name cannot be changed. Requires the admin role.",
        about={
            "limits": LIMITS_FOR_MODELS,
        },
    ),
    command=Command(
        "organization edit",
        "Change an organization; only the given options change. The name cannot be changed.",
        "fleet organization edit payments --concurrency 8 --project shop",
    ),
)
REMOVE = Operation(
    name="remove_organization",
    role="admin",
    everywhere=True,
    in_organization=False,
    route=f"DELETE {ONE}",
    names=NAMES,
    errors=(404, 409),
    answer=OrganizationDocument,
    answers_within=LONGEST,
    summary="Delete an organization with everything in it",
    more="Returns it as it was; `warnings` lists what was deleted with it. Requires an admin token that is valid in "
    "every organization.",
    tool=Tool(
        "delete_organization",
        "Delete an organization",
        ENDS,
        "Delete an organization permanently, with its projects, agents, tasks, comments, orders, runs, tokens and "
        "drones. This cannot be undone, so ask your user first. Fails with 409 while one of its tasks is in progress "
        "or one of its orders has not ended: first call preempt_task, cancel_task or cancel_order. Requires the admin "
        "role and a token that is valid in every organization.",
    ),
    command=Command(
        "organization rm",
        "Delete an organization with its agents, tasks, orders, runs, tokens and drones. This cannot be undone.",
        "fleet organization rm payments --yes",
        confirm="Delete organization {name} with all its agents, tasks and runs?",
        done="organization {name} deleted",
    ),
)
PAUSE = Operation(
    name="pause_organization",
    role="operator",
    in_organization=False,
    route=f"POST {ONE}/pause",
    names=NAMES,
    errors=(404,),
    answer=OrganizationDocument,
    summary="Pause an organization: it starts no new tasks; those in progress continue",
    tool=NoDoor("only people pause and resume an organization"),
    command=Command(
        "organization pause",
        "Pause an organization: it starts no new tasks; those in progress continue.",
        "fleet organization pause payments",
        done="organization {name} paused; tasks in progress continue: {tasks[in_progress]}",
    ),
)
RESUME = Operation(
    name="resume_organization",
    role="operator",
    in_organization=False,
    route=f"POST {ONE}/resume",
    names=NAMES,
    errors=(404,),
    answer=OrganizationDocument,
    summary="Resume a paused organization: it starts tasks again",
    tool=NoDoor("only people pause and resume an organization"),
    command=Command(
        "organization resume",
        "Resume a paused organization: it starts tasks again.",
        "fleet organization resume payments",
        done="organization {name} resumed; tasks in progress: {tasks[in_progress]}",
    ),
)
EXPORT = Operation(
    name="export_organization",
    role="admin",
    in_organization=False,
    route=f"GET {ONE}/export",
    route_by_hand="it streams",
    names=NAMES,
    errors=(404,),
    answer=str,
    summary="Export an organization as JSON Lines",
    tool=NoDoor("a model has no use for a file with all rows"),
    command=ByHand("organization export", "it writes a file, and moves it into place once it is complete"),
)
IMPORT = Operation(
    name="import_organization",
    role="admin",
    everywhere=True,
    in_organization=False,
    route="POST /organizations/import",
    route_by_hand="its body is a file that is spooled as it arrives",
    status=201,
    errors=(409, 413),
    answer=OrganizationDocument,
    summary="Import an exported organization",
    tool=NoDoor("a model has no use for a file with all rows"),
    command=ByHand("organization import", "it sends a file"),
)
STATUS = Operation(
    name="show_status",
    role="viewer",
    route="GET /status",
    answer=StatusDocument,
    summary="Show the status: number of drones, orders and tasks, and cost",
    tool=Tool(
        "get_status",
        "Show the status of the fleet",
        READS,
        "Show the status of the organization's fleet: number of drones, unfinished orders and tasks in each state, "
        "active runs and capacity (max_concurrency), whether the organization is paused, and tokens and cost so far. A "
        "good first call.",
    ),
    command=ByHand("status", TOP_LEVEL),
)
