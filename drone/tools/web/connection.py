"""One HTTP connection through the run's gateway, whose every wait ends when the run or the time limit does."""

from __future__ import annotations

import io
import socket
import ssl
from collections.abc import Callable
from http.client import HTTPConnection
from typing import Any, TypeVar, cast

from drone.sandbox.network import Gateway
from drone.tools.web.watched import TICK, watched

Watch = Callable[[], None]
"""Called many times a second; raises when the wait has to end."""
T = TypeVar("T")
MOST_BYTES = 6 * 1000 * 1000
"""Of a whole answer. http.client alone would read without limit where a chunk's size is negative."""
_SEND_SECONDS = 10.0
_BUFFER = 64 * 1024


class AnswerTooLarge(Exception):
    """The answer has more than MOST_BYTES."""


class GatewayConnection(HTTPConnection):
    """Connects only through the gateway. With `tls`, it encrypts, and verifies the certificate for the host's name."""

    def __init__(self, host: str, port: int, gateway: Gateway, watch: Watch, tls: ssl.SSLContext | None) -> None:
        super().__init__(host, port)
        self.default_port = 443 if tls else 80
        """The header Host does not name it."""
        self._gateway, self._watch, self._tls = gateway, watch, tls

    def connect(self) -> None:
        """Raises Refusal, OSError (also for TLS), and what the watch raises."""
        sock = watched(lambda: self._gateway.connect(self.host, self.port), self._watch, socket.socket.close)
        if self._tls is not None:
            sock = _encrypted(sock, self._tls, self.host, self._watch)
        sock.settimeout(TICK)
        self.sock = cast("Any", _WatchedSocket(sock, self._watch))


def _encrypted(plain: socket.socket, tls: ssl.SSLContext, host: str, watch: Watch) -> socket.socket:
    with plain:  # wrapping takes its descriptor away; otherwise it is closed here
        sock = tls.wrap_socket(plain, server_hostname=host, do_handshake_on_connect=False)
    try:
        sock.settimeout(TICK)
        _patiently(sock.do_handshake, watch)
    except BaseException:
        sock.close()
        raise
    return sock


class _WatchedSocket:
    """The part of a socket that http.client uses."""

    def __init__(self, sock: socket.socket, watch: Watch) -> None:
        self._sock, self._watch = sock, watch
        self._is_read = False

    def sendall(self, data: bytes) -> None:
        # A request is smaller than the system's buffer: this waits only for a server that accepts nothing at all.
        self._sock.settimeout(_SEND_SECONDS)
        self._sock.sendall(data)
        self._sock.settimeout(TICK)

    def makefile(self, _mode: str) -> io.BufferedReader:
        self._is_read = True
        return io.BufferedReader(_WatchedReads(self._sock, self._watch), _BUFFER)

    def close(self) -> None:
        # http.client closes its connection before the body is read; the reader closes it afterwards.
        if not self._is_read:
            self._sock.close()


class _WatchedReads(io.RawIOBase):
    def __init__(self, sock: socket.socket, watch: Watch) -> None:
        self._sock, self._watch = sock, watch
        self._left = MOST_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        received = _patiently(lambda: self._sock.recv_into(buffer), self._watch)
        self._left -= received
        if self._left < 0:
            raise AnswerTooLarge
        return received

    def close(self) -> None:
        self._sock.close()
        super().close()


def _patiently(act: Callable[[], T], watch: Watch) -> T:
    """Repeat an action on a socket with a short time limit until it is done."""
    while True:
        watch()
        try:
            return act()
        except TimeoutError:
            continue
