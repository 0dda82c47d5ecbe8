"""Organizations."""

from __future__ import annotations

from fastapi import APIRouter

from control_plane.declarations.organizations import OrganizationDocument, OrganizationEdit, OrganizationRequest
from control_plane.operations import organizations
from control_plane.web.access import CoreDep, PersonDep
from control_plane.web.openapi import errors

router = APIRouter(prefix="/organizations", tags=["organizations"])


@router.post("", status_code=201, summary="Make an organization", responses=errors(401, 403, 409))
def create_organization(core: CoreDep, caller: PersonDep, request: OrganizationRequest) -> OrganizationDocument:
    """For admins who may act everywhere."""
    return organizations.create(core, caller, request)


@router.get("", summary="The organizations that the caller may see", responses=errors(401))
def list_organizations(core: CoreDep, caller: PersonDep) -> list[OrganizationDocument]:
    """The token's own, or all of them for one that may act everywhere."""
    return organizations.list_(core, caller)


@router.get("/{name}", summary="One organization with its tree of agents", responses=errors(401, 404))
def show_organization(core: CoreDep, caller: PersonDep, name: str) -> OrganizationDocument:
    return organizations.show(core, caller, name)


@router.patch("/{name}", summary="Change the fields that are given", responses=errors(401, 403, 404))
def edit_organization(core: CoreDep, caller: PersonDep, name: str, request: OrganizationEdit) -> OrganizationDocument:
    """The name never changes."""
    return organizations.edit(core, caller, name, request)


@router.delete("/{name}", summary="Remove an organization with all that is in it", responses=errors(401, 403, 404, 409))
def remove_organization(core: CoreDep, caller: PersonDep, name: str) -> OrganizationDocument:
    """As it was; `warnings` says what went with it. For admins who may act everywhere."""
    return organizations.remove(core, caller, name)


@router.post("/{name}/pause", summary="Begin no more tasks; those in progress go on", responses=errors(401, 403, 404))
def pause_organization(core: CoreDep, caller: PersonDep, name: str) -> OrganizationDocument:
    return organizations.pause(core, caller, name)


@router.post("/{name}/resume", summary="Let tasks begin again", responses=errors(401, 403, 404))
def resume_organization(core: CoreDep, caller: PersonDep, name: str) -> OrganizationDocument:
    return organizations.resume(core, caller, name)
