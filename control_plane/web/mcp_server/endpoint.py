"""`/mcp`: the MCP server over streamable HTTP, without sessions, behind the same gate as all other HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup, TaskStatus
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from control_plane.core import Caller, Core
from shared.errors import Forbidden, Unauthenticated

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
"""Allowed origins besides ours: an inspector that runs on this machine."""


class McpEndpoint:
    """An ASGI application that answers each message separately: it keeps no state, so any process may answer.

    MCP 2026-07-28 has no sessions; a client of an older revision does its handshake, and also gets none.
    """

    def __init__(self, core: Core) -> None:
        self._core = core
        self._tasks: TaskGroup | None = None
        self._manager: StreamableHTTPSessionManager | None = None
        self._starting = anyio.Lock()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """The lifetime of the server, which starts with the first message."""
        async with anyio.create_task_group() as tasks:
            self._tasks = tasks
            yield
            tasks.cancel_scope.cancel()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        refuse_other_sites(headers, self._core.settings.url)
        _require_token(scope)
        if scope["method"] != "POST":
            raise HTTPException(405, headers={"Allow": "POST"})
        manager = await self._started()
        await manager.handle_request(scope, receive, send)

    async def _started(self) -> StreamableHTTPSessionManager:
        assert self._tasks is not None, "the application's lifespan has not begun"
        async with self._starting:
            if self._manager is None:
                # The SDK and the schemas of all tools take 25 MB and a second, which a fleet without MCP does not pay.
                manager = await to_thread.run_sync(_manager_of, self._core)
                await self._tasks.start(_serve, manager)
                self._manager = manager
        return self._manager


def _manager_of(core: Core) -> StreamableHTTPSessionManager:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from control_plane.web.mcp_server.server import mcp_server

    return StreamableHTTPSessionManager(mcp_server(core), json_response=True, stateless=True)


async def _serve(manager: StreamableHTTPSessionManager, *, task_status: TaskStatus[None]) -> None:
    """Run the manager, which must be entered and left in one task, until that is canceled."""
    async with manager.run():
        task_status.started()
        await anyio.sleep_forever()


def refuse_other_sites(headers: Headers, public_url: str) -> None:
    """Raise Forbidden for a request by a page of another site, even with a token.

    That it was sent to a name of ours is checked for all addresses, in `control_plane.web.browser_defenses`.
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
