"""Agents of an organization."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from control_plane.documents.agents import AgentDocument, AgentEdit, AgentRequest
from control_plane.documents.organizations import AgentNode
from control_plane.operations import agents
from control_plane.web.access import CoreDep, OrganizationCallerDep
from control_plane.web.openapi import errors

router = APIRouter(prefix="/organizations/{organization}", tags=["agents"])

IncludeRemoved = Annotated[bool, Query(description="Also those that were removed.")]


@router.post("/agents", status_code=201, summary="Add an agent", responses=errors(401, 403, 404, 409))
def create_agent(core: CoreDep, caller: OrganizationCallerDep, request: AgentRequest) -> AgentDocument:
    """Or bring a removed one of the same name back. Its description is written by a model, and comes later."""
    return agents.create(core, caller, request)


@router.get("/agents", summary="All agents, without their instructions", responses=errors(401, 404))
def list_agents(
    core: CoreDep, caller: OrganizationCallerDep, include_removed: IncludeRemoved = False
) -> list[AgentDocument]:
    return agents.list_(core, caller, include_removed)


@router.get("/agent-tree", summary="Who reports to whom", responses=errors(401, 404))
def agent_tree(core: CoreDep, caller: OrganizationCallerDep) -> list[AgentNode]:
    return agents.tree(core, caller)


@router.get("/agents/{name}", summary="One agent", responses=errors(401, 404))
def show_agent(core: CoreDep, caller: OrganizationCallerDep, name: str) -> AgentDocument:
    """Also one that was removed."""
    return agents.show(core, caller, name)


@router.patch("/agents/{name}", summary="Change the fields that are given", responses=errors(401, 403, 404, 409))
def edit_agent(core: CoreDep, caller: OrganizationCallerDep, name: str, request: AgentEdit) -> AgentDocument:
    return agents.edit(core, caller, name, request)


@router.delete("/agents/{name}", summary="Remove an agent", responses=errors(401, 403, 404, 409))
def remove_agent(core: CoreDep, caller: OrganizationCallerDep, name: str) -> AgentDocument:
    """What it cost stays known; its reports stand at the top from now on."""
    return agents.remove(core, caller, name)
