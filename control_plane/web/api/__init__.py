"""The HTTP interface: a router per resource, each a thin layer over `control_plane.operations`."""

from __future__ import annotations

from starlette.routing import BaseRoute

from control_plane.web import monitoring
from control_plane.web.api import derived_routes, drones, files, orders

ROUTERS = (
    monitoring.open_router,
    drones.open_router,
    derived_routes.router("server"),
    derived_routes.router("drones"),
    drones.registrations_router,
    derived_routes.router("users"),
    derived_routes.router("tokens"),
    derived_routes.router("attention"),
    derived_routes.router("providers"),
    derived_routes.router("projects"),
    derived_routes.router("budgets"),
    derived_routes.router("prices"),
    derived_routes.router("costs"),
    derived_routes.router("limits"),
    derived_routes.router("modes"),
    derived_routes.router("orders"),
    derived_routes.router("graphs"),
    derived_routes.router("races"),
    derived_routes.router("batches"),
    derived_routes.router("steering"),
    derived_routes.router("plans"),
    derived_routes.router("reviews"),
    derived_routes.router("drafts"),
    derived_routes.router("inbox"),
    orders.router,
    derived_routes.router("sessions"),
    files.sessions_router,
    drones.runs_router,
    files.organizations_router,
    derived_routes.router("organizations"),
    derived_routes.router("agents"),
    derived_routes.router("tasks"),
    derived_routes.router("task_runs"),
    derived_routes.router("memory"),
    derived_routes.router("pools"),
    derived_routes.router("profiles"),
    derived_routes.router("schedules"),
    derived_routes.router("triggers"),
    derived_routes.router("code_hosts"),
    derived_routes.router("webhooks"),
    derived_routes.router("pull_requests"),
    derived_routes.router("audit"),
    files.audit_router,
    derived_routes.router("retention"),
)


def api_routes() -> list[BaseRoute]:
    """All of /api/v1."""
    return [route for router in ROUTERS for route in router.routes]
