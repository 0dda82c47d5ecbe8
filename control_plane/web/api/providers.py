"""Providers: where models are reached, and with which key; a key goes in and never comes out."""

from __future__ import annotations

from fastapi import APIRouter

from control_plane.documents.providers import ProviderDocument, ProviderEdit, ProviderRequest
from control_plane.operations import providers
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.openapi import errors

router = APIRouter(prefix="/providers", tags=["providers"])


@router.post("", status_code=201, summary="Add a provider", responses=errors(401, 403, 404, 409))
def add_provider(core: CoreDep, caller: CallerDep, request: ProviderRequest) -> ProviderDocument:
    return providers.add(core, caller, request)


@router.get("", summary="All providers", responses=errors(401))
def list_providers(core: CoreDep, caller: CallerDep) -> list[ProviderDocument]:
    return providers.list_(core, caller)


@router.get("/{name}", summary="One provider", responses=errors(401, 404))
def show_provider(core: CoreDep, caller: CallerDep, name: str) -> ProviderDocument:
    return providers.show(core, caller, name)


@router.patch("/{name}", summary="Change the fields that are given", responses=errors(401, 403, 404))
def edit_provider(core: CoreDep, caller: CallerDep, name: str, request: ProviderEdit) -> ProviderDocument:
    return providers.edit(core, caller, name, request)


@router.delete(
    "/{name}", summary="Remove a provider; orders that used it keep their history", responses=errors(401, 403, 404)
)
def remove_provider(core: CoreDep, caller: CallerDep, name: str) -> ProviderDocument:
    return providers.remove(core, caller, name)
