"""Communicates with an MCP server at an HTTP address (streamable HTTP), with limits on time and size."""

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
"""Seconds added to a call's time limit, so that the call's limit applies first."""


class HttpServer:
    """The address of a server. Redirects are followed only within its origin, because the headers belong there."""

    def __init__(self, config: ServerConfig) -> None:
        self._config = config
        self.counts = Ended()
        """Empty: no process of the server runs here."""
        self.ours = False
        self.note = ""
        """Status of the last answer, if it was an error."""

    @contextlib.asynccontextmanager
    async def transport(
        self,
    ) -> AsyncIterator[tuple[Any, Any]]:
        """Yield the SDK's message streams, to read and to write; at the end the session is closed."""
        config, url = self._config, str(self._config.url)
        async with (
            httpx2.AsyncClient(
                headers={**config.headers, "Accept-Encoding": "identity"},
                timeout=httpx2.Timeout(config.start_timeout, read=config.timeout + _SLACK),
                # Proxies from the environment, but never for loopback addresses.
                trust_env=not is_loopback(url),
                event_hooks={"request": [self._before], "response": [self._after]},
            ) as client,
            streamable_http_client(url, http_client=client, max_sse_event_size=LARGEST_MESSAGE) as streams,
        ):
            yield streams

    async def _before(self, request: httpx2.Request) -> None:
        if request.method == "DELETE":  # closes the session: wait only briefly for the answer
            request.extensions["timeout"] = httpx2.Timeout(GRACE).as_dict()

    async def _after(self, response: httpx2.Response) -> None:
        self.note = f"HTTP {response.status_code}" if response.status_code >= 400 else ""
        if response.headers.get("content-encoding", "identity") != "identity":
            raise httpx2.StreamError("it sent a compressed answer, which was not requested")
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            # In an event stream, each event is already bounded.
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
                # Of this type, because the SDK turns it into the answer to this call and continues.
                raise httpx2.StreamError(f"it is larger than {LARGEST_MESSAGE:,} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
