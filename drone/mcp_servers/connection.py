"""One server during a run: started, called, and restarted after it ended."""

from __future__ import annotations

import asyncio
from typing import Any

from mcp import Client
from mcp_types import CallToolRequest, CallToolRequestParams, CallToolResult, PaginatedRequestParams, Tool

from drone.mcp_servers.config import LONGEST_START, ServerConfig
from drone.mcp_servers.failures import ServerFailed
from drone.mcp_servers.listing import MOST_TOOLS
from drone.mcp_servers.start import MakeServer, Start, sentence
from drone.processes.receipt import Ended

_MOST_PAGES = 20


class Connection:
    """Belongs to the loop's thread: every method is called there."""

    def __init__(self, config: ServerConfig, make_server: MakeServer) -> None:
        self.config = config
        self._make_server = make_server
        self._start: Start | None = None
        self._restarting = asyncio.Lock()

    async def open(self) -> list[Tool]:
        """Start the server and return its tools, at most one more than `MOST_TOOLS`. Raises ServerFailed."""
        await self.close()
        try:
            start = self._start = Start(self._make_server)
        except (OSError, ValueError) as error:
            raise ServerFailed(sentence(error)) from error
        try:
            async with asyncio.timeout(self.config.start_timeout):
                return await _listed(await start.client())
        except TimeoutError:
            why = f"did not start within {self.config.start_timeout:g} s (`start_timeout`, at most {LONGEST_START:g})"
        except Exception as error:  # noqa: BLE001 - foreign code: after any error, the server is unusable
            why = await start.why(error)
        # Do not wait for the end: the run and the other servers need the time.
        start.end()
        raise ServerFailed(why)

    async def call(self, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        """Call a tool of the server; if the server has ended, it is restarted first, once. Raises ServerFailed."""
        start = await self._living()
        try:
            # Not `Client.call_tool`: it checks the answer against the server's schema, whose regular expressions can
            # block this thread forever.
            request = CallToolRequest(params=CallToolRequestParams(name=tool, arguments=arguments))
            async with asyncio.timeout(self.config.timeout):
                return await (await start.client()).session.send_request(request, CallToolResult)
        except TimeoutError:
            start.late()
            why = f"did not answer within {self.config.timeout:g} s"
        except Exception as error:  # noqa: BLE001 - foreign code: any error is this call's answer
            why = await start.why(error)
        raise ServerFailed(f"{why}{start.outlook}")

    async def close(self) -> Ended:
        """End the server, and return the processes ended by this."""
        start, self._start = self._start, None
        return Ended() if start is None else await start.closed()

    async def _living(self) -> Start:
        # Of several calls that find it ended, one restarts it: another start would end that of the first.
        async with self._restarting:
            if self._start is not None and self._start.alive:
                return self._start
            try:
                await self.open()
            except ServerFailed as error:
                raise ServerFailed(f"has ended, and restarting it failed: it {error}") from None
            if self._start is None:
                raise ServerFailed("is shutting down")
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
