"""The HTTP server around the application."""

from __future__ import annotations

import socket

import uvicorn

from control_plane.core import Core
from control_plane.web.app import create_app
from control_plane.web.stream import Pace

GRACE_S = 10
"""How long running requests may take after the server was asked to stop."""


class ApiServer(uvicorn.Server):
    """uvicorn, but when asked to stop it ends the live streams first: it would wait for them forever."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more connections, end the streams, let requests finish, then stop."""
        self.config.app.state.live.hub.close_streams()  # type: ignore[union-attr]
        await super().shutdown(sockets)


def api_server(core: Core, *, host: str, port: int, pace: Pace | None = None) -> ApiServer:
    """A server for `core`; call `.run()`, in any thread. `.should_exit = True` stops it."""
    config = uvicorn.Config(
        create_app(core, pace),
        host=host,
        port=port,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
    )
    return ApiServer(config)
