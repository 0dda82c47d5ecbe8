"""`/hooks/…`: open to everyone, because these requests of code hosts are authenticated only by their signature."""

from __future__ import annotations

from anyio import to_thread
from fastapi import APIRouter, Depends, Request

from control_plane.contract.declarations.code_hosts import CodeHostAnswer
from control_plane.contract.declarations.triggers import HookAnswer
from control_plane.operations.automation import triggers
from control_plane.operations.code_hosts.arriving import accept_webhook
from control_plane.web.access import HOOKS, CoreDep
from control_plane.web.openapi import errors
from control_plane.web.throttle import throttled

router = APIRouter(prefix=HOOKS.rstrip("/"), tags=["automation"])


@router.post(
    "/{trigger_id}",
    summary="Receive an event from a code host",
    dependencies=[Depends(throttled("hook"))],
    responses=errors(401, 412, 413, 429),
)
async def take_hook(core: CoreDep, trigger_id: str, request: Request) -> HookAnswer:
    """The request is signed as by GitHub, GitLab, Gitea or Standard Webhooks, depending on the trigger's kind."""
    body = await request.body()
    headers = {name.lower(): value for name, value in request.headers.items()}
    return await to_thread.run_sync(triggers.accept_delivery, core, trigger_id, headers, body)


@router.post(
    "/hosts/{link_id}",
    summary="Receive a webhook of a connected code host",
    dependencies=[Depends(throttled("hook"))],
    responses=errors(401, 404, 413, 429),
)
async def take_webhook(core: CoreDep, link_id: str, request: Request) -> CodeHostAnswer:
    """The request is signed as by GitHub, GitLab or Gitea; what happened is then read from the code host itself."""
    body = await request.body()
    headers = {name.lower(): value for name, value in request.headers.items()}
    return await to_thread.run_sync(accept_webhook, core, link_id, headers, body)
