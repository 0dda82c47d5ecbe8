"""Talks with an MCP server at an HTTP address (streamable HTTP), with bounds on time and size."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client

from drone.mcp_servers.config import ServerConfig
from drone.mcp_servers.stdio import GRACE, LARGEST_MESSAGE
from drone.processes.receipt import Ended
from shared.loopback import is_loopback

_SLACK = 10.0
"""Seconds on top of a call's own time limit, so that it is that one which ends it."""


class HttpServer:
    """The address of a server. Redirects are followed within its origin alone: that is where the headers belong."""

    def __init__(self, config: ServerConfig) -> None:
        self._config = config
        self.counts = Ended()
        """Nothing of it runs here."""
        self.ours = False
        self.note = ""
        """What the last answer's status was, where it was no success."""

    @contextlib.asynccontextmanager
    async def transport(
        self,
    ) -> AsyncIterator[tuple[Any, Any]]:
        """Give the SDK's streams of its messages, to read and to write; at the end the session is closed."""
        config, url = self._config, str(self._config.url)
        async with (
            httpx2.AsyncClient(
                headers={**config.headers, "Accept-Encoding": "identity"},
                timeout=httpx2.Timeout(config.start_timeout, read=config.timeout + _SLACK),
                # Proxies as the environment says, but never for this very machine.
                trust_env=not is_loopback(url),
                event_hooks={"request": [self._before], "response": [self._after]},
            ) as client,
            streamable_http_client(url, http_client=client, max_sse_event_size=LARGEST_MESSAGE) as streams,
        ):
            yield streams

    async def _before(self, request: httpx2.Request) -> None:
        if request.method == "DELETE":  # the farewell: nobody waits long for its answer
            request.extensions["timeout"] = httpx2.Timeout(GRACE).as_dict()

    async def _after(self, response: httpx2.Response) -> None:
        self.note = f"HTTP {response.status_code}" if response.status_code >= 400 else ""
        if response.headers.get("content-encoding", "identity") != "identity":
            raise httpx2.StreamError("it sent a compressed answer, which nobody had asked for")
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            # Of an event stream each event is bounded.
            response.stream = _Bounded(response.stream)


class _Bounded(httpx2.AsyncByteStream):
    """The body of an answer, up to the largest message."""

    def __init__(self, stream: object) -> None:
        if not isinstance(stream, httpx2.AsyncByteStream):
            raise TypeError("an asynchronous answer has an asynchronous body")
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = LARGEST_MESSAGE
        async for chunk in self._stream:
            left -= len(chunk)
            if left < 0:
                # Of this kind, since the SDK makes it the answer to this one call, and goes on.
                raise httpx2.StreamError(f"it is longer than {LARGEST_MESSAGE:,} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
