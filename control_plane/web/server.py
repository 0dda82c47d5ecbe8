"""The HTTP server around the application."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from control_plane.core import Core
from control_plane.core.certificates import ServerCertificate
from control_plane.web.app import create_app
from control_plane.web.stream import Pace

GRACE_S = 10
"""How long running requests may take after the server was asked to stop."""


TLS_CLOSE_S = 1
"""How long a client has to confirm the end of its TLS connection when the server stops."""
IDLE_S = 75
"""How long a connection stays open after an answer: longer than clients (httpx: 5 s) and proxies (nginx: 60 s) keep an
idle one, because a request that meets the closing of its connection is lost."""
RENEW_S = 1
"""How often the files of the certificate are checked for changes."""


class BoundedHeadProtocol(H11Protocol):
    """uvicorn's HTTP, but a connection is closed if its next request has not begun within `seconds`.

    uvicorn itself only limits how long a connection is silent after an answer: one that sends nothing at all, or an
    endless head, would stay open. A request has begun once its head is complete; `WholeBody` bounds the body.
    """

    seconds: float = 10
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        """Close an idle connection now, also over TLS, where a client that is silent would be waited for 30 s."""
        super().shutdown()
        if self._awaits_request:
            self.loop.call_later(TLS_CLOSE_S, self.transport.abort)

    @property
    def _awaits_request(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _watch(self) -> None:
        if not self._awaits_request:
            self._forget()
        elif self._deadline is None:
            # Not renewed by further bytes: a head that arrives byte by byte has no more time than another.
            self._deadline = self.loop.call_later(self.seconds, self._close_if_late)

    def _forget(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _close_if_late(self) -> None:
        self._deadline = None
        if self._awaits_request:
            self.timeout_keep_alive_handler()


class ApiServer(uvicorn.Server):
    """uvicorn, but when asked to stop it ends the live streams first: it would wait for them forever."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more connections, end the streams, let requests finish, then stop."""
        self.config.app.state.live.hub.close_streams()  # type: ignore[union-attr]
        await super().shutdown(sockets)


def api_server(core: Core, *, host: str, port: int, pace: Pace | None = None) -> ApiServer:
    """A server for `core`; call `.run()`, in any thread. `.should_exit = True` stops it.

    With FLEET_TLS_CERT_FILE it serves over TLS only. Raises Precondition if the certificate cannot be used.
    """
    files = core.settings.tls_files
    config = uvicorn.Config(
        create_app(core, pace),
        host=host,
        port=port,
        http=BoundedHeadProtocol,
        proxy_headers=bool(core.settings.trusted_proxies),
        forwarded_allow_ips=core.settings.trusted_proxies,
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
        timeout_keep_alive=IDLE_S,
        timeout_notify=RENEW_S,
        **(_with_tls(ServerCertificate(*files)) if files else {}),
    )
    return ApiServer(config)


def _with_tls(certificate: ServerCertificate) -> dict[str, Any]:
    async def renew() -> None:
        certificate.renew()

    return {"ssl_context_factory": lambda *_: certificate.context, "callback_notify": renew}
