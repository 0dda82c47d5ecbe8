"""Projects: the repositories that orders work on."""

from __future__ import annotations

from fastapi import APIRouter

from control_plane.documents.projects import ProjectDocument, ProjectEdit, ProjectRequest
from control_plane.operations import projects
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.openapi import errors

router = APIRouter(prefix="/projects", tags=["projects"])


@router.post("", status_code=201, summary="Add a project", responses=errors(401, 403, 404, 409))
def add_project(core: CoreDep, caller: CallerDep, request: ProjectRequest) -> ProjectDocument:
    return projects.add(core, caller, request)


@router.get("", summary="All projects", responses=errors(401))
def list_projects(core: CoreDep, caller: CallerDep) -> list[ProjectDocument]:
    return projects.list_(core, caller)


@router.get("/{slug}", summary="One project", responses=errors(401, 404))
def show_project(core: CoreDep, caller: CallerDep, slug: str) -> ProjectDocument:
    return projects.show(core, caller, slug)


@router.patch("/{slug}", summary="Change the fields that are given", responses=errors(401, 403, 404))
def edit_project(core: CoreDep, caller: CallerDep, slug: str, request: ProjectEdit) -> ProjectDocument:
    return projects.edit(core, caller, slug, request)


@router.delete(
    "/{slug}", summary="Remove a project; orders that used it keep their history", responses=errors(401, 403, 404)
)
def remove_project(core: CoreDep, caller: CallerDep, slug: str) -> ProjectDocument:
    return projects.remove(core, caller, slug)
