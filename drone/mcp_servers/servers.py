"""The MCP servers of one run: started together, called as tools, ended together."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from drone.agent.protocols import ForeignTool
from drone.agent.values import ToolResult, ToolSpec
from drone.mcp_servers.config import ServerConfig
from drone.mcp_servers.listing import Listed, Names, listed
from drone.mcp_servers.results import ServerFailed, result_of, shown
from drone.mcp_servers.server_log import ServerLog
from drone.sandbox import Sandbox
from drone.sandbox.protocol import Check
from shared.messages import ToolCall

if TYPE_CHECKING:
    from mcp_types import CallToolResult

    from drone.mcp_servers.connection import Connection, MakeServer

_Ask = Callable[[str, dict[str, Any]], "CallToolResult"]
"""Calls a tool by the server's name for it. Raises ServerFailed, and what the run's check raises."""
_T = TypeVar("_T")
_TICK = 0.05
"""Seconds between two calls of `check` during a wait."""
_STOP_SECONDS = 5.0
_CLOSE_SECONDS = 15.0
_MARGIN = 30.0
"""Seconds added to a server's limits, after which the loop is considered unresponsive."""
_LOGGERS = ("mcp", "client", "httpx2")
"""Loggers of the SDK: they would write tracebacks to the terminal for errors reported in one sentence here."""


@dataclass
class McpServers:
    """The result of `connect`. `tools` are in a stable order: by server, then as the server lists them."""

    tools: list[ForeignTool] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """One sentence for each missing server or tool, with the reason."""
    _running: _Running | None = None

    def close(self) -> None:
        """End all servers and count their processes for the receipt of a cancel (`sandbox.tally`). Idempotent."""
        running, self._running = self._running, None
        if running is not None:
            running.close()


def connect(
    configs: Sequence[ServerConfig], *, sandbox: Sandbox, workspace: Path, log_dir: Path, check: Check
) -> McpServers:
    """Start the servers in parallel within 15 s, and return their tools; the caller closes the result.

    A server that cannot be started is added to `problems`. Output of servers on stderr goes to
    `<log_dir>/mcp-server-….log`. `check` is called during waits, here and in calls; its exceptions propagate, here
    after all servers have ended.
    """
    if not configs:
        return McpServers()
    for name in _LOGGERS:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    running = _Running(sandbox, workspace, log_dir, check)
    servers = McpServers(_running=running)
    try:
        running.start(configs, servers)
    except BaseException:
        servers.close()
        raise
    return servers


