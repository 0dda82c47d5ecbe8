"""A reverse proxy as people put in front of a server, with what some of them do to event streams."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

HOP = {"connection", "transfer-encoding", "keep-alive", "content-length"}


class StreamProxy:
    """Passes requests on to `upstream`; `holds_back` keeps streams from arriving, `cuts_after_s` ends them."""

    def __init__(self, upstream: str, *, holds_back: bool = False, cuts_after_s: float = 0.0) -> None:
        self.upstream = upstream
        self.holds_back = holds_back
        self.cuts_after_s = cuts_after_s
        self.streams = 0
        """How many streams were opened."""
        proxy = self

        class Passing(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                proxy.pass_on(self)

            def do_POST(self) -> None:
                proxy.pass_on(self)

            def log_message(self, format: str, *args: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Passing)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def pass_on(self, request: BaseHTTPRequestHandler) -> None:
        """One request and its answer, which ends the connection."""
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP}
        is_stream = request.path.startswith("/live?")
        self.streams += is_stream
        with (
            httpx.Client(trust_env=False, timeout=None) as client,
            client.stream(request.command, self.upstream + request.path, headers=headers, content=body) as answer,
        ):
            try:
                self._answer(request, answer, is_stream=is_stream)
            except OSError:
                return
            finally:
                request.close_connection = True

    def _answer(self, request: BaseHTTPRequestHandler, answer: httpx.Response, *, is_stream: bool) -> None:
        if is_stream and self.holds_back:
            for _ in answer.iter_raw():
                request.connection.send(b"")
            return
        request.send_response(answer.status_code)
        for name, value in answer.headers.multi_items():
            if name.lower() not in HOP:
                request.send_header(name, value)
        request.send_header("Connection", "close")
        request.end_headers()
        began = time.monotonic()
        for piece in answer.iter_raw():
            request.wfile.write(piece)
            request.wfile.flush()
            if is_stream and self.cuts_after_s and time.monotonic() - began > self.cuts_after_s:
                return

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(60)


@contextmanager
def stream_proxy(upstream: str, *, holds_back: bool = False, cuts_after_s: float = 0.0) -> Iterator[StreamProxy]:
    """A proxy in front of `upstream`, closed at the end."""
    proxy = StreamProxy(upstream, holds_back=holds_back, cuts_after_s=cuts_after_s)
    try:
        yield proxy
    finally:
        proxy.close()
