"""`/mcp`: the MCP server over streamable HTTP, without sessions, behind the same gate as all other HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from control_plane.core import Caller, Core
from control_plane.mcp_server.server import mcp_server
from shared.errors import Forbidden, Unauthenticated

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
"""Allowed origins besides ours: an inspector that runs on this machine."""


class McpEndpoint:
    """An ASGI application that answers each message separately: it keeps no state, so any process may answer.

    MCP 2026-07-28 has no sessions; a client of an older revision does its handshake, and also gets none.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._manager: StreamableHTTPSessionManager | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The lifetime of the server; a manager can be run only once."""
        self._manager = StreamableHTTPSessionManager(mcp_server(self._core), json_response=True, stateless=True)
        async with self._manager.run():
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        refuse_other_sites(headers, self._core.settings.url)
        _require_token(scope)
        if scope["method"] != "POST":
            raise HTTPException(405, headers={"Allow": "POST"})
        assert self._manager is not None, "the application's lifespan has not begun"
        await self._manager.handle_request(scope, receive, send)


def refuse_other_sites(headers: Headers, public_url: str) -> None:
    """Raise Forbidden for a request by a page of another site, even with a token.

    That it was sent to a name of ours is checked for all addresses, in `control_plane.web.host_names`.
    """
    origin = headers.get("origin")
    if origin is not None and _hostname(origin) not in {*LOOPBACK, _hostname(public_url)}:
        raise Forbidden(
            f"the request was sent by a page of another site, {origin[:100]!r}",
            code="E-OTHER-SITE",
            next="use an MCP client",
        )


def _hostname(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _require_token(scope: Scope) -> None:
    """Raise if the caller uses a browser session, which is for pages, or is a drone."""
    identity: Any = scope["state"]["identity"]
    if not isinstance(identity, Caller):
        raise Forbidden("a drone's token cannot be used here: an API token is required", code="E-TOKEN-KIND")
    if identity.login_session_id is not None:
        raise Unauthenticated(
            "an API token is required",
            code="E-TOKEN-MISSING",
            why="a browser session is only valid for pages",
            next="fleet api-token add --role operator    then send it as: Authorization: Bearer fa_...",
        )
