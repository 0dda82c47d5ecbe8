"""Flower at `/flower`: a streaming proxy to its process, for admins who may act in every organization.

Flower listens on loopback and accepts one password, which only the control plane has. No cookie and no token passes in
either direction, and every change is in the audit log before Flower receives it.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from hashlib import sha256
from http import HTTPStatus

import anyio
import httpx
from anyio import to_thread
from starlette.datastructures import Headers
from starlette.responses import RedirectResponse, StreamingResponse
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from control_plane.core import Caller, Core
from control_plane.core.audit_entries import entry_of
from control_plane.core.flower_address import FLOWER_PATH, FLOWER_USER
from control_plane.db.audit_chain import AuditEntry, append
from control_plane.operations.access.roles import require, require_everywhere
from control_plane.web.access import SAFE
from shared.errors import Forbidden, NotFound, Unreachable

ACTION = "change_in_flower"
READ_BY_POST = f"{FLOWER_PATH}/tasks/datatable"
"""Flower's list of tasks, whose filters it also accepts in a form."""
_INLINE = b"\nvar autorefresh = 1;\n"
POLICY = "; ".join(
    (
        "default-src 'none'",
        # The list of workers has one inline script, which is allowed by its hash. No other may run: a script of this
        # origin can read the browser's key.
        f"script-src 'self' 'sha256-{b64encode(sha256(_INLINE).digest()).decode()}'",
        # Its tables set widths in attributes, and its style sheets contain icons.
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
_SENT = ("accept", "accept-language", "content-type", "if-modified-since", "if-none-match", "x-requested-with")
_RETURNED = ("content-length", "content-type", "etag", "last-modified")
_TIMEOUT = httpx.Timeout(30.0, connect=3.0)
"""Flower asks the workers before it answers some requests, and waits for them for two seconds."""
_Exchange = tuple[Scope, Receive, Send]


class FlowerProxy:
    """The ASGI application for `/flower` and everything below it."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def routes(self) -> list[BaseRoute]:
        return [
            Route(FLOWER_PATH, self, include_in_schema=False),
            Route(FLOWER_PATH + "/{path:path}", self, include_in_schema=False),
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        caller = admitted(scope)
        upstream = self._core.settings.flower_upstream
        if not upstream:
            raise _not_here(self._core.settings.flower_url)
        if scope["path"] == FLOWER_PATH:
            await RedirectResponse(f"{FLOWER_PATH}/", 303)(scope, receive, send)
            return
        if scope["method"] not in SAFE and scope["path"] != READ_BY_POST:
            entry = entry_of(self._core, caller, ACTION, f"{scope['method']} {scope['path']}"[:200])
            await self._change(upstream, entry, (scope, receive, send))
        else:
            await self._forward(upstream, (scope, receive, send))

    async def _change(self, upstream: str, entry: AuditEntry, exchange: _Exchange) -> None:
        """Forward a request that may change something, between two records: that it began, and how it ended."""
        await to_thread.run_sync(_record, self._core, replace(entry, outcome="began"))
        ended = replace(entry, outcome="failed", code="E-FLOWER-REFUSED")
        try:
            if await self._forward(upstream, exchange) < HTTPStatus.BAD_REQUEST:
                ended = entry
        finally:
            # Even if the client no longer waits for its answer.
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(_record, self._core, ended)

    async def _forward(self, upstream: str, exchange: _Exchange) -> int:
        """Pass the request on and the answer back. Returns the status of the answer."""
        scope, receive, send = exchange
        async with httpx.AsyncClient(timeout=_TIMEOUT, trust_env=False) as client:
            answer = await _answer_of(client, self._request(upstream, scope, await _body(receive)))
            try:
                await _response(answer)(scope, receive, send)
            finally:
                await answer.aclose()
            return answer.status_code

    def _request(self, upstream: str, scope: Scope, body: bytes) -> httpx.Request:
        query = scope["query_string"]
        address = scope.get("raw_path") or scope["path"].encode()
        url = httpx.URL(upstream).copy_with(raw_path=address + (b"?" + query if query else b""))
        given = Headers(scope=scope)
        headers = {name: given[name] for name in _SENT if name in given}
        headers["accept-encoding"] = "identity"
        request = httpx.Request(scope["method"], url, headers=headers, content=body)
        auth = httpx.BasicAuth(FLOWER_USER, self._core.settings.flower_password)
        return next(auth.auth_flow(request))


def admitted(scope: Scope) -> Caller:
    """The caller, if Flower is for them: it shows the drones and orders of all organizations. Raises Forbidden."""
    identity = scope["state"]["identity"]
    if not isinstance(identity, Caller):
        raise Forbidden("a drone's token cannot be used here: an API token is required", code="E-TOKEN-KIND")
    require(identity, "admin")
    require_everywhere(identity)
    return identity


def _not_here(elsewhere: str | None) -> NotFound:
    if elsewhere:
        return NotFound("Flower runs at another address", code="E-FLOWER-OFF", next=f"open {elsewhere}")
    return NotFound(
        "Flower does not run with this control plane",
        code="E-FLOWER-OFF",
        why="FLEET_FLOWER_UPSTREAM is not set, or the fleet was started with --no-flower",
        next="fleet up    or set FLEET_FLOWER_UPSTREAM and start: fleet flower",
    )


def _record(core: Core, entry: AuditEntry) -> None:
    """Raises FleetFault if the database is unavailable: what cannot be recorded is not sent to Flower."""
    with core.database.write() as db:
        append(db, entry)


async def _body(receive: Receive) -> bytes:
    """The body, whose size an outer layer has limited."""
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            return bytes(body)


async def _answer_of(client: httpx.AsyncClient, request: httpx.Request) -> httpx.Response:
    try:
        return await client.send(request, stream=True)
    except httpx.TransportError as error:
        raise Unreachable(
            "Flower is unavailable",
            code="E-FLOWER-UNAVAILABLE",
            why=str(error) or type(error).__name__,
            next="fleet doctor    and look into its log: fleet logs flower",
        ) from error


def _response(answer: httpx.Response) -> StreamingResponse:
    headers = {name: answer.headers[name] for name in _RETURNED if name in answer.headers}
    headers["Content-Security-Policy"] = POLICY
    if own := _own_address(answer.headers):
        headers["Location"] = own
    return StreamingResponse(_chunks(answer), answer.status_code, headers)


async def _chunks(answer: httpx.Response) -> AsyncIterator[bytes]:
    async for chunk in answer.aiter_raw():
        yield chunk


def _own_address(headers: Mapping[str, str]) -> str:
    """Where Flower redirects to, if that is one of its own pages."""
    location = headers.get("location", "")
    return location if location.startswith(f"{FLOWER_PATH}/") else ""
