"""Where each request comes from, for the audit log; and the refusals of requests that reach no operation."""

from __future__ import annotations

from typing import Any

import anyio
from anyio import to_thread
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from control_plane.contract.client.http import USER_AGENT
from control_plane.contract.validation.issued_secrets import DRONE_PREFIX
from control_plane.core import AuthenticatedDrone, Caller, Core
from control_plane.core.audit_entries import drone_entry, entry_of
from control_plane.core.origin import RequestOrigin, coming_from
from control_plane.operations.access.last_uses import LastUses
from control_plane.operations.audit.refusal_tally import ACTION, RefusalTally
from control_plane.operations.auditing import record_refusal
from control_plane.web.access import ANSWERS, API, HOOKS, bearer_of, client_address
from control_plane.web.mcp_server.about import PATH as MCP
from shared.errors import Refused
from shared.terminal import logs
from shared.trace_context import valid_traceparent

log = logs.get(__name__)
FLUSH_SECONDS = 10.0
BODY_CUT = "E-BODY-CUT"
"""The code of a request whose sender left before it was complete, as pages do that are closed."""


class AuditedRequests:
    """Makes the origin of a request known to all that it causes, and records it if it was refused on its way."""

    def __init__(self, app: ASGIApp, core: Core, tally: RefusalTally) -> None:
        self._app = app
        self._core = core
        self._tally = tally

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        origin = RequestOrigin(door_of(scope), client_address(scope), only_counted=self._tally.has_many)
        origin.traceparent = _traceparent(scope)

        async def recorded_first(message: Message) -> None:
            await self._record(scope, origin)
            await send(message)

        with coming_from(origin):
            try:
                await self._app(scope, receive, recorded_first)
            except Refused as error:
                origin.refused_with = error.code
                await self._record(scope, origin)
                raise

    async def _record(self, scope: Scope, origin: RequestOrigin) -> None:
        """Record the refusal, if it is one and not yet recorded: who reads the answer finds it in the log.

        Who left before the request was complete was not refused.
        """
        if origin.refused_with in {"", BODY_CUT} or origin.refusal_recorded:
            return
        origin.refusal_recorded = True
        identity = scope.get("state", {}).get("identity")
        if identity is None:
            self._tally.count(self._core.clock.now(), origin.door, origin.address, origin.refused_with)
            return
        # Even if the client no longer waits for its answer.
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(self._record_known, identity, f"{scope['method']} {scope['path']}", origin)

    def _record_known(self, identity: Any, address: str, origin: RequestOrigin) -> None:
        if isinstance(identity, Caller):
            entry = entry_of(self._core, identity, ACTION, address)
        else:
            assert isinstance(identity, AuthenticatedDrone)
            entry = drone_entry(self._core, identity, ACTION, address)
        record_refusal(self._core, entry, origin.refused_with)


def _traceparent(scope: Scope) -> str:
    """What the header says; empty if it is missing or invalid, and if there are several."""
    headers = Headers(scope=scope).getlist("traceparent")
    return valid_traceparent(headers[0]) if len(headers) == 1 else ""


async def flush_regularly(core: Core, tally: RefusalTally, uses: LastUses) -> None:
    """Write the counts of unknown senders, and the last uses of tokens and sessions, until canceled, then the rest."""
    try:
        while True:
            await anyio.sleep(FLUSH_SECONDS)
            for flush in (tally.flush, uses.flush):
                try:
                    await to_thread.run_sync(flush, core)
                except Exception:
                    # The body of a background loop: it must not end the server.
                    log.exception("refusals or last uses could not be written")
    finally:
        tally.flush(core, everything=True)
        uses.flush(core)


def door_of(scope: Scope) -> str:
    """The door of a request. Programs call the API with a token; what browsers send with a cookie comes from a page."""
    path, headers = scope["path"], Headers(scope=scope)
    bearer = bearer_of(headers)
    if path == MCP:
        return "mcp"
    if path.startswith(HOOKS):
        return "webhook"
    if path.startswith(ANSWERS):
        return "answer link"
    if bearer.startswith(f"{DRONE_PREFIX}_") or path == f"{API}/registrations":
        return "drone"
    if not path.startswith(API) or (not bearer and "cookie" in headers):
        return "page"
    return "cli" if headers.get("user-agent", "").startswith(f"{USER_AGENT}/") else "api"
