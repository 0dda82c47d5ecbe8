"""The HTTP interface: a router per resource, each thin over `control_plane.operations`."""

from __future__ import annotations

from fastapi import APIRouter, Depends

from control_plane.web.access import API, documented_bearer
from control_plane.web.api import (
    drones,
    events,
    orders,
    projects,
    providers,
    registration,
    runs,
    server,
    sessions,
    tokens,
    trajectories,
)

OPEN_ROUTERS = (server.open_router, registration.open_router)
ROUTERS = (
    server.router,
    drones.router,
    registration.router,
    tokens.router,
    providers.router,
    projects.router,
    orders.router,
    sessions.router,
    trajectories.router,
    events.router,
    runs.router,
)


def api_router() -> APIRouter:
    """All of /api/v1."""
    api = APIRouter(prefix=API)
    for router in OPEN_ROUTERS:
        api.include_router(router)
    for router in ROUTERS:
        api.include_router(router, dependencies=[Depends(documented_bearer)])
    return api
