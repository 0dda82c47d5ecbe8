"""Schedules: tasks at the times of a cron line."""

from __future__ import annotations

from fastapi import APIRouter

from control_plane.documents.automation import ScheduleDocument, ScheduleEdit, ScheduleRequest
from control_plane.documents.tasks import TaskDocument
from control_plane.operations.automation import schedules
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.openapi import errors

router = APIRouter(prefix="/schedules", tags=["automation"])


@router.post("", status_code=201, summary="Add a schedule", responses=errors(401, 403, 404, 409, 413))
def create_schedule(core: CoreDep, caller: CallerDep, request: ScheduleRequest) -> ScheduleDocument:
    return schedules.create(core, caller, request)


@router.get("", summary="All schedules", responses=errors(401))
def list_schedules(core: CoreDep, caller: CallerDep) -> list[ScheduleDocument]:
    return schedules.list_(core, caller)


@router.get("/{name}", summary="One schedule", responses=errors(401, 404))
def show_schedule(core: CoreDep, caller: CallerDep, name: str) -> ScheduleDocument:
    return schedules.show(core, caller, name)


@router.patch("/{name}", summary="Change the fields that are given", responses=errors(401, 403, 404, 413))
def edit_schedule(core: CoreDep, caller: CallerDep, name: str, request: ScheduleEdit) -> ScheduleDocument:
    return schedules.edit(core, caller, name, request)


@router.delete("/{name}", summary="Remove a schedule; its tasks stay", responses=errors(401, 403, 404))
def remove_schedule(core: CoreDep, caller: CallerDep, name: str) -> ScheduleDocument:
    return schedules.remove(core, caller, name)


@router.post(
    "/{name}/run", status_code=201, summary="Make its task now", responses=errors(401, 403, 404, 409, 412, 413)
)
def run_schedule(core: CoreDep, caller: CallerDep, name: str) -> TaskDocument:
    return schedules.run_now(core, caller, name)
