"""One server during a run: started, called, and restarted after it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import anyio
from mcp import Client, MCPError
from mcp.client import Transport
from mcp_types import (
    CONNECTION_CLOSED,
    PARSE_ERROR,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    Implementation,
    PaginatedRequestParams,
    Tool,
)
from pydantic import ValidationError

from drone.mcp_servers.config import LONGEST_START, ServerConfig
from drone.mcp_servers.listing import MOST_TOOLS
from drone.mcp_servers.results import ServerFailed
from drone.processes.receipt import Ended
from shared.redaction import shortened

_MOST_PAGES = 20
_CLOSE_SECONDS = 10.0
_WHY_SECONDS = 0.5
_SHOWN = 300
_SESSION_GONE = "Session terminated"
"""The SDK's message for a 404 on a session: the server was restarted meanwhile."""


class Connection:
    """Belongs to the loop's thread: every method is called there."""

    def __init__(self, config: ServerConfig, make_server: MakeServer) -> None:
        self.config = config
        self._make_server = make_server
        self._start: _Start | None = None
        self._restarting = asyncio.Lock()

    async def open(self) -> list[Tool]:
        """Start the server and return its tools, at most one more than `MOST_TOOLS`. Raises ServerFailed."""
        await self.close()
        try:
            start = self._start = _Start(self._make_server)
        except (OSError, ValueError) as error:
            raise ServerFailed(_sentence(error)) from error
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

    async def _living(self) -> _Start:
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


class _Server(Protocol):
    """A started server: a process, or a connection to an address."""

    @property
    def counts(self) -> Ended:
        """The processes that existed when it was ended."""
        ...

    @property
    def ours(self) -> bool:
        """Whether it is a process of the run, which starts and ends it."""
        ...

    @property
    def note(self) -> str:
        """Additional information about an error."""
        ...

    def transport(self) -> Transport:
        """Start, and end with the context."""
        ...


MakeServer = Callable[[Callable[[str], None]], _Server]
"""Prepares a start; it must call its argument with the reason when the server can no longer send anything."""


class _Start:
    """Starts immediately. One task holds the SDK's client open: the task that entered its scopes must exit them."""

    def __init__(self, make_server: MakeServer) -> None:
        self._reason = ""
        self._stopping = asyncio.Event()
        self._scope = anyio.CancelScope()
        self._server = make_server(self._ended)
        self._ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._hold())

    @property
    def alive(self) -> bool:
        return not self._stopping.is_set() and not self._task.done()

    @property
    def outlook(self) -> str:
        """What happens next, to append to an error; empty if the server keeps running."""
        if self.alive:
            return ""
        how = "starts it" if self._server.ours else "connects"
        return f"; the next call {how} again, without its previous state"

    async def client(self) -> Client:
        """Return the client as soon as both sides have agreed on a version. Raises the error that prevented it."""
        return await asyncio.shield(self._ready)

    async def why(self, error: Exception) -> str:
        """Describe the error, for a sentence that begins with the server's name."""
        if isinstance(error, MCPError) and error.code == CONNECTION_CLOSED:
            # The transport will know more in a moment.
            await asyncio.wait([self._task], timeout=_WHY_SECONDS)
        if isinstance(error, MCPError) and error.message == _SESSION_GONE:
            self._ended("lost the session: it was restarted")
        return self._reason or self._said(error)

    def late(self) -> None:
        """End a process that does not answer, like a command that takes too long: it must not continue unobserved."""
        if self._server.ours:
            self.end()

    def end(self) -> None:
        """Start ending it, without waiting."""
        self._stopping.set()
        if not self._ready.done():
            self._scope.cancel()

    async def closed(self) -> Ended:
        """End it and wait; a server that had already ended is not counted."""
        alive = self.alive
        self.end()
        await asyncio.wait([self._task], timeout=_CLOSE_SECONDS)
        return self._server.counts if alive else Ended()

    def _ended(self, reason: str) -> None:
        self._reason = self._reason or reason
        self._stopping.set()

    def _said(self, error: Exception) -> str:
        note = self._server.note
        return f"{_sentence(error)}{f' ({note})' if note else ''}"

    async def _hold(self) -> None:
        info = Implementation(name="dronefleet", version="1")
        try:
            with self._scope:
                async with Client(self._server.transport(), cache=None, client_info=info) as client:
                    self._ready.set_result(client)
                    await self._stopping.wait()
        except Exception as error:  # noqa: BLE001 - foreign code; the reason is kept for the next caller
            self._reason = self._reason or self._said(error)
            if not self._ready.done():
                self._ready.set_exception(error)
        finally:
            self._stopping.set()
            self._ready.cancel()


def _sentence(error: BaseException) -> str:
    """Describe an error in a few words that can follow a name."""
    first = next(_leaves(error))
    text = shortened(" ".join(str(first).split()), _SHOWN)
    if isinstance(first, ValidationError):
        return f"sent an answer that is not valid MCP: {text}"
    if isinstance(first, MCPError) and first.code == PARSE_ERROR:
        return f"sent an unreadable answer: {text}"
    if isinstance(first, MCPError):
        return f"answered with an error: {text} (code {first.code})"
    return f"failed: {type(first).__name__}{': ' if text else ''}{text}"


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield error
