"""The network around a hostile drone: names that lead elsewhere, and the only way out, which notes where it leads."""

from __future__ import annotations

import ipaddress
import secrets
import select
import socket
import socketserver
import struct
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.support.machines import Machine

PUBLIC = "93.184.215.14"
"""An address of the public web. Nothing is sent there: the drone's way out is a proxy that refuses it."""
METADATA = "169.254.169.254"
NAMES = {
    "metadata.test": [[METADATA]],
    "both.test": [[PUBLIC, "127.0.0.1"]],
    "mapped.test": [["::ffff:10.0.0.1"]],
    "rebinding.test": [[PUBLIC], ["127.0.0.1"]],
    "page.test": [[PUBLIC], ["127.0.0.1"]],
    "swinging.test": [[PUBLIC], [METADATA]] * 20,
}
"""The addresses of each name at the first look-up, at the second and so on; the last ones stay."""
_HEAD = struct.Struct("!6H")
_VERSIONS = {1: 4, 28: 6}
"""Of the addresses in records of this kind: A and AAAA."""
_NO_SUCH_NAME = 3


class NameServer(socketserver.UDPServer):
    """Answers for `NAMES`; other names do not exist."""

    def __init__(self) -> None:
        # Port 53, at an address of loopback that no other server has.
        self.address = f"127.{53 + secrets.randbelow(200)}.{secrets.randbelow(256)}.{1 + secrets.randbelow(254)}"
        self._looked_up: Counter[tuple[str, int]] = Counter()
        super().__init__((self.address, 53), _Question)

    def records(self, name: str, kind: int) -> list[bytes]:
        """Valid for no time, so that each use of the name looks it up."""
        each_time = NAMES[name]
        found = each_time[min(self._looked_up[name, kind], len(each_time) - 1)]
        self._looked_up[name, kind] += 1
        addresses = [each for each in map(ipaddress.ip_address, found) if each.version == _VERSIONS.get(kind)]
        return [b"\xc0\x0c" + struct.pack("!HHIH", kind, 1, 0, len(each.packed)) + each.packed for each in addresses]


class _Question(socketserver.BaseRequestHandler):
    server: NameServer

    def handle(self) -> None:
        packet, answering = self.request
        end = packet.index(b"\0", _HEAD.size)
        name, left = [], packet[_HEAD.size : end]
        while left:
            name.append(left[1 : 1 + left[0]].decode())
            left = left[1 + left[0] :]
        (kind,) = struct.unpack_from("!H", packet, end + 1)
        asked = ".".join(name).lower()
        records = self.server.records(asked, kind) if asked in NAMES else []
        code = 0 if asked in NAMES else _NO_SUCH_NAME
        head = _HEAD.pack(_HEAD.unpack_from(packet)[0], 0x8580 | code, 1, len(records), 0, 0)
        answering.sendto(head + packet[_HEAD.size : end + 5] + b"".join(records), self.client_address)


class _Redirects(BaseHTTPRequestHandler):
    """A server that the owner allows: it has a page, and all else leads elsewhere."""

    def do_GET(self) -> None:
        content = b"words" if self.path.startswith("/page") else b""
        self.send_response(200 if content else 302)
        self.send_header("Location", "http://metadata.test/latest/")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

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
        site = ThreadingHTTPServer(("127.0.0.1", 0), _Redirects)
        made = WayOut(site.server_port, NameServer(), _OwnersProxy(f"127.0.0.1:{site.server_port}"))
        for server in (site, made.proxy, made.names):
            stack.enter_context(_serving(server))
        yield made


@contextmanager
def _serving(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield
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
