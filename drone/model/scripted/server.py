"""A scripted model behind a real OpenAI-compatible HTTP endpoint: what the demo, the tests and the benchmarks talk to.

It is no model and says so: its id is `scripted`, and every answer carries the header `X-Scripted-Model: yes`.

    python -m drone.model.scripted.server --script FILE.json [--host 127.0.0.1] [--port 0]

prints the base URL as the first line of stdout and serves until SIGTERM or SIGINT. What a script may hold is in
`drone.model.scripted.script`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from drone.model.scripted.completions import CREATED, MODEL_ID, chunks, completion, error_body, guessed_tokens, too_long
from drone.model.scripted.script import Book, NoReply, Reply
from shared.signal_event import SignalEvent

_GARBAGE = b"\x00\xff\xfe<html>this is not a model\xc3\x28</html>"


@dataclass(frozen=True)
class Received:
    """One received request."""

    body: dict[str, Any]
    headers: Mapping[str, str]


class ScriptedServer:
    """Serves a script from a separate thread for the duration of the `with` block.

    `url` is the base URL, ending in /v1. `requests` are the bodies received, in order of arrival. With an `api_key`,
    requests without it get 401. With a `window`, requests that have more tokens are refused as too long. `count`
    returns the tokens of a request, also for the reported usage. Stopping the server breaks open connections and ends
    waiting replies early.
    """

    def __init__(  # noqa: PLR0913 - settings of one endpoint, all by name
        self,
        script: Any,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        chunk_delay_s: float = 0.0,
        api_key: str = "",
        window: int = 0,
        count: Callable[[dict[str, Any]], int] = guessed_tokens,
    ) -> None:
        self.book = script if isinstance(script, Book) else Book.of(script)
        self.chunk_delay_s = chunk_delay_s
        self.api_key = api_key
        self.window = window
        self.count = count
        self.received: list[Received] = []
        self.ending = threading.Event()
        self._http = _HTTPServer((host, port), self)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), name="scripted", daemon=True)

    @property
    def url(self) -> str:
        host, port = self._http.server_address[:2]
        return f"http://{host!s}:{port}/v1"

    @property
    def requests(self) -> list[dict[str, Any]]:
        return [received.body for received in self.received]

    @property
    def open_connections(self) -> int:
        """Number of open client connections."""
        return self._http.open_connections

    def start(self) -> ScriptedServer:
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stop listening and break open connections; returns when every thread of the server has ended."""
        self.ending.set()
        self._http.shutdown()
        self._thread.join()
        self._http.break_connections()
        self._http.server_close()

    def __enter__(self) -> ScriptedServer:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


