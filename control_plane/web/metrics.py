"""`/metrics`: the figures for Prometheus, with a token of their own; it is asked without a database, too."""

from __future__ import annotations

import hmac
from typing import cast

from anyio import to_thread
from fastapi import APIRouter, Request, Response

from control_plane.metrics.scraping import Scrapes
from control_plane.web.access import METRICS, CoreDep, bearer_of
from shared.errors import NotFound, Unauthenticated

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
router = APIRouter(include_in_schema=False)


@router.get(METRICS)
async def metrics(core: CoreDep, request: Request) -> Response:
    """All figures as text. Raises NotFound while FLEET_METRICS_TOKEN is not set, Unauthenticated for another token."""
    check_token(core.settings.metrics_token, bearer_of(request.headers))
    scrapes = cast("Scrapes", request.app.state.scrapes)
    answer = await to_thread.run_sync(scrapes.answer)
    return Response(answer, media_type=MEDIA_TYPE, headers={"Cache-Control": "no-store"})


def check_token(wanted: str | None, given: str) -> None:
    """Return if the token is the right one."""
    if wanted is None:
        raise NotFound(
            "this control plane has no metrics",
            code="E-METRICS-OFF",
            why="FLEET_METRICS_TOKEN is not set",
            next="set FLEET_METRICS_TOKEN for the control plane, at least 16 characters, and restart it",
        )
    if not hmac.compare_digest(wanted.encode(), given.encode()):
        raise Unauthenticated(
            "metrics require their own token",
            code="E-METRICS-TOKEN",
            why="the request has another bearer token" if given else "the request has no bearer token",
            next="send the value of FLEET_METRICS_TOKEN as: Authorization: Bearer TOKEN",
        )
