"""The server itself: its health."""

from __future__ import annotations

from datetime import datetime

from fastapi import Response
from pydantic import BaseModel

from control_plane.core import Core
from control_plane.web.access import CoreDep, api_router
from shared.errors import FleetError
from shared.terminal.command_line import version

open_router = api_router("server", is_open=True)


class Health(BaseModel):
    """The server's health. It needs no token, so it contains no further details."""

    status: str
    """`ok`; `degraded` without a broker: orders are accepted and wait; `failing` without a database."""
    version: str
    database: bool
    broker: bool
    time: datetime


@open_router.get("/health", summary="Check the server's health", responses={503: {"model": Health}})
def health(core: CoreDep, response: Response) -> Health:
    """200 while orders are accepted; 503 without a database."""
    database, broker = _database_answers(core), _broker_answers(core)
    response.status_code = 200 if database else 503
    status = "ok" if database and broker else "degraded" if database else "failing"
    return Health(status=status, version=version(), database=database, broker=broker, time=core.clock.now())


def _database_answers(core: Core) -> bool:
    try:
        core.database.ping()
    except FleetError:
        return False
    return True


def _broker_answers(core: Core) -> bool:
    try:
        core.broker.ping()
    except FleetError:
        return False
    return True
