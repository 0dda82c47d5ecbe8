"""Triggers: signed requests of code hosts that become tasks."""

from __future__ import annotations

from fastapi import APIRouter

from control_plane.documents.automation import TriggerDocument, TriggerEdit, TriggerRequest
from control_plane.operations.automation import triggers
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.openapi import errors

router = APIRouter(prefix="/triggers", tags=["automation"])


@router.post("", status_code=201, summary="Add a trigger", responses=errors(401, 403, 404, 409, 413))
def create_trigger(core: CoreDep, caller: CallerDep, request: TriggerRequest) -> TriggerDocument:
    """The answer has the secret; it is shown this once."""
    return triggers.create(core, caller, request)


@router.get("", summary="All triggers", responses=errors(401))
def list_triggers(core: CoreDep, caller: CallerDep) -> list[TriggerDocument]:
    return triggers.list_(core, caller)


@router.get("/{name}", summary="One trigger", responses=errors(401, 404))
def show_trigger(core: CoreDep, caller: CallerDep, name: str) -> TriggerDocument:
    return triggers.show(core, caller, name)


@router.patch("/{name}", summary="Change the fields that are given", responses=errors(401, 403, 404, 413))
def edit_trigger(core: CoreDep, caller: CallerDep, name: str, request: TriggerEdit) -> TriggerDocument:
    return triggers.edit(core, caller, name, request)


@router.delete("/{name}", summary="Remove a trigger; its tasks stay", responses=errors(401, 403, 404))
def remove_trigger(core: CoreDep, caller: CallerDep, name: str) -> TriggerDocument:
    return triggers.remove(core, caller, name)
