"""Webhooks: who is told of what people wait for."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from control_plane.documents.automation import WebhookDeliveryDocument, WebhookDocument, WebhookEdit, WebhookRequest
from control_plane.operations.automation import webhooks
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.openapi import errors

router = APIRouter(prefix="/webhooks", tags=["automation"])


@router.post("", status_code=201, summary="Add a webhook", responses=errors(401, 403, 409, 413))
def create_webhook(core: CoreDep, caller: CallerDep, request: WebhookRequest) -> WebhookDocument:
    """The answer has the secret; it is shown this once."""
    return webhooks.create(core, caller, request)


@router.get("", summary="All webhooks", responses=errors(401))
def list_webhooks(core: CoreDep, caller: CallerDep) -> list[WebhookDocument]:
    return webhooks.list_(core, caller)


@router.get("/{name}", summary="One webhook", responses=errors(401, 404))
def show_webhook(core: CoreDep, caller: CallerDep, name: str) -> WebhookDocument:
    return webhooks.show(core, caller, name)


@router.patch("/{name}", summary="Change the fields that are given", responses=errors(401, 403, 404, 413))
def edit_webhook(core: CoreDep, caller: CallerDep, name: str, request: WebhookEdit) -> WebhookDocument:
    return webhooks.edit(core, caller, name, request)


@router.delete("/{name}", summary="Remove a webhook", responses=errors(401, 403, 404))
def remove_webhook(core: CoreDep, caller: CallerDep, name: str) -> WebhookDocument:
    return webhooks.remove(core, caller, name)


@router.post("/{name}/test", summary="Send fleet.test now, once", responses=errors(401, 403, 404))
def test_webhook(core: CoreDep, caller: CallerDep, name: str) -> WebhookDeliveryDocument:
    """Takes as long as the receiver does, up to 15 s."""
    return webhooks.test(core, caller, name)


@router.get("/{name}/deliveries", summary="The newest messages to it", responses=errors(401, 404))
def list_deliveries(
    core: CoreDep, caller: CallerDep, name: str, limit: Annotated[int, Query(ge=1, le=1000)] = webhooks.MAX_LISTED
) -> list[WebhookDeliveryDocument]:
    return webhooks.deliveries(core, caller, name, limit)
