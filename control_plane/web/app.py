"""Assembles the web application."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
from fastapi import FastAPI
from starlette.routing import Route

from control_plane.core import Core
from control_plane.operations.access.last_uses import LastUses
from control_plane.operations.audit.refusal_tally import RefusalTally
from control_plane.telemetry.metrics.scraping import Scrapes
from control_plane.web import code_host_requests, monitoring, openapi, problems
from control_plane.web.access import Gate
from control_plane.web.api import api_routes
from control_plane.web.assets import STATIC, VersionedFiles
from control_plane.web.audited_requests import AuditedRequests, flush_regularly
from control_plane.web.browser_defenses import BrowserKey, OwnNames, SecurityHeaders
from control_plane.web.flower_proxy import FlowerProxy
from control_plane.web.hub import Hub
from control_plane.web.live import routes as live_routes
from control_plane.web.live.routes import PageStreams
from control_plane.web.mcp_server.about import PATH as MCP
from control_plane.web.mcp_server.endpoint import McpEndpoint
from control_plane.web.middleware import CompressedPages, WholeBody
from control_plane.web.pages import page_routes
from control_plane.web.stream import Live, Pace
from control_plane.web.throttle import Throttle
from shared.terminal.command_line import version

PROVIDER_CALLS = 10
"""How many log-ins may wait for the identity provider at once, in threads of their own: one that hangs stops no other
request."""


def create_app(core: Core, pace: Pace | None = None) -> FastAPI:
    """The HTTP interface and the pages over `core`; its live hub starts and stops with the server."""
    app = FastAPI(
        title="Dronefleet",
        version=version(),
        summary="Submit prompts as work orders to a fleet of coding-agent drones; get branches and patches back.",
        openapi_tags=openapi.TAGS,
        # Both pages would load scripts from a third party's server.
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan,
    )
    app.state.core = core
    app.state.live = Live(Hub(core), pace or Pace())
    app.state.page_streams = PageStreams(core, app.state.live)
    app.state.throttle = Throttle()
    app.state.tally = RefusalTally()
    app.state.last_uses = LastUses()
    app.state.scrapes = Scrapes(core)
    app.state.provider_calls = anyio.CapacityLimiter(PROVIDER_CALLS)
    problems.install(app)
    openapi.install(app)
    app.state.mcp = McpEndpoint(core)
    app.router.routes += [
        *api_routes(),
        *code_host_requests.router.routes,
        *monitoring.router.routes,
        *live_routes.router.routes,
        *page_routes(),
        Route(MCP, app.state.mcp, include_in_schema=False),
        *FlowerProxy(core).routes(),
    ]
    app.mount("/static", VersionedFiles(directory=STATIC), name="static")
    # The last one added is the outermost: every answer has the headers, every error below becomes a document, and no
    # body is read before the caller is known.
    app.add_middleware(BrowserKey, core=core)
    app.add_middleware(WholeBody)
    app.add_middleware(Gate, core=core)
    app.add_middleware(OwnNames, core=core)
    app.add_middleware(AuditedRequests, core=core, tally=app.state.tally)
    app.add_middleware(problems.Boundary)
    app.add_middleware(CompressedPages)
    app.add_middleware(SecurityHeaders)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    app.state.live.hub.start()
    try:
        async with app.state.mcp.running(), anyio.create_task_group() as group:
            group.start_soon(flush_regularly, app.state.core, app.state.tally, app.state.last_uses)
            yield
            group.cancel_scope.cancel()
    finally:
        app.state.live.hub.stop()
