"""Organizations: the isolated units, as a whole, as files, and at a glance."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from control_plane.declarations.agents import AgentNode
from control_plane.declarations.operation import (
    ADDS,
    ENDS,
    OVERWRITES,
    READS,
    About,
    ByHand,
    Command,
    NoDoor,
    Operation,
    Tool,
)
from control_plane.documents.base import Document, Request
from control_plane.documents.totals import Totals

NAME = About("organization", "The organization's name.", source="organizations:name")
DESCRIPTION = About("purpose", "Its purpose, which its agents are told.")
PROJECT = About(
    "project",
    "Where tasks work that name no project.",
    absent="only as each task says",
    source="projects:slug",
    none="none",
)
CONCURRENCY = About("at once", "Tasks in progress at once; 0: no limit.", unit="tasks")
HAND_OFFS = About("hand-offs", "From agent to agent in a row, until a task comes back; 0: no limit.")


class OrganizationRequest(Request):
    name: Annotated[str, NAME]
    description: Annotated[str, DESCRIPTION] = ""
    project: Annotated[str | None, PROJECT] = None
    """Slug of the project of tasks that name none; it must already exist, so a new organization has none."""
    concurrency: Annotated[int, CONCURRENCY] = Field(4, ge=0, le=1000)
    max_hand_offs: Annotated[int, HAND_OFFS] = Field(20, ge=0, le=10_000)


class OrganizationEdit(Request):
    """Only the fields that are set change; the name never does (S-005)."""

    description: Annotated[str | None, DESCRIPTION] = None
    project: Annotated[str | None, PROJECT] = None
    concurrency: Annotated[int | None, CONCURRENCY] = Field(None, ge=0, le=1000)
    max_hand_offs: Annotated[int | None, HAND_OFFS] = Field(None, ge=0, le=10_000)


class OrganizationDocument(Document):
    id: str
    name: str
    description: str
    acronym: str
    project: str | None
    concurrency: int
    max_hand_offs: int
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
    """The number of unended orders in each state."""
    tasks: dict[str, int]
    active_runs: int
    max_concurrency: int
    totals: Totals


NAMES = {"name": Annotated[str, Field(max_length=255), NAME]}
ONE = "/organizations/{name}"
FOR_MODELS = {
    "description": "What the organization is for, in a few sentences; its agents read it in every run.",
    "project": "Slug of the project where tasks work that name none; list_projects has them.",
    "concurrency": "How many of its tasks may be in progress at once; 0: no limit.",
    "max_hand_offs": "After so many hand-offs from agent to agent a task goes back to the user; 0: no limit.",
}
NAMED = {"name": "The organization's name; list_organizations has them."}

ADD = Operation(
    name="create_organization",
    role="admin",
    everywhere=True,
    in_organization=False,
    route="POST /organizations",
    status=201,
    errors=(409,),
    run="organizations.changing:create",
    request=OrganizationRequest,
    answer=OrganizationDocument,
    summary="Make an organization",
    more="For admins who may act everywhere.",
    tool=Tool(
        "create_organization",
        "Create an organization",
        ADDS,
        "Make a new, empty organization. Next it needs a project and a provider, which are added in the terminal "
        "(fleet project add, fleet provider add, both with --org), and agents (create_agent). Only for a token that "
        "may act everywhere.",
        about={
            **FOR_MODELS,
            "name": "Lowercase letters, digits and underscores, a letter first, such as `payments`; never changes. "
            "`user` and `system` are reserved.",
            "project": "Leave it out: a new organization has no project yet. Set it with update_organization later.",
            "concurrency": f"{FOR_MODELS['concurrency']} Default: 4.",
            "max_hand_offs": f"{FOR_MODELS['max_hand_offs']} Default: 20.",
        },
    ),
    command=Command(
        "organization add",
        "Make an organization. This needs a token that may act everywhere.",
        "fleet organization add payments --description 'Card payments'",
        arguments=("name",),
        without=("project",),
        text="organization_text:organization_lines",
    ),
)
LIST = Operation(
    name="list_organizations",
    role="viewer",
    in_organization=False,
    route="GET /organizations",
    run="organizations.reading:list_",
    answer=list[OrganizationDocument],
    summary="The organizations that the caller may see",
    more="The token's own, or all of them for one that may act everywhere.",
    tool=Tool(
        "list_organizations",
        "List organizations",
        READS,
        "The organizations (isolated units with projects, agents, tasks and members of their own) that the API token "
        "may act in. Their names are what other tools call `organization`.",
    ),
    command=Command(
        "organization ls",
        "List the organizations that you may see.",
        "fleet organization ls",
        text="organization_text:organization_table",
    ),
)
SHOW = Operation(
    name="show_organization",
    role="viewer",
    in_organization=False,
    route=f"GET {ONE}",
    names=NAMES,
    errors=(404,),
    run="organizations.reading:show",
    answer=OrganizationDocument,
    summary="One organization with its tree of agents",
    tool=Tool(
        "get_organization",
        "Show an organization",
        READS,
        "An organization with the tree of its agents (who reports to whom, and what each does), its limits, tasks in "
        "each state, and what it cost.",
        about=NAMED,
    ),
    command=Command(
        "organization show",
        "Show an organization and its agents.",
        "fleet organization show payments",
        text="organization_text:organization_lines",
    ),
)
EDIT = Operation(
    name="edit_organization",
    role="admin",
    in_organization=False,
    route=f"PATCH {ONE}",
    names=NAMES,
    errors=(404,),
    run="organizations.changing:edit",
    request=OrganizationEdit,
    answer=OrganizationDocument,
    summary="Change the fields that are given",
    more="The name never changes.",
    tool=Tool(
        "update_organization",
        "Change an organization",
        OVERWRITES,
        "Change an organization's description, project or limits: only what is given changes, and something must be. "
        "Its name never changes. For admins.",
        about={**FOR_MODELS, **NAMED, "project": f"{FOR_MODELS['project']} null: none any more."},
    ),
    command=Command(
        "organization edit",
        "Change an organization; only what is named changes, and the name never does.",
        "fleet organization edit payments --concurrency 8 --project shop",
        text="organization_text:organization_lines",
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
    run="organizations.removing:remove",
    answer=OrganizationDocument,
    summary="Remove an organization with all that is in it",
    more="As it was; `warnings` says what went with it. For admins who may act everywhere.",
    tool=Tool(
        "delete_organization",
        "Delete an organization",
        ENDS,
        "Delete an organization for good, with its agents, tasks, comments, orders, runs and tokens; nothing brings "
        "them back, so ask your user first. Refused (409) while a task of it is in progress: preempt_task or "
        "cancel_task first. Only for a token that may act everywhere.",
        about=NAMED,
    ),
    command=Command(
        "organization rm",
        "Remove an organization with its agents, tasks, orders, runs, tokens and drones. Nothing of it is kept.",
        "fleet organization rm payments --yes",
        confirm="Remove organization {name}, with all its agents, tasks and runs?",
        done="organization {name} is removed",
    ),
)
PAUSE = Operation(
    name="pause_organization",
    role="operator",
    in_organization=False,
    route=f"POST {ONE}/pause",
    names=NAMES,
    errors=(404,),
    run="organizations.changing:pause",
    answer=OrganizationDocument,
    summary="Begin no more tasks; those in progress continue",
    tool=NoDoor("a person decides when a team pauses"),
    command=Command(
        "organization pause",
        "Begin no more of its tasks; those in progress continue.",
        "fleet organization pause payments",
        done="{name} begins no more tasks; {tasks[in_progress]} in progress continue",
    ),
)
RESUME = Operation(
    name="resume_organization",
    role="operator",
    in_organization=False,
    route=f"POST {ONE}/resume",
    names=NAMES,
    errors=(404,),
    run="organizations.changing:resume",
    answer=OrganizationDocument,
    summary="Let tasks begin again",
    tool=NoDoor("a person decides when a team pauses"),
    command=Command(
        "organization resume",
        "Let its tasks begin again.",
        "fleet organization resume payments",
        done="{name} begins tasks again; {tasks[in_progress]} in progress",
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
    run="transfer.exporting:export_lines",
    answer=str,
    summary="All of an organization as JSON lines",
    tool=NoDoor("a model has no use for a file of all rows"),
    command=ByHand("organization export", "it writes a file, and puts it in place when it is whole"),
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
    run="transfer.importing:import_file",
    answer=OrganizationDocument,
    summary="Make an organization of exported lines",
    tool=NoDoor("a model has no use for a file of all rows"),
    command=ByHand("organization import", "it sends a file"),
)
STATUS = Operation(
    name="show_status",
    role="viewer",
    route="GET /status",
    run="status:status",
    answer=StatusDocument,
    summary="Drones, orders, tasks and cost in figures",
    tool=Tool(
        "get_status",
        "Show how the fleet is",
        READS,
        "How the organization's fleet is: how many drones, unfinished orders and tasks there are in each state, how "
        "many runs are going on of at most how many, whether it is paused, tokens and cost so far. A good first call.",
    ),
    command=ByHand("status", "it is a command of the top level, whose help loads no declaration"),
)
