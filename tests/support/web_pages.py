"""A server on loopback that sends exactly the bytes that a test gives it, for each path."""

from __future__ import annotations

import contextlib
import gzip
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from drone.sandbox.network import Gateway, NetworkAccess
from drone.tools.web import WebFetch
from tests.support.certificates import Pair

Answer = bytes | Callable[[socket.socket, threading.Event], None]
"""The whole answer, or a function that sends it until the event is set or the client goes."""


class PageServer:
    """Closes each connection after its answer."""

    def __init__(self, answers: Mapping[str, Answer], pair: Pair | None = None) -> None:
        self.answers = dict(answers)
        self.requests: list[str] = []
        """The head of each request."""
        self._ended = threading.Event()
        self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH) if pair else None
        if self._tls and pair:
            self._tls.load_cert_chain(pair.certificate, pair.key)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.place = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def url(self, path: str = "/") -> str:
        return f"{'https' if self._tls else 'http'}://{self.place}{path}"

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                self._threads.append(threading.Thread(target=self._serve, args=(connection,)))
                self._threads[-1].start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            connection.settimeout(10)
            with self._tls.wrap_socket(connection, server_side=True) if self._tls else connection as client:
                self._answer(client)

    def _answer(self, client: socket.socket) -> None:
        head = b""
        # What is no request, such as the beginning of TLS, is answered at once.
        while b"\r\n\r\n" not in head and head[:3] in {b"", b"GET"} and (piece := client.recv(65536)):
            head += piece
        if not head:
            return
        self.requests.append(head.decode("latin-1"))
        answer = self.answers.get(self.requests[-1].split(" ")[1], page("", status="404 Not Found"))
        if isinstance(answer, bytes):
            client.sendall(answer)
        else:
            answer(client, self._ended)

    def close(self) -> None:
        self._ended.set()
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        for thread in self._threads:
            thread.join()


@contextmanager
def page_server(answers: Mapping[str, Answer], pair: Pair | None = None) -> Iterator[PageServer]:
    """Such a server for the duration of the block."""
    server = PageServer(answers, pair)
    try:
        yield server
    finally:
        server.close()


def page(
    body: str | bytes,
    kind: str = "text/html; charset=utf-8",
    status: str = "200 OK",
    *,
    packed: bool = False,
    **headers: str,
) -> bytes:
    """A complete answer; `packed`: as gzip."""
    content = body.encode() if isinstance(body, str) else body
    content = gzip.compress(content) if packed else content
    fields = (
        {"Content-Type": kind, "Content-Length": str(len(content))} if kind else {"Content-Length": str(len(content))}
    )
    fields |= {"Content-Encoding": "gzip"} if packed else {}
    fields |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items() if value)
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + content


def moved(to: str, status: str = "302 Found") -> bytes:
    """A redirect."""
    return page("", "", status, Location=to)


def fetcher(*hosts: str, seconds: float = 10.0, check: Callable[[], None] = lambda: None) -> WebFetch:
    """The tool, on a drone whose owner allows these hosts."""
    return WebFetch(Gateway(NetworkAccess("hosts", hosts, chosen=True), {}), check, seconds)
