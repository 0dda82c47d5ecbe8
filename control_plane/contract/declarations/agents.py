"""Agents: the identities that models take on inside an organization."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from control_plane.contract.declarations.operation import (
    ADDS,
    ENDS,
    OVERWRITES,
    READS,
    About,
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

NAME = About("agent", "The agent's name, which is also its tag: @NAME.", source="agents:name")
INSTRUCTIONS = About(
    "instructions",
    "Instructions of the agent as Markdown: its role, its duties and its rules.",
    metavar="FILE|-",
    input="file",
)
INSTRUCTIONS_PATH = About(
    "read from", "Alternative to instructions: a Markdown file in the project's repository.", metavar="PATH"
)
PROJECT = About(
    "project",
    "Project whose repository contains the instructions file.",
    absent="the task's project",
    source="projects:slug",
    metavar="SLUG",
    none="none",
)
BOSS = About("boss", "Agent that it reports to.", absent="no boss", source="agents:name", metavar="NAME", none="none")
MAX_ITERATIONS = About("iterations", "Maximum steps per run (0 = unlimited).")
COST_LIMIT = About(
    "cost limit",
    "Maximum cost per run in USD (0 = unlimited).",
    unit="USD/run",
    absent="3.00",
    metavar="USD",
    none="none",
)
PROVIDER = About(
    "provider", "Provider of its model.", absent="the project's provider", source="providers:name", none="none"
)
MODEL = About("model", "Name of the model.", absent="the provider's model", none="default")
REVIEWER = About(
    "reviewer",
    "Provider, or its model, that reviews changes before they are delivered.",
    absent="the project's reviewer",
    source="providers:name",
    none="none",
)
LABELS = About(
    "labels",
    "Label k=v that its drone must have.",
    absent="any drone",
    flag="--label",
    metavar="k=v",
    none="--no-labels",
)
CONCURRENCY = About("concurrency", "Maximum number of its tasks in progress (0 = unlimited).", unit="tasks")


class AgentRequest(Request):
    name: Annotated[str, NAME]
    instructions: Annotated[str | None, INSTRUCTIONS] = None
    """Markdown; the alternative to `instructions_path`."""
    instructions_path: Annotated[str | None, INSTRUCTIONS_PATH] = None
    project: Annotated[str | None, PROJECT] = None
    boss: Annotated[str | None, BOSS] = None
    max_iterations: Annotated[int, MAX_ITERATIONS] = Field(50, ge=0, le=100_000)
    cost_limit: Annotated[float | None, COST_LIMIT] = Field(None, ge=0)
    provider: Annotated[str | None, PROVIDER] = None
    model: Annotated[str | None, MODEL] = None
    reviewer: Annotated[str | None, REVIEWER] = None
    labels: Annotated[dict[str, str], LABELS] = Field(default_factory=dict)
    concurrency: Annotated[int, CONCURRENCY] = Field(0, ge=0, le=1000)
    limits: Annotated[dict[str, Any], LIMITS, LimitsGiven] = Field(default_factory=dict)
    thinking: Annotated[ThinkingLevel | None, THINKING] = None


class AgentEdit(Request):
    """Only the given fields change; null removes boss, project, provider, model, reviewer and cost_limit (S-015)."""

    instructions: Annotated[str | None, INSTRUCTIONS] = None
    instructions_path: Annotated[str | None, INSTRUCTIONS_PATH] = None
    project: Annotated[str | None, PROJECT] = None
    boss: Annotated[str | None, BOSS] = None
    max_iterations: Annotated[int | None, MAX_ITERATIONS] = Field(None, ge=0, le=100_000)
    cost_limit: Annotated[float | None, COST_LIMIT] = Field(None, ge=0)
    provider: Annotated[str | None, PROVIDER] = None
    model: Annotated[str | None, MODEL] = None
    reviewer: Annotated[str | None, REVIEWER] = None
    labels: Annotated[dict[str, str] | None, LABELS] = None
    concurrency: Annotated[int | None, CONCURRENCY] = Field(None, ge=0, le=1000)
    limits: Annotated[dict[str, Any] | None, LIMITS, LimitsGiven] = None
    thinking: Annotated[ThinkingLevel | None, THINKING] = None


class AgentFilter(Request):
    include_removed: Annotated[bool, About("all", "Include removed agents.", flag="--all")] = False


class AgentDocument(Document):
    id: str
    name: Annotated[str, NAME]
    organization: str
    description: str
    instructions_path: Annotated[str | None, INSTRUCTIONS_PATH]
    instructions: str | None
    """The uploaded instructions; null in lists, and if the repository contains them."""
    project: Annotated[str | None, PROJECT]
    boss: Annotated[str | None, BOSS]
    reports: list[str]
    max_iterations: Annotated[int, MAX_ITERATIONS]
    cost_limit: Annotated[float | None, COST_LIMIT]
    provider: Annotated[str | None, PROVIDER]
    model: Annotated[str | None, MODEL]
    reviewer: Annotated[str | None, REVIEWER]
    labels: Annotated[dict[str, str], LABELS]
    concurrency: Annotated[int, CONCURRENCY]
    limits: Annotated[dict[str, Any], LIMITS]
    thinking: Annotated[str | None, THINKING]
    is_removed: bool
    created_at: datetime
    removed_at: datetime | None
    totals: Totals | None
    """Null in lists."""
    warnings: list[str] = Field(default_factory=list)
    """Side effects of the change, one sentence each (S-014)."""


class AgentNode(Document):
    """One agent in the tree of an organization."""

    name: str
    description: str
    reports: list[AgentNode]


NAMES = {"name": Annotated[str, Field(max_length=255), NAME]}
AGENTS = "/organizations/{organization}/agents"
ONE = f"{AGENTS}/{{name}}"
FOR_MODELS = {
    "instructions": "Instructions for the agent as Markdown, addressed to it: its role, duties and rules, and when to "
    "hand a task to which agent. Give either this or instructions_path.",
    "instructions_path": "Alternative to instructions: path of a Markdown file, relative to the root of the project's "
    "repository, such as agents/backend.md. Every run reads it again from the default branch.",
    "boss": "Name of the agent that it reports to. The boss receives a task that this agent leaves without a hand-off.",
    "labels": 'Labels that the drone of its runs must have, such as {"gpu": "yes"}.',
    "limits": f"{LIMITS_FOR_MODELS} max_iterations and cost_limit have arguments of their own here.",
}

ADD = Operation(
    name="create_agent",
    role="admin",
    route=f"POST {AGENTS}",
    status=201,
    errors=(404, 409),
    request=AgentRequest,
    answer=AgentDocument,
    summary="Add an agent",
    more="The name of a removed agent restores it. A model writes the description afterwards.",
    tool=Tool(
        "create_agent",
        "Create an agent",
        ADDS,
        "Create an agent: instructions that give a model an identity in the organization. Tasks can be assigned to it "
        "immediately (create_task). The name of a removed agent restores it with these values. A model writes its "
        "description from the instructions a little later. Requires the admin role.",
        about={
            **FOR_MODELS,
            "name": "Lowercase letters, digits and underscores, starting with a letter, such as `backend`, which "
            "comments tag as @backend. `user` and `system` are reserved.",
            "boss": f"{FOR_MODELS['boss']} Default: none; new tasks go to the first agent by name without a boss.",
            "cost_limit": "Maximum cost of one run in USD; 0 = unlimited. A task's own limit takes precedence. "
            "Default: 3.00.",
            "labels": f"{FOR_MODELS['labels']} Default: any drone.",
        },
    ),
    command=Command(
        "agent add",
        "Add an agent, or restore a removed one. A model writes its description from the instructions a little later.",
        "fleet agent add lead --instructions agents/lead.md",
        arguments=("name",),
    ),
)
LIST = Operation(
    name="list_agents",
    role="viewer",
    route=f"GET {AGENTS}",
    errors=(404,),
    request=AgentFilter,
    answer=list[AgentDocument],
    summary="List agents, without their instructions",
    tool=Tool(
        "list_agents",
        "List agents",
        READS,
        "List the agents of the organization by name, each with its description, boss and reports. create_task and "
        "assign_task take an agent's name as assignee; comments tag it as @name.",
    ),
    command=Command("agent ls", "List the agents.", "fleet agent ls"),
)
TREE = Operation(
    name="agent_tree",
    role="viewer",
    route="GET /organizations/{organization}/agent-tree",
    errors=(404,),
    answer=list[AgentNode],
    summary="Show the tree of agents",
    tool=NoDoor("get_organization returns the tree"),
    command=Command(
        "agent tree",
        "Show the agents as a tree of bosses and reports, as the agents see it.",
        "fleet agent tree",
    ),
)
SHOW = Operation(
    name="show_agent",
    role="viewer",
    route=f"GET {ONE}",
    names=NAMES,
    errors=(404,),
    answer=AgentDocument,
    summary="Show an agent",
    more="Also returns a removed agent.",
    tool=Tool(
        "get_agent",
        "Show an agent",
        READS,
        "Show an agent with its instructions, limits, boss and reports, and its cost so far.",
    ),
    command=Command(
        "agent show",
        "Show an agent with its instructions and the cost of its runs.",
        "fleet agent show lead",
    ),
)
EDIT = Operation(
    name="edit_agent",
    role="admin",
    route=f"PATCH {ONE}",
    names=NAMES,
    errors=(404, 409),
    request=AgentEdit,
    answer=AgentDocument,
    summary="Change the given fields",
    tool=Tool(
        "update_agent",
        "Change an agent",
        OVERWRITES,
        "Change an agent. Only the given arguments change, and at least one is required; omit those to keep, because "
        "null removes a value. The change applies from the agent's next run. Fails with 409 while the agent works on "
        "a task, unless only concurrency is given. Requires the admin role.",
        about={
            **FOR_MODELS,
            "boss": f"{FOR_MODELS['boss']} null: no boss.",
        },
    ),
    command=Command(
        "agent edit",
        "Change an agent; only the given options change.",
        "fleet agent edit backend --boss lead",
    ),
)
REMOVE = Operation(
    name="remove_agent",
    role="admin",
    route=f"DELETE {ONE}",
    names=NAMES,
    errors=(404, 409),
    answer=AgentDocument,
    summary="Remove an agent",
    more="Its costs are kept; its reports no longer have a boss.",
    tool=Tool(
        "remove_agent",
        "Remove an agent",
        ENDS,
        "Remove an agent: it receives no more tasks. Its history and costs are kept, its reports no longer have a "
        "boss, and create_agent with the same name restores it. Fails with 409 while it has tasks that are open or in "
        "progress. Requires the admin role.",
    ),
    command=Command(
        "agent rm",
        "Remove an agent; its costs are kept, and its reports no longer have a boss.",
        "fleet agent rm backend",
        confirm="Remove agent {name}?",
        done="agent {name} removed",
    ),
)
