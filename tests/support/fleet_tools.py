"""The official MCP client on the fleet's own server, over HTTP and over stdio, without async in the tests."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import httpx2
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, Tool

from tests.support.warm_processes import FLEET

Doc = dict[str, Any]
LEGACY = "legacy"
"""The handshake of MCP 2025-11-25."""
MODERN = "2026-07-28"


@dataclass
class Connected:
    """A connected client."""

    client: Client
    portal: BlockingPortal

    @property
    def version(self) -> str:
        return str(self.client.protocol_version)

    def list(self) -> list[Tool]:
        """The tools, in the order of the server."""
        return self.portal.call(self.client.list_tools).tools

    def call(self, tool: str, **arguments: Any) -> CallToolResult:
        """The unmodified result, error or not."""
        return self.portal.call(partial(self.client.call_tool, tool, arguments))

    def get(self, tool: str, **arguments: Any) -> Any:
        """The document, or the list of them; the call must not be refused."""
        result = self.call(tool, **arguments)
        assert not result.is_error, result.structured_content
        return answer(result)

    def refused(self, tool: str, **arguments: Any) -> Doc:
        """The error; the call must be refused."""
        result = self.call(tool, **arguments)
        assert result.is_error, result.structured_content
        assert isinstance(result.structured_content, dict)
        return result.structured_content

    def at_once(self, tool: str, calls: list[Doc]) -> list[CallToolResult]:
        """Call the same tool with each of these arguments, all at the same time."""

        async def all_of_them() -> list[CallToolResult]:
            results: dict[int, CallToolResult] = {}

            async def one(number: int) -> None:
                results[number] = await self.client.call_tool(tool, calls[number])

            async with anyio.create_task_group() as group:
                for number in range(len(calls)):
                    group.start_soon(one, number)
            return [results[number] for number in range(len(calls))]

        return self.portal.call(all_of_them)

    def leave_soon(self, tool: str, seconds: float, **arguments: Any) -> bool:
        """Call the tool, and cancel the call after `seconds`; True if it was still running then."""

        async def leave() -> bool:
            with anyio.move_on_after(seconds) as scope:
                await self.client.call_tool(tool, arguments)
            return scope.cancelled_caught

        return self.portal.call(leave)


def answer(result: CallToolResult) -> Any:
    """The content of a result: the document, or the list under `result`."""
    document = result.structured_content
    return document["result"] if isinstance(document, dict) and set(document) == {"result"} else document


@contextmanager
def over_http(url: str, token: str, *, mode: str = "auto", org: str | None = None) -> Iterator[Connected]:
    """Connected to `/mcp` of the server at `url`."""

    @asynccontextmanager
    async def transport() -> Any:
        headers = {"Authorization": f"Bearer {token}"}
        params = {"org": org} if org else {}
        async with (
            httpx2.AsyncClient(headers=headers, params=params, trust_env=False, timeout=60) as http,
            streamable_http_client(f"{url}/mcp", http_client=http) as streams,
        ):
            yield streams

    with _connected(transport(), mode) as client:
        yield client


@contextmanager
def over_stdio(environment: Mapping[str, str], *options: str, mode: str = "auto") -> Iterator[Connected]:
    """Connected to its own `fleet mcp` process."""
    command, *arguments = (*FLEET, "mcp", *options)
    with _connected(StdioServerParameters(command=command, args=arguments, env=dict(environment)), mode) as client:
        yield client


@contextmanager
def _connected(server: Any, mode: str) -> Iterator[Connected]:
    with start_blocking_portal() as portal:
        connection = portal.wrap_async_context_manager(Client(server, mode=mode, read_timeout_seconds=60))
        client = connection.__enter__()
        try:
            yield Connected(client, portal)
        finally:
            # Without the test's exception, which would be raised again in nested exception groups.
            connection.__exit__(None, None, None)


WAYS = ("http", "stdio")


@contextmanager
def reached(way: str, url: str, token: str, home: Path, **options: Any) -> Iterator[Connected]:
    """Connected to the server at `url`, over HTTP or through a `fleet mcp` configured for it."""
    if way == "http":
        with over_http(url, token, **options) as client:
            yield client
        return
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("FLEET_")}
    environment = {**inherited, "FLEET_URL": url, "FLEET_API_TOKEN": token, "FLEET_HOME": str(home)}
    with over_stdio(environment, **options) as client:
        yield client
