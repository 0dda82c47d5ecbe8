"""The server itself: is it alive, who am I, what is wrong with it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from fastapi import APIRouter, Response
from pydantic import BaseModel

from control_plane.core import Core
from control_plane.operations.access import roles
from control_plane.operations.doctor import server_checks
from control_plane.web.access import CallerDep, CoreDep
from control_plane.web.openapi import errors
from shared.errors import FleetError
from shared.terminal.command_line import version
from shared.terminal.doctor import document

open_router = APIRouter(tags=["server"])
router = APIRouter(tags=["server"])


class Health(BaseModel):
    """Whether the server can do its work; open to everybody, so it says no more than that."""

    status: str
    """`ok`; `degraded` without a broker: orders are taken and wait; `failing` without a database."""
    version: str
    database: bool
    broker: bool
    time: datetime


class Identity(BaseModel):
    """The caller as the server sees it."""

    organization: str
    user: str
    role: str


@open_router.get("/health", summary="Is the server alive?", responses={503: {"model": Health}})
def health(core: CoreDep, response: Response) -> Health:
    """200 while orders can be taken; 503 without a database."""
    database, broker = _database_answers(core), _broker_answers(core)
    response.status_code = 200 if database else 503
    status = "ok" if database and broker else "degraded" if database else "failing"
    return Health(status=status, version=version(), database=database, broker=broker, time=core.clock.now())


@router.get("/whoami", summary="The caller's organization, name and role", responses=errors(401))
def whoami(caller: CallerDep) -> Identity:
    return Identity(organization=caller.organization, user=caller.user, role=caller.role)


@router.get(
    "/doctor",
    summary="What the server finds of itself",
    response_model=list[dict[str, Any]],
    responses=errors(401, 403),
)
def doctor(core: CoreDep, caller: CallerDep) -> Any:
    """Each check has a code, a state (OK, WARN, FAIL), what was examined and found, and the one fix."""
    roles.require(caller, "operator")
    return document(server_checks(core, caller.organization_id))["checks"]


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
