"""Drones: who they are, how they are, whether they take orders."""

from __future__ import annotations

from fastapi import APIRouter

from control_plane.documents.drones import DroneDocument
from control_plane.operations.drones import managing
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.openapi import errors

router = APIRouter(prefix="/drones", tags=["drones"])


@router.get("", summary="All drones", responses=errors(401))
def list_drones(core: CoreDep, caller: CallerDep) -> list[DroneDocument]:
    return managing.list_drones(core, caller)


@router.get("/{name}", summary="One drone", responses=errors(401, 404))
def show_drone(core: CoreDep, caller: CallerDep, name: str) -> DroneDocument:
    return managing.show_drone(core, caller, name)


@router.delete("/{name}", summary="Remove a drone; its access ends at once", responses=errors(401, 403, 404))
def remove_drone(core: CoreDep, caller: CallerDep, name: str) -> DroneDocument:
    return managing.remove_drone(core, caller, name)


@router.post("/{name}/drain", summary="Let it finish what it has and take nothing new", responses=errors(401, 403, 404))
def drain_drone(core: CoreDep, caller: CallerDep, name: str) -> DroneDocument:
    return managing.set_draining(core, caller, name, True)


@router.post("/{name}/resume", summary="Let it take orders again", responses=errors(401, 403, 404))
def resume_drone(core: CoreDep, caller: CallerDep, name: str) -> DroneDocument:
    return managing.set_draining(core, caller, name, False)
