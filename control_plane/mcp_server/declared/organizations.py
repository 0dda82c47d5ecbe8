"""Tools for the fleet as a whole and for organizations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from control_plane.core import Caller, Core
from control_plane.declarations.operation import ADDS, ENDS, OVERWRITES, READS
from control_plane.declarations.organizations import (
    OrganizationDocument,
    OrganizationEdit,
    OrganizationRequest,
    StatusDocument,
)
from control_plane.mcp_server.tools import Arguments, Toolbox, request_of
from control_plane.operations import organizations, status

TOOLS = Toolbox()
ABOUT = {
    "description": "What the organization is for, in a few sentences; its agents read it in every run.",
    "project": "Slug of the project where tasks work that name none; list_projects has them.",
    "concurrency": "How many of its tasks may be in progress at once; 0: no limit.",
    "max_hand_offs": "After so many hand-offs from agent to agent a task goes back to the user; 0: no limit.",
}


class Named(Arguments):
    name: str = Field(max_length=255, description="The organization's name; list_organizations has them.")


class CreateOrganization(Arguments, OrganizationRequest):
    about: ClassVar[Mapping[str, str]] = {
        **ABOUT,
        "name": "Lowercase letters, digits and underscores, a letter first, such as `payments`; never changes. "
        "`user` and `system` are reserved.",
        "project": "Leave it out: a new organization has no project yet. Set it with update_organization later.",
        "concurrency": f"{ABOUT['concurrency']} Default: 4.",
        "max_hand_offs": f"{ABOUT['max_hand_offs']} Default: 20.",
    }


class UpdateOrganization(Named, OrganizationEdit):
    about: ClassVar[Mapping[str, str]] = {
        **ABOUT,
        "project": f"{ABOUT['project']} null: none any more.",
    }


@TOOLS.declare("Show how the fleet is", READS)
def get_status(core: Core, caller: Caller) -> StatusDocument:
    """How the organization's fleet is: how many drones, unfinished orders and tasks there are in each state, how many
    runs are going on of at most how many, whether it is paused, tokens and cost so far. A good first call."""
    return status.status(core, caller)


@TOOLS.declare("List organizations", READS)
def list_organizations(core: Core, caller: Caller, arguments: Arguments) -> list[OrganizationDocument]:  # noqa: ARG001
    """The organizations (isolated units with projects, agents, tasks and members of their own) that the API token may
    act in. Their names are what other tools call `organization`."""
    return organizations.list_(core, caller)


@TOOLS.declare("Show an organization", READS)
def get_organization(core: Core, caller: Caller, arguments: Named) -> OrganizationDocument:
    """An organization with the tree of its agents (who reports to whom, and what each does), its limits, tasks in each
    state, and what it cost."""
    return organizations.show(core, caller, arguments.name)


@TOOLS.declare("Create an organization", ADDS)
def create_organization(core: Core, caller: Caller, arguments: CreateOrganization) -> OrganizationDocument:
    """Make a new, empty organization. Next it needs a project and a provider, which are added in the terminal (fleet
    project add, fleet provider add, both with --org), and agents (create_agent). Only for a token that may act
    everywhere."""
    return organizations.create(core, caller, request_of(OrganizationRequest, arguments))


@TOOLS.declare("Change an organization", OVERWRITES)
def update_organization(core: Core, caller: Caller, arguments: UpdateOrganization) -> OrganizationDocument:
    """Change an organization's description, project or limits: only what is given changes, and something must be. Its
    name never changes. For admins."""
    return organizations.edit(core, caller, arguments.name, request_of(OrganizationEdit, arguments))


@TOOLS.declare("Delete an organization", ENDS)
def delete_organization(core: Core, caller: Caller, arguments: Named) -> OrganizationDocument:
    """Delete an organization for good, with its agents, tasks, comments, orders, runs and tokens; nothing brings them
    back, so ask your user first. Refused (409) while a task of it is in progress: preempt_task or cancel_task first.
    Only for a token that may act everywhere."""
    return organizations.remove(core, caller, arguments.name)