class _HTTPServer(ThreadingHTTPServer):
    """One thread per connection; tracks open connections, so that none outlives the server."""

    daemon_threads = False
    block_on_close = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], scripted: ScriptedServer) -> None:
        self.scripted = scripted
        self._open: set[socket.socket] = set()
        self._guard = threading.Lock()
        super().__init__(address, _Exchange)

    @property
    def open_connections(self) -> int:
        return len(self._open)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._guard:
            self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._guard:
            self._open.discard(request)
        super().shutdown_request(request)

    def break_connections(self) -> None:
        """Wake the threads that wait for a further request on an open connection."""
        with self._guard:
            for connection in self._open:
                _shut(connection)

    def handle_error(self, request: Any, client_address: Any) -> None:
        # Half the tests are about clients that hang up; any other error must be visible.
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Exchange(BaseHTTPRequestHandler):
    """One connection."""

    server: _HTTPServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        if self.path.rstrip("/").endswith("/models"):
            model = {
                "id": MODEL_ID,
                "object": "model",
                "created": CREATED,
                "owned_by": "dronefleet, scripted",
            }
            self._send_json(200, {"object": "list", "data": [model]})
        else:
            self._send_json(404, error_body(f"nothing at {self.path}", "not_found"))

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        scripted = self.server.scripted
        if not self.path.rstrip("/").endswith("/chat/completions"):
            return self._send_json(404, error_body(f"nothing at {self.path}", "not_found"))
        if scripted.api_key and self.headers.get("Authorization") != f"Bearer {scripted.api_key}":
            return self._send_json(401, error_body("Incorrect API key provided", "invalid_api_key"))
        try:
            body = json.loads(raw)
            scripted.received.append(Received(body, dict(self.headers.items())))
            if scripted.window and (tokens := scripted.count(body)) > scripted.window:
                return self._send_json(400, too_long(tokens, scripted.window))
            index, reply = scripted.book.reply(body["messages"], with_tools=bool(body.get("tools")))
        except (ValueError, KeyError, TypeError, NoReply) as error:
            return self._send_json(400, error_body(f"scripted model: {error}", "invalid_request_error"))
        return self._play(index, reply, body)

    def _play(self, index: int, reply: Reply, body: dict[str, Any]) -> None:
        self.server.scripted.ending.wait(reply.delay_s)
        if reply.garbage:
            self._send_garbage("body" if reply.garbage is True else reply.garbage)
        elif reply.status != 200:
            self._send_json(reply.status, error_body(reply.error or f"scripted {reply.status}"), reply.retry_after)
        elif body.get("stream"):
            self._stream(index, reply, body)
        else:
            self._send_whole(index, reply, body)

    def _stream(self, index: int, reply: Reply, body: dict[str, Any]) -> None:
        scripted = self.server.scripted
        pause = scripted.chunk_delay_s if reply.chunk_delay_s is None else reply.chunk_delay_s
        self._start(200, "text/event-stream", {"Transfer-Encoding": "chunked"})
        for number, chunk in enumerate(chunks(index, reply, body, scripted.count)):
            if number == reply.cut_after:
                return self._cut()
            if number == reply.end_after:
                return self._write_chunk(b"")
            if number:
                scripted.ending.wait(pause)
            self._write_chunk(f"data: {json.dumps(chunk)}\n\n".encode())
        self._write_chunk(b"data: [DONE]\n\n")
        return self._write_chunk(b"")

    def _send_whole(self, index: int, reply: Reply, body: dict[str, Any]) -> None:
        content = json.dumps(completion(index, reply, body, self.server.scripted.count)).encode()
        self._start(200, "application/json", {"Content-Length": str(len(content))})
        if reply.cut_after is None:
            self.wfile.write(content)
        else:
            self.wfile.write(content[: len(content) // 2])
            self._cut()

    def _send_garbage(self, kind: str) -> None:
        if kind == "wire":
            self.wfile.write(_GARBAGE)
            self._cut()
        elif kind == "event":
            self._start(200, "text/event-stream", {"Transfer-Encoding": "chunked"})
            self._write_chunk(b'data: {"choices": [{"delta": {"content": "hal\n\n')
            self._write_chunk(b"")
        else:
            self._start(200, "application/json", {"Content-Length": str(len(_GARBAGE))})
            self.wfile.write(_GARBAGE)

    def _send_json(self, status: int, document: Any, retry_after: str | float | None = None) -> None:
        content = json.dumps(document).encode()
        extra = {} if retry_after is None else {"Retry-After": str(retry_after)}
        self._start(status, "application/json", {"Content-Length": str(len(content)), **extra})
        self.wfile.write(content)

    def _start(self, status: int, content_type: str, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("X-Scripted-Model", "yes")
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _write_chunk(self, content: bytes) -> None:
        """Write one chunk of a body in chunked encoding; an empty one ends it."""
        self.wfile.write(b"%x\r\n%s\r\n" % (len(content), content))

    def _cut(self) -> None:
        """Break the connection, as a dying server does."""
        self.wfile.flush()
        self.close_connection = True
        _shut(self.connection)

    def version_string(self) -> str:
        return "dronefleet-scripted-model"

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: stdout contains only the address, and requests are in `received`."""


def _shut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # the other end closed first
        connection.shutdown(socket.SHUT_RDWR)


def main(arguments: list[str] | None = None) -> None:
    """Serve a script file until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(prog="python -m drone.model.scripted.server", description=__doc__)
    parser.add_argument("--script", type=Path, required=True, help="JSON: a list of replies, or lists by name")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 = any free port")
    parser.add_argument("--chunk-delay", type=float, default=0.0, metavar="SECONDS", help="between chunks of a stream")
    chosen = parser.parse_args(arguments)
    try:
        book = Book.load(chosen.script)
    except (OSError, ValueError) as error:
        parser.error(f"cannot read the script {chosen.script}: {error}")
    stopped = SignalEvent()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    with ScriptedServer(book, host=chosen.host, port=chosen.port, chunk_delay_s=chosen.chunk_delay) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        stopped.wait()


if __name__ == "__main__":
    main()