class _Running:
    """The connections, and the loop in which they run."""

    def __init__(self, sandbox: Sandbox, workspace: Path, log_dir: Path, check: Check) -> None:
        self._sandbox = sandbox
        self._workspace = workspace
        self._log_dir = log_dir
        self._check = check
        self._logs: list[ServerLog] = []
        self._numbers = count(1)
        self._connections: list[Connection] = []
        self._loop = _LoopThread()

    def start(self, configs: Sequence[ServerConfig], servers: McpServers) -> None:
        """Add the servers' tools and problems to `servers`."""
        # Imported here: it takes most of a second, which a run without servers saves.
        from drone.mcp_servers.connection import Connection

        self._connections += [Connection(config, self._maker(config)) for config in configs]
        openings = [self._loop.start(connection.open()) for connection in self._connections]
        longest = max(config.start_timeout for config in configs) + _MARGIN
        _all_done(openings, seconds=longest, check=self._check)
        names = Names()
        for connection, opening in zip(self._connections, openings, strict=True):
            config = connection.config
            try:
                if opening.cancel():
                    raise ServerFailed(f"did not start within {longest:g} s")
                found = opening.result()
            except ServerFailed as error:
                servers.problems.append(f"MCP server {config.name!r} {error}")
                continue
            ask = partial(self._ask, connection)
            chosen = listed(config, found, names, servers.problems)
            servers.tools += [_McpTool(config.name, each, ask, self._fresh_log) for each in chosen]

    def close(self) -> None:
        endings = [self._loop.start(connection.close()) for connection in self._connections]
        _all_done(endings, seconds=_CLOSE_SECONDS, check=lambda: None)
        for ending in endings:
            if not ending.cancel():
                self._sandbox.tally.add(ending.result())
        self._loop.stop()
        for log in self._logs:
            log.close()

    def _ask(self, connection: Connection, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        config = connection.config
        asked = self._loop.start(connection.call(tool, arguments))
        _all_done([asked], seconds=config.start_timeout + config.timeout + _MARGIN, check=self._check)
        if asked.cancel():
            raise ServerFailed("does not answer")
        return asked.result()

    def _fresh_log(self) -> Path:
        """An unused log path: an earlier run in the same directory may have left logs."""
        return next(path for number in self._numbers if not (path := self._log_dir / f"mcp-{number:04}.log").exists())

    def _maker(self, config: ServerConfig) -> MakeServer:
        from drone.mcp_servers.http import HttpServer
        from drone.mcp_servers.stdio import StdioServer

        if config.command is None:
            return lambda _: HttpServer(config)
        command = [config.command, *config.args]
        name = re.sub(r"[^a-zA-Z0-9_-]", "_", config.name)
        log = ServerLog(self._log_dir / f"mcp-server-{len(self._logs) + 1}-{name}.log")
        self._logs.append(log)

        def start_anew(ended: Callable[[str], None]) -> StdioServer:
            line = self._sandbox.line(command, workspace=self._workspace, variables=config.env)
            return StdioServer(line, log, ended)

        return start_anew


class _LoopThread:
    """An event loop that runs until `stop`, in a thread of its own: other code waits for it, and knows no asyncio.

    Process exit does not wait for it.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        # Errors of abandoned tasks must not be printed to the terminal.
        self._loop.set_exception_handler(lambda _loop, _context: None)
        self._thread = threading.Thread(target=self._run, name="mcp servers", daemon=True)
        self._thread.start()

    def start(self, work: Coroutine[Any, Any, _T]) -> Future[_T]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def stop(self) -> None:
        """Cancel running tasks and end the thread; a thread that does not end is left behind."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_STOP_SECONDS)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            # The runner cancels remaining tasks and closes the loop at the end of this block.
            runner.get_loop().run_forever()


def _all_done(futures: Sequence[Future[Any]], *, seconds: float, check: Callable[[], None]) -> bool:
    """Wait until all have ended, calling `check` many times a second; False when the time is up.

    Exceptions of `check` propagate after the futures are canceled.
    """
    deadline = time.monotonic() + seconds
    try:
        while wait(futures, timeout=_TICK).not_done:
            check()
            if time.monotonic() > deadline:
                return False
    except BaseException:
        # A cancel, a limit, Ctrl-C: the answers are no longer needed.
        for future in futures:
            future.cancel()
        raise
    return True


@dataclass(frozen=True)
class _McpTool:
    """One tool of a server (`drone.agent.protocols.ForeignTool`)."""

    server: str
    listed: Listed
    ask: _Ask
    fresh_log: Callable[[], Path]

    @property
    def spec(self) -> ToolSpec:
        return self.listed.spec

    @property
    def read_only(self) -> bool:
        return self.listed.read_only

    def execute(self, call: ToolCall) -> ToolResult:
        """Forward a call; there is exactly one result, even if the server fails. Raises what the run's check raises."""
        try:
            arguments = _arguments(call.arguments)
        except ValueError as error:
            return ToolResult(f"Error: {self.spec.name}: {error}; send one JSON object", is_error=True)
        log = self.fresh_log()
        try:
            answer = self.ask(self.listed.tool, arguments)
        except ServerFailed as error:
            return shown(f"Error: the MCP server {self.server!r} {error}", log, is_error=True)
        return result_of(answer, log)


def _arguments(text: str) -> dict[str, Any]:
    try:
        given = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the arguments are not JSON ({error})") from error
    if not isinstance(given, dict):
        raise ValueError("the arguments are not an object")
    return given
