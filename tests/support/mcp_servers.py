"""MCP servers for tests, and the tools that they provide to a run."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from drone.agent.values import ToolResult
from drone.mcp_servers import McpServers, ServerConfig, connect
from drone.mcp_servers.config import parsed
from drone.sandbox import Sandbox, choose
from drone.sandbox.opened import close_all
from shared.messages import ToolCall
from tests.support import free_port, mcp_program, wait_until, warm_processes
from tests.support.sandboxes import sandbox_of


def config(name: str = "raw", **entry: Any) -> ServerConfig:
    """The configuration of a server of the drone's owner."""
    return parsed(name, entry, owners=True, environ={})


@dataclass
class McpBench:
    """A workspace with a sandbox, and the servers started in it."""

    directory: Path
    sandbox: Sandbox
    check: Callable[[], None] = lambda: None
    looks: int = 0
    stack: ExitStack = field(default_factory=ExitStack)

    def __post_init__(self) -> None:
        self.workspace = self.directory / "work"
        self.workspace.mkdir()
        self.program = self.workspace / "server.py"
        shutil.copy(mcp_program.__file__, self.program)
        self.logs = self.directory / "logs"
        # The Python environment with the mcp package, for servers written with it.
        self.sandbox = self.sandbox.for_session(scratch=self.directory / "scratch", read_only=[Path(sys.prefix)])

    def look(self) -> None:
        """Call the current check: a test may replace it while a call runs."""
        self.looks += 1
        self.check()

    def raw(self, *flags: str, name: str = "raw", **entry: Any) -> ServerConfig:
        """A server written by hand."""
        return config(name, command=sys.executable, args=[str(self.program), "raw", *flags], **entry)

    def sdk(self, *flags: str, name: str = "sample", **entry: Any) -> ServerConfig:
        """A server written with the SDK."""
        return config(name, command=sys.executable, args=[str(self.program), "sdk", *flags], **entry)

    def connect(self, *configs: ServerConfig) -> Tools:
        """Start servers; they end with the test."""
        servers = connect(configs, sandbox=self.sandbox, workspace=self.workspace, log_dir=self.logs, check=self.look)
        self.stack.callback(servers.close)
        return Tools(servers)


class Tools:
    """The tools of a run, by name."""

    def __init__(self, servers: McpServers) -> None:
        self.servers = servers
        self.by_name = {tool.spec.name: tool for tool in servers.tools}

    def call(self, name: str, arguments: str | Mapping[str, Any] = "{}") -> ToolResult:
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        return self.by_name[name].execute(ToolCall(id="call_1", name=name, arguments=text))

    def text(self, name: str, **arguments: Any) -> str:
        return self.call(name, arguments).output


@contextmanager
def limited(tools: Tools, seconds: float) -> Iterator[None]:
    """Calls in this block have this time limit; the start of the servers and other calls keep theirs."""
    running = tools.servers._running
    assert running is not None
    usual = [connection.config for connection in running._connections]
    for connection, config in zip(running._connections, usual, strict=True):
        connection.config = config.model_copy(update={"timeout": seconds})
    try:
        yield
    finally:
        for connection, config in zip(running._connections, usual, strict=True):
            connection.config = config


@contextmanager
def http_server(*flags: str) -> Iterator[str]:
    """A running HTTP server written with the SDK; yields its URL."""
    port = free_port()
    process = warm_processes.popen(
        [sys.executable, "-m", "tests.support.mcp_program", "http", "--port", str(port), *flags],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: _listens(port))
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as attempt:
        return attempt.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def mcp(tmp_path: Path) -> Iterator[McpBench]:
    """Servers without a sandbox."""
    bench = McpBench(tmp_path, choose("none", os.environ))
    with bench.stack:
        yield bench


@pytest.fixture(params=["bwrap", "none"])
def mcp_in(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[McpBench]:
    """Servers in each sandbox."""
    bench = McpBench(tmp_path, sandbox_of(request.param))
    bench.stack.callback(close_all)
    with bench.stack:
        yield bench


class ByHand:
    """An HTTP server written by hand: it keeps its requests, and can misbehave.

    It supports only the older protocol, with a session that must be initialized.
    """

    def __init__(self, answer: Callable[[Request], Reply], address: tuple[str, int] = ("127.0.0.1", 0)) -> None:
        self.requests: list[Request] = []
        self.answer = answer
        self.sessions = 0
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                request = Request(self.command, dict(self.headers.items()), json.loads(body or b"{}"), owner)
                owner.requests.append(request)
                self.respond(owner.answer(request))

            do_GET = do_DELETE = do_POST  # noqa: N815 - names of the standard library

            def respond(self, reply: Reply) -> None:
                self.send_response(reply.status)
                for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(reply.body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(address, Handler)
        self._server.daemon_threads = True
        self.address = ("127.0.0.1", self._server.server_port)
        self.url = f"http://127.0.0.1:{self._server.server_port}/mcp"

    def __enter__(self) -> ByHand:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


@dataclass(frozen=True)
class Request:
    """One request."""

    verb: str
    headers: dict[str, str]
    body: dict[str, Any]
    server: ByHand

    @property
    def method(self) -> str:
        return str(self.body.get("method", self.verb))


@dataclass(frozen=True)
class Reply:
    """One answer."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def json(cls, request: Request, result: Any, **headers: str) -> Reply:
        body = json.dumps({"jsonrpc": "2.0", "id": request.body["id"], "result": result}).encode()
        return cls(200, body, {"Content-Type": "application/json", **headers})


def with_sessions(request: Request) -> Reply:
    """A server with sessions and one tool, which returns the session of its call."""
    session = f"session-{request.server.sessions}"
    if request.method == "initialize":
        request.server.sessions += 1
        info = {"name": "by hand", "version": "1"}
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        return Reply.json(request, result, **{"mcp-session-id": f"session-{request.server.sessions}"})
    if request.method in {"GET", "server/discover"}:
        return Reply(405)
    if {name.lower(): value for name, value in request.headers.items()}.get("mcp-session-id") != session:
        return Reply(404)
    if request.method == "tools/list":
        return Reply.json(request, {"tools": [mcp_program.tool("session")]})
    if request.method == "tools/call":
        return Reply.json(request, {"content": [mcp_program.text(session)]})
    return Reply(202)
