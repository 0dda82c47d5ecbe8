"""What is watched from outside: the server's health, open to all, and the figures for Prometheus."""

from __future__ import annotations

import hmac
from datetime import datetime
from typing import cast

from anyio import to_thread
from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from control_plane.core import Core
from control_plane.telemetry.metrics.scraping import Scrapes
from control_plane.web.access import METRICS, CoreDep, api_router, bearer_of
from shared.errors import FleetError, NotFound, Unauthenticated
from shared.terminal.command_line import version

open_router = api_router("server", is_open=True)


class Health(BaseModel):
    """The server's health. It needs no token, so it contains no further details."""

    status: str
    """`ok`; `degraded` if the broker accepts no writes: orders are accepted and wait; `failing` without a database."""
    version: str
    database: bool
    broker: bool
    time: datetime


@open_router.get("/health", summary="Check the server's health", responses={503: {"model": Health}})
def health(core: CoreDep, response: Response) -> Health:
    """200 while orders are accepted; 503 without a database."""
    database, broker = _database_answers(core), _broker_accepts_writes(core)
    response.status_code = 200 if database else 503
    status = "ok" if database and broker else "degraded" if database else "failing"
    return Health(status=status, version=version(), database=database, broker=broker, time=core.clock.now())


def _database_answers(core: Core) -> bool:
    try:
        core.database.ping()
    except FleetError:
        return False
    return True


def _broker_accepts_writes(core: Core) -> bool:
    try:
        core.broker.check_writes()
    except FleetError:
        return False
    return True


# --- figures --------------------------------------------------------------------------------------

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
router = APIRouter(include_in_schema=False)
"""`/metrics`, with a token of its own; it is asked without a database, too."""


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
