"""Where each request comes from, for the audit log of the operations that it calls."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from control_plane.client.http import USER_AGENT
from control_plane.core.origin import RequestOrigin, coming_from
from control_plane.mcp_server.about import PATH as MCP
from control_plane.validation.issued_secrets import DRONE_PREFIX
from control_plane.web.access import API, HOOKS, bearer_of, client_address


class AuditedRequests:
    """Makes the origin of a request known to all that it causes."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with coming_from(RequestOrigin(door_of(scope), client_address(scope))):
            await self._app(scope, receive, send)


def door_of(scope: Scope) -> str:
    """The door of a request. Programs call the API with a token; what browsers send with a cookie comes from a page."""
    path, headers = scope["path"], Headers(scope=scope)
    bearer = bearer_of(headers)
    if path == MCP:
        return "mcp"
    if path.startswith(HOOKS):
        return "webhook"
    if bearer.startswith(f"{DRONE_PREFIX}_") or path == f"{API}/registrations":
        return "drone"
    if not path.startswith(API) or (not bearer and "cookie" in headers):
        return "page"
    return "cli" if headers.get("user-agent", "").startswith(f"{USER_AGENT}/") else "api"
