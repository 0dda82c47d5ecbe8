"""The HTTP interface: a router per resource, each thin over `control_plane.operations`."""

from __future__ import annotations

from fastapi import APIRouter, Depends

from control_plane.web.access import API, documented_bearer
from control_plane.web.api import (
    derived,
    events,
    orders,
    registration,
    runs,
    server,
    sessions,
    trajectories,
    transfer,
)

OPEN_ROUTERS = (server.open_router, registration.open_router)
ROUTERS = (
    derived.router("server"),
    derived.router("drones"),
    registration.router,
    derived.router("tokens"),
    derived.router("providers"),
    derived.router("projects"),
    derived.router("orders"),
    orders.router,
    derived.router("sessions"),
    sessions.router,
    trajectories.router,
    events.router,
    runs.router,
    transfer.router,
    derived.router("organizations"),
    derived.router("agents"),
    derived.router("tasks"),
    derived.router("task_runs"),
    derived.router("schedules"),
    derived.router("triggers"),
    derived.router("webhooks"),
    derived.router("pull_requests"),
)


def api_router() -> APIRouter:
    """All of /api/v1."""
    api = APIRouter(prefix=API)
    for router in OPEN_ROUTERS:
        api.include_router(router)
    for router in ROUTERS:
        api.include_router(router, dependencies=[Depends(documented_bearer)])
    return api
