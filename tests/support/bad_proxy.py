"""An HTTP proxy on loopback that holds answers back, cuts connections or loses requests, as its test says."""

from __future__ import annotations

import http.client
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TICK_S = 0.05
"""How often the ages of connections are looked at."""
_OF_A_CONNECTION = frozenset({"connection", "content-length", "keep-alive", "transfer-encoding"})
"""Headers that a proxy does not pass on, in lower case."""


class BadProxy(ThreadingHTTPServer):
    """What it does wrong can be changed at any time."""

    def __init__(self, server: int) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.server = server
        """The port of the server behind it."""
        self.away = 502
        """What it answers while the server is away: nginx 502, routers that forget the server meanwhile 404."""
        self.holds = False
        """Whether it passes on an answer only as a whole, and so no stream at all."""
        self.cuts_after_s: float | None = None
        """The age at which it cuts a connection, even while an answer is sent."""
        self.cuts = 0
        """How many it has cut."""
        self.loses = ""
        """The next request with this in its address does not reach the server; it gets a 502."""
        self.passes = threading.Event()
        """While this is not set, it answers no request."""
        self.passes.set()
        self.open: dict[_Connection, float] = {}
        """Connections of clients, and when they began."""

    def cut(self, older_than_s: float = 0.0) -> None:
        """Cut all connections that have this age."""
        for each, began in list(self.open.items()):
            if time.monotonic() - began >= older_than_s:
                self.cuts += 1
                each.cut()

    def service_actions(self) -> None:
        """Called every `TICK_S`."""
        if self.cuts_after_s is not None:
            self.cut(self.cuts_after_s)

    def close(self) -> None:
        """Cut all connections, and end their threads."""
        self.shutdown()
        self.passes.set()
        self.cut()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """That a connection ends is usual here; anything else is not."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Connection(BaseHTTPRequestHandler):
    """A client's connection, and the one to the server for its present request."""

    protocol_version = "HTTP/1.1"
    server: BadProxy
    behind: http.client.HTTPConnection | None = None

    def setup(self) -> None:
        super().setup()
        self.server.open[self] = time.monotonic()

    def finish(self) -> None:
        self.server.open.pop(self, None)
        super().finish()

    def cut(self) -> None:
        self.server.open.pop(self, None)
        for each in (self.connection, self.behind.sock if self.behind else None):
            # Its own thread may have closed it at this moment.
            with suppress(OSError):
                if each is not None:
                    each.shutdown(socket.SHUT_RDWR)

    def relay(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.passes.wait()
        if self.server.loses and self.server.loses in self.path:
            self.server.loses = ""
            self.send_error(502)
            return
        headers = {name: value for name, value in self.headers.items() if name.lower() not in _OF_A_CONNECTION}
        with closing(http.client.HTTPConnection("127.0.0.1", self.server.server)) as self.behind:
            try:
                self.behind.request(self.command, self.path, body, headers)
                answer = self.behind.getresponse()
            except (OSError, http.client.HTTPException):
                self.send_error(self.server.away)
                return
            with answer:
                self._pass_on(answer)

    def _pass_on(self, answer: http.client.HTTPResponse) -> None:
        try:
            if self.server.holds or answer.length is not None:
                self._send_whole(answer, answer.read())
            else:
                self._send_pieces(answer)
        except (OSError, http.client.HTTPException):
            # The client may have a part of the answer: its end is all that it can still be told.
            self.cut()

    def _send_head(self, answer: http.client.HTTPResponse, name: str, value: str) -> None:
        self.send_response_only(answer.status)
        for each in answer.getheaders():
            if each[0].lower() not in _OF_A_CONNECTION:
                self.send_header(*each)
        self.send_header(name, value)
        self.end_headers()

    def _send_whole(self, answer: http.client.HTTPResponse, whole: bytes) -> None:
        self._send_head(answer, "Content-Length", str(len(whole)))
        self.wfile.write(whole)

    def _send_pieces(self, answer: http.client.HTTPResponse) -> None:
        self._send_head(answer, "Transfer-Encoding", "chunked")
        while piece := answer.read1(1 << 16):
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    do_GET = do_POST = do_PUT = do_DELETE = relay  # noqa: N815 - the names that http.server calls

    def log_message(self, format: str, *args: object) -> None:
        """It keeps no log."""


@contextmanager
def bad_proxy(server: int) -> Iterator[BadProxy]:
    """A proxy in front of the server on this port, which does nothing wrong yet."""
    proxy = BadProxy(server)
    thread = threading.Thread(target=proxy.serve_forever, args=(TICK_S,), name="bad proxy")
    thread.start()
    try:
        yield proxy
    finally:
        proxy.close()
        thread.join(60)
