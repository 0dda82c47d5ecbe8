"""The MCP servers of one run: started together, called as tools, ended together."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from drone.agent.protocols import ForeignTool
from drone.mcp_servers.config import ServerConfig
from drone.mcp_servers.failures import ServerFailed
from drone.mcp_servers.listing import Names, listed
from drone.mcp_servers.loop_thread import LoopThread, all_done
from drone.mcp_servers.server_log import ServerLog
from drone.mcp_servers.tools import McpTool
from drone.sandbox import Sandbox
from drone.sandbox.protocol import Check

if TYPE_CHECKING:
    from mcp_types import CallToolResult

    from drone.mcp_servers.connection import Connection
    from drone.mcp_servers.start import MakeServer

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
        self._loop = LoopThread()

    def start(self, configs: Sequence[ServerConfig], servers: McpServers) -> None:
        """Add the servers' tools and problems to `servers`."""
        # Imported here: it takes most of a second, which a run without servers saves.
        from drone.mcp_servers.connection import Connection

        self._connections += [Connection(config, self._maker(config)) for config in configs]
        openings = [self._loop.start(connection.open()) for connection in self._connections]
        longest = max(config.start_timeout for config in configs) + _MARGIN
        all_done(openings, seconds=longest, check=self._check)
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
            servers.tools += [McpTool(config.name, each, ask, self._fresh_log) for each in chosen]

    def close(self) -> None:
        endings = [self._loop.start(connection.close()) for connection in self._connections]
        all_done(endings, seconds=_CLOSE_SECONDS, check=lambda: None)
        for ending in endings:
            if not ending.cancel():
                self._sandbox.tally.add(ending.result())
        self._loop.stop()
        for log in self._logs:
            log.close()

    def _ask(self, connection: Connection, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        config = connection.config
        asked = self._loop.start(connection.call(tool, arguments))
        all_done([asked], seconds=config.start_timeout + config.timeout + _MARGIN, check=self._check)
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
