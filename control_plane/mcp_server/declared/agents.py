"""Tools for agents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from control_plane.core import Caller, Core
from control_plane.declarations.operation import ADDS, ENDS, OVERWRITES, READS
from control_plane.documents.agents import AgentDocument, AgentEdit, AgentRequest
from control_plane.mcp_server.tools import InOrganization, Toolbox, request_of
from control_plane.operations import agents

TOOLS = Toolbox()
ABOUT = {
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


class AgentNames(InOrganization):
    include_removed: bool = Field(False, description="true: also those that were removed.")


class OfAgent(InOrganization):
    name: str = Field(max_length=255, description="The agent's name; list_agents has them.")


class CreateAgent(InOrganization, AgentRequest):
    about: ClassVar[Mapping[str, str]] = {
        **ABOUT,
        "name": "Lowercase letters, digits and underscores, a letter first, such as `backend`: it is tagged with "
        "@backend. `user` and `system` are reserved.",
        "project": f"{ABOUT['project']} Default: the task's.",
        "boss": f"{ABOUT['boss']} Default: none; the first agent by name without a boss gets new tasks.",
        "max_iterations": f"{ABOUT['max_iterations']} Default: 50.",
        "cost_limit": f"{ABOUT['cost_limit']} Default: 3.00. A task's own limit goes before it.",
        "provider": f"{ABOUT['provider']} Default: the project's.",
        "model": f"{ABOUT['model']} Default: the provider's.",
        "labels": f"{ABOUT['labels']} Default: any drone.",
        "concurrency": f"{ABOUT['concurrency']} Default: 0.",
    }


class UpdateAgent(OfAgent, AgentEdit):
    about: ClassVar[Mapping[str, str]] = {
        **ABOUT,
        "project": f"{ABOUT['project']} null: that of the task.",
        "boss": f"{ABOUT['boss']} null: it reports to nobody any more.",
        "cost_limit": f"{ABOUT['cost_limit']} null: 3.00, as without one.",
        "provider": f"{ABOUT['provider']} null: that of the project.",
        "model": f"{ABOUT['model']} null: that of the provider.",
    }


@TOOLS.declare("List agents", READS)
def list_agents(core: Core, caller: Caller, arguments: AgentNames) -> list[AgentDocument]:
    """The agents of the organization by name: what each does (description), its boss and reports. Their names are what
    create_task and assign_task call assignee, and what a comment tags as @name."""
    return agents.list_(core, caller, arguments.include_removed)


@TOOLS.declare("Show an agent", READS)
def get_agent(core: Core, caller: Caller, arguments: OfAgent) -> AgentDocument:
    """An agent with its instructions, limits, boss and reports, and what it cost so far."""
    return agents.show(core, caller, arguments.name)


@TOOLS.declare("Create an agent", ADDS)
def create_agent(core: Core, caller: Caller, arguments: CreateAgent) -> AgentDocument:
    """Make an agent: instructions that give a model an identity inside the organization. It can be given tasks at once
    (create_task). The name of an agent that was removed brings it back, with all of this. Its description is written
    from the instructions by a model a little later. For admins."""
    return agents.create(core, caller, request_of(AgentRequest, arguments))


@TOOLS.declare("Change an agent", OVERWRITES)
def update_agent(core: Core, caller: Caller, arguments: UpdateAgent) -> AgentDocument:
    """Change an agent: only what is given changes, and something must be; leave out what shall stay, as null takes a
    value away. It holds from its next run on. Refused (409) while the agent works on a task. For admins."""
    return agents.edit(core, caller, arguments.name, request_of(AgentEdit, arguments))


@TOOLS.declare("Remove an agent", ENDS)
def remove_agent(core: Core, caller: Caller, arguments: OfAgent) -> AgentDocument:
    """Remove an agent: it gets no more tasks. What it did and cost is kept, its reports stand at the top from then on,
    and create_agent with the same name brings it back. Refused (409) while it has tasks that are open or in progress.
    For admins."""
    return agents.remove(core, caller, arguments.name)
