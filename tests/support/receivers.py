"""Receivers of webhooks: real HTTP servers that keep their requests and answer as configured."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest


@dataclass(frozen=True)
class Sent:
    """One request."""

    path: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes


@dataclass
class Receiver:
    """A server on loopback. It sends the `answers` in order, and the last one repeatedly."""

    answers: list[int] = field(default_factory=lambda: [204])
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    sent: list[Sent] = field(default_factory=list)
    open: threading.Event = field(default_factory=threading.Event)
    """While it is not set, requests wait for their answer."""
    drips: bool = False
    """Sends an endless status line, one byte at a time."""
    closed: threading.Event = field(default_factory=threading.Event)
    server: ThreadingHTTPServer = field(init=False)

    def __post_init__(self) -> None:
        self.open.set()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"receiver": self}))
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def port(self) -> int:
        return int(self.server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/fleet"

    def encrypt(self, certificate: Path, key: Path) -> None:
        """Speak TLS from here on."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)

    def ids(self) -> list[str]:
        """The ids of the received messages, in order of arrival."""
        return [each.headers["webhook-id"] for each in self.sent]

    def close(self) -> None:
        self.closed.set()
        self.open.set()
        self.server.shutdown()
        self.server.server_close()


class _Handler(BaseHTTPRequestHandler):
    receiver: Receiver

    def do_POST(self) -> None:
        receiver = self.receiver
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        receiver.sent.append(Sent(self.path, {k.lower(): v for k, v in self.headers.items()}, body))
        with suppress(OSError):
            if receiver.drips:
                self._drip()
            receiver.open.wait()
            self._answer(receiver.answers.pop(0) if len(receiver.answers) > 1 else receiver.answers[0])

    def do_GET(self) -> None:
        self.do_POST()

    def _drip(self) -> None:
        while not self.receiver.closed.wait(0.05):
            self.wfile.write(b"x")
            self.wfile.flush()

    def _answer(self, status: int) -> None:
        self.send_response(status)
        for name, value in self.receiver.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(self.receiver.body)))
        self.end_headers()
        self.wfile.write(self.receiver.body)

    def log_message(self, *_: Any) -> None:
        """Log nothing."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A receiver that accepts everything."""
    made = Receiver()
    yield made
    made.close()


@pytest.fixture
def second_receiver() -> Iterator[Receiver]:
    """Another one."""
    made = Receiver()
    yield made
    made.close()
