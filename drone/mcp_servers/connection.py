"""One server over the life of a run: started, asked, and started anew after it ended."""

from __future__ import annotations

import asyncio
from typing import Any

from mcp import Client
from mcp_types import CallToolRequest, CallToolRequestParams, CallToolResult, PaginatedRequestParams, Tool

from drone.mcp_servers.config import ServerConfig
from drone.mcp_servers.failures import ServerFailed
from drone.mcp_servers.listing import MOST_TOOLS
from drone.mcp_servers.start import MakeServer, Start, sentence
from drone.processes.receipt import Ended

_MOST_PAGES = 20


class Connection:
    """Lives in the loop's thread alone: every method is called there."""

    def __init__(self, config: ServerConfig, make_server: MakeServer) -> None:
        self.config = config
        self._make_server = make_server
        self._start: Start | None = None

    async def open(self) -> list[Tool]:
        """Start the server and give its tools, at most one more than `MOST_TOOLS`. Raises ServerFailed."""
        await self.close()
        try:
            start = self._start = Start(self._make_server)
        except (OSError, ValueError) as error:
            raise ServerFailed(sentence(error)) from error
        try:
            async with asyncio.timeout(self.config.start_timeout):
                return await _listed(await start.client())
        except TimeoutError:
            why = f"did not start within {self.config.start_timeout:g} s"
        except Exception as error:  # noqa: BLE001 - foreign code: whatever it is, the server cannot be used
            why = await start.why(error)
        # Not waited for: that would take time that the run and the other servers need.
        start.end()
        raise ServerFailed(why)

    async def call(self, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        """Ask the server to do something; one that has ended is started anew first, once. Raises ServerFailed."""
        start = await self._living()
        try:
            # Not `Client.call_tool`: that checks the answer against the server's own schema, with the server's own
            # regular expressions, and one of those can hold up this thread for good.
            request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=arguments))
            async with asyncio.timeout(self.config.timeout):
                return await (await start.client()).session.send_request(request, CallToolResult)
        except TimeoutError:
            start.late()
            why = f"did not answer within {self.config.timeout:g} s"
        except Exception as error:  # noqa: BLE001 - foreign code: whatever it is, it is this call's answer
            why = await start.why(error)
        raise ServerFailed(f"{why}{start.outlook}")

    async def close(self) -> Ended:
        """End the server, and say what was ended by that."""
        start, self._start = self._start, None
        return Ended() if start is None else await start.closed()

    async def _living(self) -> Start:
        if self._start is not None and self._start.alive:
            return self._start
        try:
            await self.open()
        except ServerFailed as error:
            raise ServerFailed(f"has ended, and starting it again failed: it {error}") from None
        if self._start is None:
            raise ServerFailed("is being ended")
        return self._start


async def _listed(client: Client) -> list[Tool]:
    found: list[Tool] = []
    cursor = None
    for _ in range(_MOST_PAGES):
        page = await client.session.list_tools(params=PaginatedRequestParams(cursor=cursor))
        found += page.tools
        cursor = page.next_cursor
        if cursor is None or len(found) > MOST_TOOLS:
            break
    return found[: MOST_TOOLS + 1]
