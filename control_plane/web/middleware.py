"""Layers around the application for bytes and headers: size and form of bodies, and what browsers may do."""

from __future__ import annotations

import json
import re
from collections.abc import MutableMapping
from typing import Any

import anyio
from starlette.datastructures import Headers
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from control_plane.contract.validation.checks import is_storable
from shared.errors import Invalid, TooLarge

MAX_BODY = 2 * 1024 * 1024
MAX_HOOK = 1024 * 1024
BODY_SECONDS = 60
STREAMED = re.compile(r"PUT /api/v1/runs/[^/]+/blobs/[^/]+|POST /api/v1/organizations/import")
"""Their handlers write the body to disk as it arrives, and enforce their own limits."""


class CompressedPages:
    """Compresses pages and static files; the API's answers and streams pass as they are."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._compressing = GZipMiddleware(app, minimum_size=1000, compresslevel=6)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_page = scope["type"] == "http" and not scope["path"].startswith(("/api/", "/live", "/flower", "/mcp"))
        await (self._compressing if is_page else self._app)(scope, receive, send)


class WholeBody:
    """Reads the body before the application sees the request, within a minute: at most 2 MB, 1 MB from a code host.

    The framework would answer 400 to any exception while it reads; here a body that is too large gets a 413 that says
    so.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refuse_nul(scope)
        headers = Headers(scope=scope)
        if "content-length" not in headers and "transfer-encoding" not in headers:
            await self._app(scope, receive, send)
            return
        if STREAMED.fullmatch(f"{scope['method']} {scope['path']}"):
            await self._app(scope, receive, send)
            return
        hook = scope["path"].startswith("/hooks/")
        body = await _read(headers, receive, MAX_HOOK if hook else MAX_BODY)
        # A code host has signed what people wrote, including a NUL: characters that are not text are removed later.
        if not hook:
            refuse_no_text(body)
        await self._app(scope, replay(body, receive), send)


def refuse_nul(scope: MutableMapping[str, Any]) -> None:
    """Raise Invalid for an address with a NUL in it: no name contains one, and PostgreSQL would refuse the query."""
    if "\0" in scope["path"] or b"%00" in scope["query_string"]:
        raise Invalid("the address contains a NUL character", code="E-REQUEST")


def refuse_no_text(body: bytes) -> None:
    """Raise Invalid for JSON with a NUL or an unpaired surrogate: nothing behind this layer can store either."""
    if not _SPELT.search(body):
        return
    try:
        waiting = [json.loads(body)]
    except (ValueError, RecursionError):
        return  # not JSON: its reader reports that
    while waiting:
        part = waiting.pop()
        if isinstance(part, str) and not is_storable(part):
            raise Invalid("a text in the request contains a NUL character or an unpaired surrogate", code="E-TEXT")
        if isinstance(part, dict):
            waiting += [*part.keys(), *part.values()]
        elif isinstance(part, list):
            waiting += part


_SPELT = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")
"""The JSON escapes of such a text; a harmless text may also contain them, for example both halves of a pair."""


async def _read(headers: Headers, receive: Receive, limit: int) -> bytes:
    declared = headers.get("content-length", "0")
    if not declared.isdigit() or int(declared) > limit:
        raise _too_large(limit)
    body = bytearray()
    with anyio.move_on_after(BODY_SECONDS):
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Invalid("the request ended before its body was complete", code="E-BODY-CUT")
            body += message.get("body", b"")
            if len(body) > limit:
                raise _too_large(limit)
            if not message.get("more_body"):
                return bytes(body)
    raise Invalid(
        f"the request's body did not arrive within {BODY_SECONDS} s", code="E-BODY-SLOW", next="send it again"
    )


def replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that returns the body once, and then the server's messages: that the client disconnected."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _too_large(limit: int) -> TooLarge:
    return TooLarge(
        f"the request's body is larger than {limit // (1024 * 1024)} MB",
        code="E-BODY-SIZE",
        next="put long texts in a file of the repository and refer to that file in the prompt",
    )
