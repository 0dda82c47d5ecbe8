"""`/metrics` on a loopback port, for a Prometheus on the same machine."""

from __future__ import annotations

import errno
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest

from shared.errors import Conflict, Precondition
from shared.loopback import is_loopback

HOST = "127.0.0.1"
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@contextmanager
def serving(registry: CollectorRegistry, port: int) -> Iterator[None]:
    """Serve the registry within the block. Raises Conflict if the port is in use, Precondition if it is forbidden."""
    server = _bound(registry, port)
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _bound(registry: CollectorRegistry, port: int) -> ThreadingHTTPServer:
    class Handler(_Answering):
        figures = registry

    try:
        return _Server((HOST, port), Handler)
    except OSError as error:
        kind = Conflict if error.errno == errno.EADDRINUSE else Precondition
        raise kind(
            f"the drone cannot serve metrics on {HOST} port {port}",
            code="E-METRICS-PORT",
            why=str(error.strerror or error),
            next="choose a free port from 1024 on, for example: drone start --metrics-port 9465",
        ) from error


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False


class _Answering(BaseHTTPRequestHandler):
    figures: CollectorRegistry
    timeout = 10
    """Seconds after which a client that sends nothing is left."""

    def do_GET(self) -> None:
        if not _is_own_name(self.headers.get("Host", HOST)):
            # A page whose name was pointed at this machine: its browser sends that name.
            self._answer(403, b"this address is read as http://127.0.0.1:PORT/metrics\n")
        elif self.path.partition("?")[0] == "/metrics":
            self._answer(200, generate_latest(self.figures))
        else:
            self._answer(404, b"the drone's metrics are at /metrics\n")

    def log_message(self, *_: Any) -> None:
        """Log nothing: Prometheus asks several times a minute."""

    def _answer(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", MEDIA_TYPE)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def _is_own_name(host: str) -> bool:
    try:
        return is_loopback(f"http://{host}")
    except ValueError:
        return False
