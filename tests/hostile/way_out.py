"""The network around a hostile drone: names that lead elsewhere, and the only way out, which notes where it leads."""

from __future__ import annotations

import select
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.support.machines import Machine
from tests.support.resolvers import NameServer, name_server

PUBLIC = "93.184.215.14"
"""An address of the public web. Nothing is sent there: the drone's way out is a proxy that refuses it."""
METADATA = "169.254.169.254"
NAMES = {
    "public.test": [[PUBLIC]],
    "metadata.test": [[METADATA]],
    "both.test": [[PUBLIC, "127.0.0.1"]],
    "six.test": [["fd00:ec2::254"]],
    "mapped.test": [["::ffff:10.0.0.1"]],
    "rebinding.test": [[PUBLIC], ["127.0.0.1"]],
    "rebinding-to-metadata.test": [[PUBLIC], [METADATA]],
    "page.test": [[PUBLIC], ["127.0.0.1"]],
    "page-to-metadata.test": [[PUBLIC], [METADATA]],
    "swinging.test": [[PUBLIC], [METADATA]] * 20,
}
"""What each name leads to, from look-up to look-up."""
ALIASES = {"alias.test": "metadata.test"}


class _Redirects(BaseHTTPRequestHandler):
    """A server that the owner allows, and that leads elsewhere."""

    def do_GET(self) -> None:
        if self.path.startswith("/page"):
            self.send_response(200)
            self.send_header("Content-Length", "5")
            self.end_headers()
            self.wfile.write(b"words")
            return
        targets = {
            "/to-loopback": "http://127.0.0.1:80/",
            "/to-metadata": f"http://{METADATA}/latest/",
            "/to-name": "http://metadata.test/latest/",
        }
        self.send_response(302)
        self.send_header("Location", targets.get(self.path, "/"))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Be quiet."""


class _OwnersProxy(socketserver.ThreadingTCPServer):
    """The proxy of the drone's owner: makes tunnels to one server, and notes every other target."""

    daemon_threads = True

    def __init__(self, allowed: str) -> None:
        self.allowed = allowed
        self.asked: list[str] = []
        super().__init__(("127.0.0.1", 0), _Tunnel)


class _Tunnel(socketserver.StreamRequestHandler):
    server: _OwnersProxy

    def handle(self) -> None:
        target = self.rfile.readline().decode(errors="replace").split(" ")[1]
        while self.rfile.readline().strip():
            pass
        if target != self.server.allowed:
            self.server.asked.append(target)
            self.wfile.write(b"HTTP/1.1 503 Service Unavailable\r\n\r\n")
            return
        host, _, port = target.partition(":")
        with socket.create_connection((host, int(port))) as site:
            self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            _copy(self.connection, site)


@dataclass(frozen=True)
class WayOut:
    """What a hostile drone has around it."""

    site: int
    """The port of a server that the owner allows."""
    names: NameServer
    proxy: _OwnersProxy

    @property
    def reached(self) -> set[str]:
        """Where commands were led, apart from that server."""
        return set(self.proxy.asked)

    @property
    def variables(self) -> dict[str, str]:
        """For the drone's environment."""
        return {"https_proxy": f"http://127.0.0.1:{self.proxy.server_address[1]}"}

    def machine(self, room: Path, processes: int, user: int | None) -> Machine:
        """A machine with this resolver; `room`: an empty directory."""
        resolver = room / "resolv.conf"
        resolver.write_text(f"nameserver {self.names.address}\noptions timeout:2 attempts:2\n")
        resolver.chmod(0o644)
        return Machine(resolver, room, processes, user)


@contextmanager
def way_out() -> Iterator[WayOut]:
    """All of it for the duration of the block."""
    with ExitStack() as stack:
        site = stack.enter_context(_serving(ThreadingHTTPServer(("127.0.0.1", 0), _Redirects)))
        port = int(site.server_address[1])
        proxy = _OwnersProxy(f"127.0.0.1:{port}")
        stack.enter_context(_serving(proxy))
        yield WayOut(port, stack.enter_context(name_server(NAMES, ALIASES)), proxy)


@contextmanager
def _serving(server: socketserver.TCPServer) -> Iterator[socketserver.TCPServer]:
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _copy(one: socket.socket, other: socket.socket) -> None:
    ends = {one: other, other: one}
    while True:
        for source in select.select(list(ends), [], [], 20)[0]:
            chunk = source.recv(65536)
            if not chunk:
                return
            ends[source].sendall(chunk)
