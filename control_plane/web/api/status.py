"""The whole at a glance."""

from __future__ import annotations

from fastapi import APIRouter

from control_plane.declarations.organizations import StatusDocument
from control_plane.operations import status
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.openapi import errors

router = APIRouter(prefix="/status", tags=["server"])


@router.get("", summary="Drones, orders, tasks and cost in figures", responses=errors(401))
def show_status(core: CoreDep, caller: CallerDep) -> StatusDocument:
    return status.status(core, caller)
