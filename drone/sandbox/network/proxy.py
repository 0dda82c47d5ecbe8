"""An HTTP proxy for commands: CONNECT for HTTPS, and plain HTTP requests, to the addresses that the policy allows."""

from __future__ import annotations

import contextlib
import logging
import select
import socket
import threading
import time
from dataclasses import dataclass
from itertools import chain
from urllib.parse import urlsplit

from drone.sandbox.network.access import Refusal
from drone.sandbox.network.gateway import Gateway

LARGEST_HEAD = 64 * 1024
HEAD_SECONDS = 30.0
IDLE_SECONDS = 600.0
CLOSE_SECONDS = 1.0
"""For all connections together to end: a run that was canceled has little time to store its work."""
MAX_CONNECTIONS = 128
MAX_REFUSALS = 20
"""Kept for the result of one command."""
_CHUNK = 64 * 1024
_NOT_PASSED_ON = (b"host", b"connection", b"proxy-connection", b"proxy-authorization", b"keep-alive")
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Request:
    """The head of a request, and what was read beyond it."""

    method: str
    host: str
    port: int
    head: bytes
    """As the server must receive it; empty for CONNECT, which asks for a tunnel."""
    rest: bytes


class Proxy:
    """Serves the commands of one run, in threads of the run's process."""

    def __init__(self, listener: socket.socket, gateway: Gateway) -> None:
        self._listener = listener
        self._listener.settimeout(None)
        self._gateway = gateway
        self._places = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self._lock = threading.Lock()
        self._connections: dict[threading.Thread, list[socket.socket]] = {}
        self._closed = False
        self._refused: list[str] = []
        self._thread = threading.Thread(target=self._accept, name="network proxy", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Stop, and break all connections off. What is still waiting for its server ends later, and sends nothing."""
        with self._lock:
            self._closed = True
            connections = dict(self._connections)
        for each in (self._listener, *chain.from_iterable(connections.values())):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        until = time.monotonic() + CLOSE_SECONDS
        for thread in (self._thread, *connections):
            thread.join(max(0.0, until - time.monotonic()))
        self._listener.close()

    def take_refused(self) -> tuple[str, ...]:
        """What was refused since the last time, without repetitions."""
        with self._lock:
            refused, self._refused = tuple(dict.fromkeys(self._refused)), []
        return refused

    def _remember(self, refusal: str) -> None:
        with self._lock:
            if len(self._refused) < MAX_REFUSALS:
                self._refused.append(refusal[:200])

    def _accept(self) -> None:
        while True:
            self._places.acquire()
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return  # closed
            thread = threading.Thread(target=self._serve, args=(connection,), name="network proxy", daemon=True)
            with self._lock:
                if self._closed:
                    connection.close()
                    return
                self._connections[thread] = [connection]
                thread.start()

    def _serve(self, client: socket.socket) -> None:
        try:
            with client:
                self._answer(client)
        except OSError:
            pass  # one of the two ends went away, or the time was up
        finally:
            with self._lock:
                del self._connections[threading.current_thread()]
            self._places.release()

    def _answer(self, client: socket.socket) -> None:
        client.settimeout(HEAD_SECONDS)
        try:
            request = _read(client)
            server = self._gateway.connect(request.host, request.port)
        except Refusal as refusal:
            log.info("network request refused: %s", refusal)
            self._remember(str(refusal))
            client.sendall(_response("403 Forbidden", f"{refusal} (network policy of this drone)\n"))
            return
        except OSError as error:
            client.sendall(_response("502 Bad Gateway", f"the server cannot be reached: {error.strerror or error}\n"))
            return
        with server:
            if not self._add(server):
                return
            if request.head:
                server.sendall(request.head + request.rest)
            else:
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                server.sendall(request.rest)
            _copy_both_ways(client, server)

    def _add(self, server: socket.socket) -> bool:
        """Let `close` break this connection off as well. Returns whether that is still to come."""
        with self._lock:
            self._connections[threading.current_thread()].append(server)
            return not self._closed


def _read(client: socket.socket) -> _Request:
    """Read the head of a request. Raises Refusal if it is none for a proxy."""
    received = b""
    while b"\r\n\r\n" not in received:
        chunk = client.recv(_CHUNK)
        if not chunk or len(received) > LARGEST_HEAD:
            raise Refusal("the request is not complete, or its head is too large")
        received += chunk
    head, _, rest = received.partition(b"\r\n\r\n")
    line, *headers = head.split(b"\r\n")
    if any(b"\r" in each or b"\n" in each for each in (line, *headers)):
        raise Refusal("the request has a line end that servers read in different ways")
    try:
        method, target, version = line.decode("ascii").split(" ")
        parts = urlsplit(f"//{target}" if method == "CONNECT" else target)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise Refusal("the request is not one for an HTTP proxy") from error
    if method == "CONNECT":
        return _Request(method, host, port or 443, b"", rest)
    if parts.scheme != "http" or not host:
        raise Refusal("the request is not one for an HTTP proxy: use http://HOST/… or CONNECT")
    kept = [each for each in headers if each.partition(b":")[0].strip().lower() not in _NOT_PASSED_ON]
    # The host that was allowed, and not another one that the same server has (RFC 9112, 3.2.2).
    authority = parts.netloc.rpartition("@")[2].encode("ascii")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    # Closed afterwards: a client would send its next request, for another host, through the same connection.
    lines = [f"{method} {path} {version}".encode(), b"Host: " + authority, *kept, b"Connection: close"]
    return _Request(method, host, port or 80, b"\r\n".join(lines) + b"\r\n\r\n", rest)


def _copy_both_ways(one: socket.socket, other: socket.socket) -> None:
    """Until both sides have ended, or nothing was sent for a long time."""
    ends = {one: other, other: one}
    for each in ends:
        each.settimeout(IDLE_SECONDS)
    open_ends = set(ends)
    while open_ends:
        ready, _, _ = select.select(list(open_ends), [], [], IDLE_SECONDS)
        if not ready:
            return
        for source in ready:
            if chunk := source.recv(_CHUNK):
                ends[source].sendall(chunk)
            else:
                open_ends.discard(source)
                with contextlib.suppress(OSError):
                    ends[source].shutdown(socket.SHUT_WR)


def _response(status: str, text: str) -> bytes:
    body = text.encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n\r\n".encode() + body
