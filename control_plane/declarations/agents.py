"""Agents: the identities that models take on inside an organization."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from control_plane.declarations.operation import (
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
from control_plane.documents.base import Document, Request
from control_plane.documents.totals import Totals

NAME = About("agent", "The agent's name, which is also its tag: @NAME.", source="agents:name")
INSTRUCTIONS = About(
    "instructions",
    "Who the agent is and how it works, as Markdown.",
    metavar="FILE|-",
    reader="instructions_file:read_instructions",
)
INSTRUCTIONS_PATH = About(
    "read from", "Instead of instructions: a Markdown file in the project's repository.", metavar="PATH"
)
PROJECT = About(
    "project", "The repository of that file.", absent="the task's", source="projects:slug", metavar="SLUG", none="none"
)
BOSS = About(
    "boss", "The agent that it reports to.", absent="nobody", source="agents:name", metavar="NAME", none="none"
)
MAX_ITERATIONS = About("iterations", "Answers of the model in a run; 0: no limit.")
COST_LIMIT = About(
    "cost limit",
    "The most that a run may cost; 0: no limit.",
    unit="USD/run",
    absent="3.00",
    metavar="USD",
    none="none",
)
PROVIDER = About(
    "provider", "Where its model is reached.", absent="the project's", source="providers:name", none="none"
)
MODEL = About("model", "Name of the model.", absent="the provider's own", none="default")
LABELS = About(
    "labels", "What its drone must have.", absent="any drone", flag="--label", metavar="k=v", none="--no-labels"
)
CONCURRENCY = About("at once", "Tasks in progress at once; 0: any number.", unit="tasks")


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
    labels: Annotated[dict[str, str], LABELS] = Field(default_factory=dict)
    concurrency: Annotated[int, CONCURRENCY] = Field(0, ge=0, le=1000)


class AgentEdit(Request):
    """Only the fields that are set change; null takes boss, project, provider, model and cost_limit away (S-015)."""

    instructions: Annotated[str | None, INSTRUCTIONS] = None
    instructions_path: Annotated[str | None, INSTRUCTIONS_PATH] = None
    project: Annotated[str | None, PROJECT] = None
    boss: Annotated[str | None, BOSS] = None
    max_iterations: Annotated[int | None, MAX_ITERATIONS] = Field(None, ge=0, le=100_000)
    cost_limit: Annotated[float | None, COST_LIMIT] = Field(None, ge=0)
    provider: Annotated[str | None, PROVIDER] = None
    model: Annotated[str | None, MODEL] = None
    labels: Annotated[dict[str, str] | None, LABELS] = None
    concurrency: Annotated[int | None, CONCURRENCY] = Field(None, ge=0, le=1000)


class AgentFilter(Request):
    include_removed: Annotated[bool, About("all", "Also those that were removed.", flag="--all")] = False


class AgentDocument(Document):
    id: str
    name: Annotated[str, NAME]
    organization: str
    description: str
    instructions_path: Annotated[str | None, INSTRUCTIONS_PATH]
    instructions: str | None
    """The uploaded instructions; null in lists, and if they are in the repository."""
    project: Annotated[str | None, PROJECT]
    boss: Annotated[str | None, BOSS]
    reports: list[str]
    max_iterations: Annotated[int, MAX_ITERATIONS]
    cost_limit: Annotated[float | None, COST_LIMIT]
    provider: Annotated[str | None, PROVIDER]
    model: Annotated[str | None, MODEL]
    labels: Annotated[dict[str, str], LABELS]
    concurrency: Annotated[int, CONCURRENCY]
    is_removed: bool
    created_at: datetime
    removed_at: datetime | None
    totals: Totals | None
    """Null in lists."""
    warnings: list[str] = Field(default_factory=list)
    """Other changes that it caused, one sentence each (S-014)."""


class AgentNode(Document):
    """One agent in the tree of an organization."""

    name: str
    description: str
    reports: list[AgentNode]


NAMES = {"name": Annotated[str, Field(max_length=255), NAME]}
AGENTS = "/organizations/{organization}/agents"
ONE = f"{AGENTS}/{{name}}"
FOR_MODELS = {
    "instructions": "Who the agent is and how it works, as Markdown, written to it: role, duties, rules, when to hand "
    "a task to whom. Either this or instructions_path.",
    "instructions_path": "Instead of instructions: a Markdown file in the project's repository, relative to its root, "
    "such as agents/backend.md. It is read fresh from the default branch on every run.",
    "project": "Slug of the project whose repository has instructions_path; list_projects has them.",
    "boss": "Name of the agent that it reports to: where a task is stuck, it goes there.",
    "max_iterations": "At most so many rounds of the model in one run; 0: no limit.",
    "cost_limit": "At most so many USD in one run; 0: no limit.",
    "provider": "Name of the provider whose model it uses; list_providers has them.",
    "model": "Name of the model, as the provider calls it.",
    "labels": 'Its runs need a drone that has all these labels, such as {"gpu": "yes"}.',
    "concurrency": "On how many tasks it may work at once; 0: no limit of its own.",
}
NAMED = {"name": "The agent's name; list_agents has them."}

ADD = Operation(
    name="create_agent",
    role="admin",
    route=f"POST {AGENTS}",
    status=201,
    errors=(404, 409),
    run="agents.changing:create",
    request=AgentRequest,
    answer=AgentDocument,
    summary="Add an agent",
    more="Or bring a removed one of the same name back. Its description is written by a model, and comes later.",
    tool=Tool(
        "create_agent",
        "Create an agent",
        ADDS,
        "Make an agent: instructions that give a model an identity inside the organization. It can be given tasks at "
        "once (create_task). The name of an agent that was removed brings it back, with all of this. Its description "
        "is written from the instructions by a model a little later. For admins.",
        about={
            **FOR_MODELS,
            "name": "Lowercase letters, digits and underscores, a letter first, such as `backend`: it is tagged with "
            "@backend. `user` and `system` are reserved.",
            "project": f"{FOR_MODELS['project']} Default: the task's.",
            "boss": f"{FOR_MODELS['boss']} Default: none; the first agent by name without a boss gets new tasks.",
            "max_iterations": f"{FOR_MODELS['max_iterations']} Default: 50.",
            "cost_limit": f"{FOR_MODELS['cost_limit']} Default: 3.00. A task's own limit goes before it.",
            "provider": f"{FOR_MODELS['provider']} Default: the project's.",
            "model": f"{FOR_MODELS['model']} Default: the provider's.",
            "labels": f"{FOR_MODELS['labels']} Default: any drone.",
            "concurrency": f"{FOR_MODELS['concurrency']} Default: 0.",
        },
    ),
    command=Command(
        "agent add",
        "Add an agent, or bring a removed one back. A model describes it from its instructions, a little later.",
        "fleet agent add lead --instructions agents/lead.md",
        arguments=("name",),
        text="agent_text:agent_lines",
    ),
)
LIST = Operation(
    name="list_agents",
    role="viewer",
    route=f"GET {AGENTS}",
    errors=(404,),
    run="agents.reading:list_",
    request=AgentFilter,
    answer=list[AgentDocument],
    summary="All agents, without their instructions",
    tool=Tool(
        "list_agents",
        "List agents",
        READS,
        "The agents of the organization by name: what each does (description), its boss and reports. Their names are "
        "what create_task and assign_task call assignee, and what a comment tags as @name.",
        about={"include_removed": "true: also those that were removed."},
    ),
    command=Command("agent ls", "List the agents.", "fleet agent ls", text="agent_text:agent_table"),
)
TREE = Operation(
    name="agent_tree",
    role="viewer",
    route="GET /organizations/{organization}/agent-tree",
    errors=(404,),
    run="agents.reading:tree",
    answer=list[AgentNode],
    summary="Who reports to whom",
    tool=NoDoor("get_organization has the tree"),
    command=Command(
        "agent tree",
        "Draw who reports to whom, as the agents themselves are shown it.",
        "fleet agent tree",
        text="agent_text:tree_text",
    ),
)
SHOW = Operation(
    name="show_agent",
    role="viewer",
    route=f"GET {ONE}",
    names=NAMES,
    errors=(404,),
    run="agents.reading:show",
    answer=AgentDocument,
    summary="One agent",
    more="Also one that was removed.",
    tool=Tool(
        "get_agent",
        "Show an agent",
        READS,
        "An agent with its instructions, limits, boss and reports, and what it cost so far.",
        about=NAMED,
    ),
    command=Command(
        "agent show",
        "Show an agent with its instructions, and what its runs cost.",
        "fleet agent show lead",
        text="agent_text:agent_in_full",
    ),
)
EDIT = Operation(
    name="edit_agent",
    role="admin",
    route=f"PATCH {ONE}",
    names=NAMES,
    errors=(404, 409),
    run="agents.changing:edit",
    request=AgentEdit,
    answer=AgentDocument,
    summary="Change the fields that are given",
    tool=Tool(
        "update_agent",
        "Change an agent",
        OVERWRITES,
        "Change an agent: only what is given changes, and something must be; leave out what shall stay, as null takes "
        "a value away. It holds from its next run on. Refused (409) while the agent works on a task. For admins.",
        about={
            **FOR_MODELS,
            **NAMED,
            "project": f"{FOR_MODELS['project']} null: that of the task.",
            "boss": f"{FOR_MODELS['boss']} null: it reports to nobody any more.",
            "cost_limit": f"{FOR_MODELS['cost_limit']} null: 3.00, as without one.",
            "provider": f"{FOR_MODELS['provider']} null: that of the project.",
            "model": f"{FOR_MODELS['model']} null: that of the provider.",
        },
    ),
    command=Command(
        "agent edit",
        "Change an agent; only what is named changes.",
        "fleet agent edit backend --boss lead",
        text="agent_text:agent_lines",
    ),
)
REMOVE = Operation(
    name="remove_agent",
    role="admin",
    route=f"DELETE {ONE}",
    names=NAMES,
    errors=(404, 409),
    run="agents.changing:remove",
    answer=AgentDocument,
    summary="Remove an agent",
    more="What it cost stays known; its reports stand at the top from now on.",
    tool=Tool(
        "remove_agent",
        "Remove an agent",
        ENDS,
        "Remove an agent: it gets no more tasks. What it did and cost is kept, its reports stand at the top from then "
        "on, and create_agent with the same name brings it back. Refused (409) while it has tasks that are open or in "
        "progress. For admins.",
        about=NAMED,
    ),
    command=Command(
        "agent rm",
        "Remove an agent; what it cost stays known, and its reports have no boss from now on.",
        "fleet agent rm backend",
        confirm="Remove agent {name}?",
        done="agent {name} is removed",
    ),
)
