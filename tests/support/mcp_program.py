"""MCP servers as programs: `sdk` and `http` are written with the mcp SDK, `raw` by hand, so that it can misbehave.

Only the standard library is imported at the top, so that `raw` runs with any Python.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=["sdk", "http", "raw"])
    parser.add_argument("--word", default="", help="an argument to find the process by")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--stateless", action="store_true")
    parser.add_argument("--json", action="store_true", help="http: answer with JSON instead of an event stream")
    parser.add_argument("--silent", action="store_true", help="raw: never say anything")
    parser.add_argument("--ignore-term", action="store_true")
    parser.add_argument("--stay", action="store_true", help="raw: do not end when stdin does")
    parser.add_argument("--child", default="", help="raw: start `sleep CHILD` in a session of its own")
    parser.add_argument("--complain", type=int, default=0, help="raw: bytes to print on stderr first")
    parser.add_argument("--noise", type=int, default=0, help="raw: bytes of nonsense to print on stdout first")
    parser.add_argument("--tools", default="", help="raw: JSON, instead of the tools it has")
    parser.add_argument("--endless", action="store_true", help="raw: the list of tools has no last page")
    parser.add_argument("--slow-close", default="", help="raw: a file to write when stdin ends")
    options = parser.parse_args()
    {"sdk": run_sdk, "http": run_http, "raw": run_raw}[options.kind](options)


# --- with the SDK -----------------------------------------------------------------------------------------------------


def sdk_server() -> Any:
    import anyio
    from mcp.server.mcpserver import MCPServer
    from mcp_types import ToolAnnotations

    server = MCPServer("sample")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.tool()
    def shout(text: str) -> str:
        """Say it louder."""
        return text.upper()

    @server.tool()
    def fail() -> str:
        """Go wrong."""
        raise ValueError("it went wrong")

    @server.tool()
    async def wait(file: str) -> str:
        """Wait, and write into the file when that is canceled."""
        try:
            with open(file, "w") as begun:  # noqa: PTH123
                begun.write("begun")
            await anyio.sleep(600)
        except anyio.get_cancelled_exc_class():
            with open(file, "w") as canceled:  # noqa: PTH123
                canceled.write("canceled")
            raise
        return "waited"

    @server.tool()
    def huge() -> str:
        """Say very much."""
        return "x" * 100_000_000

    return server


def run_sdk(_: argparse.Namespace) -> None:
    sdk_server().run()


def run_http(options: argparse.Namespace) -> None:
    sdk_server().run("streamable-http", port=options.port, stateless_http=options.stateless, json_response=options.json)


# --- by hand ----------------------------------------------------------------------------------------------------------


def run_raw(options: argparse.Namespace) -> None:
    if options.ignore_term:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if options.child:
        subprocess.Popen(["sleep", options.child], start_new_session=True, stdin=subprocess.DEVNULL)
    sys.stderr.write("e" * options.complain)
    sys.stderr.flush()
    put(b"nonsense\n" * (options.noise // 9))
    for line in sys.stdin:
        message = json.loads(line)
        if not options.silent and "id" in message:
            answer(message, options)
    if options.slow_close:
        open(options.slow_close, "w").close()  # noqa: PTH123
    while options.stay or options.ignore_term:
        time.sleep(1)


def answer(message: dict[str, Any], options: argparse.Namespace) -> None:
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        info = {"name": "raw", "version": "1"}
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        reply(message, result)
    elif method == "tools/list":
        tools = json.loads(options.tools) if options.tools else [tool(name) for name in BEHAVIOUR]
        reply(message, {"tools": tools} | ({"nextCursor": "more"} if options.endless else {}))
    elif method == "tools/call":
        BEHAVIOUR[params["name"]](message, params.get("arguments", {}))
    else:
        put(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}}) + "\n")


def tool(name: str) -> dict[str, Any]:
    return {"name": name, "description": f"does: {name}", "inputSchema": SCHEMA}


def reply(message: dict[str, Any], result: Any) -> None:
    put(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n")


def says(message: dict[str, Any], *content: Any, **more: Any) -> None:
    reply(message, {"content": list(content), **more})


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def put(data: str | bytes) -> None:
    sys.stdout.buffer.write(data.encode() if isinstance(data, str) else data)
    sys.stdout.flush()


def noisy(message: dict[str, Any], _: Any) -> None:
    put(b'DEBUG: \xff\xfe {"not": "json-rpc"}\n{"half\n\n')
    says(message, text("after the noise"))


def bytes_that_are_no_text(message: dict[str, Any], _: Any) -> None:
    head = json.dumps({"jsonrpc": "2.0", "id": message["id"]})[:-1].encode()
    put(head + b', "result": {"content": [{"type": "text", "text": "a\xffb\\u0000c"}]}}\n')


def half_a_pair(message: dict[str, Any], _: Any) -> None:
    says(message, text("a\ud800b"))


def deep(message: dict[str, Any], _: Any) -> None:
    nested = "[" * 100_000 + "]" * 100_000
    head = json.dumps({"jsonrpc": "2.0", "id": message["id"]})[:-1]
    put(f'{head}, "result": {{"content": [], "structuredContent": {nested}}}}}\n')


BEHAVIOUR: dict[str, Any] = {
    "echo": lambda message, arguments: says(message, text(arguments.get("text", "echo"))),
    "pid": lambda message, _: says(message, text(str(os.getpid()))),
    "variables": lambda message, _: says(message, text(json.dumps(dict(os.environ)))),
    "die": lambda *_: os._exit(7),
    "die_talking": lambda *_: (sys.stderr.write("my disk is full\n"), sys.stderr.flush(), os._exit(1)),
    "never": lambda *_: None,
    "hang": lambda *_: time.sleep(600),
    "noisy": noisy,
    "flood": lambda *_: [put(b"x" * 1_000_000) for _ in range(100)],
    "huge": lambda message, _: says(message, text("x" * 100_000_000)),
    "long": lambda message, _: says(message, text("\n".join(map(str, range(5000))))),
    "bytes": bytes_that_are_no_text,
    "half_a_pair": half_a_pair,
    "nothing": lambda message, _: says(message),
    "wrong": lambda message, _: says(message, text("no such file"), isError=True),
    "other_form": lambda message, _: reply(message, {"content": [{"type": "dance"}]}),
    "deep": deep,
}

if __name__ == "__main__":
    main()
