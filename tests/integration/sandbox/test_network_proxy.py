"""What the proxy of the commands passes on: to the host that was allowed, as that host, and until the run ends."""

from __future__ import annotations

import ipaddress
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress

import pytest

from drone.sandbox.network import Gateway, NetworkAccess
from drone.sandbox.network import gateway as ways_out
from drone.sandbox.network.proxy import MAX_CONNECTIONS, Proxy
from tests.support import wait_until
from tests.support.web_pages import page, page_server

LIMIT = 60.0


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0), backlog=MAX_CONNECTIONS) as listener:
        listener.settimeout(LIMIT)
        yield listener


def started(gateway: Gateway) -> tuple[Proxy, tuple[str, int]]:
    """A proxy, and its address."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=MAX_CONNECTIONS)
    proxy = Proxy(listener, gateway)
    proxy.start()
    return proxy, listener.getsockname()


@pytest.fixture
def proxy() -> Iterator[tuple[str, int]]:
    proxy, address = started(Gateway(NetworkAccess("host"), {}))
    yield address
    proxy.close()


def passed_on(proxy: tuple[str, int], server: socket.socket, lines: list[bytes]) -> list[bytes]:
    """The head that the server receives."""
    with socket.create_connection(proxy, LIMIT) as client:
        client.sendall(b"\r\n".join([*lines, b"", b""]))
        connection, _ = server.accept()
        with closing(connection):
            connection.settimeout(LIMIT)
            return connection.recv(65536).removesuffix(b"\r\n\r\n").split(b"\r\n")


OTHER_HOSTS = [
    [b"Host: other.example"],
    [b"host: other.example", b"HOST: third.example"],
    [b"Host : other.example"],
    [b" Host: other.example"],
    [b"X-A: 1", b"\tHost: other.example"],
    [],
]


def test_a_request_names_the_host_that_was_allowed_whatever_its_client_says(
    proxy: tuple[str, int], server: socket.socket
) -> None:
    port = server.getsockname()[1]
    for headers in OTHER_HOSTS:
        for user in (b"", b"user:password@"):
            line = b"GET http://%b127.0.0.1:%d/a?b HTTP/1.1" % (user, port)
            head = passed_on(proxy, server, [line, *headers, b"Accept: */*"])
            assert head[:2] == [b"GET /a?b HTTP/1.1", b"Host: 127.0.0.1:%d" % port], headers
            assert [each for each in head if b"other.example" in each or b"third.example" in each] == []


def test_a_line_end_that_hides_a_header_is_refused(proxy: tuple[str, int], server: socket.socket) -> None:
    port = server.getsockname()[1]
    for hidden in (b"X: 1\nHost: other.example", b"X: 1\rHost: other.example", b"X: 1\n"):
        with socket.create_connection(proxy, LIMIT) as client:
            client.sendall(b"GET http://127.0.0.1:%d/ HTTP/1.1\r\n%b\r\n\r\n" % (port, hidden))
            assert client.recv(65536).startswith(b"HTTP/1.1 403 "), hidden


PUBLIC, INSIDE, OWN = "93.184.216.34", "255.255.255.255", "224.0.0.1"
"""Nothing accepts connections at the last two, in any network of the machine."""


def test_the_owners_proxy_is_not_used_for_what_no_proxy_names_nor_for_this_machine(
    server: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {"public.example": PUBLIC, "git.inside.example": INSIDE, "own.example": OWN, "local.example": "127.0.0.1"}
    monkeypatch.setattr(ways_out, "own_addresses", lambda: frozenset({ipaddress.ip_address(OWN)}))
    with page_server({f"{PUBLIC}:443": page("", status="503 Service Unavailable")}) as owners:
        environ = {"https_proxy": f"http://{owners.place}", "NO_PROXY": "other.example, inside.example"}
        gateway = Gateway(NetworkAccess("host"), environ, lambda host, _port: [known[host.lower()]])
        for host in ("public.example", "Git.Inside.example", "own.example"):
            with suppress(OSError):
                gateway.connect(host, 443)
        with gateway.connect("local.example", server.getsockname()[1]):
            server.accept()[0].close()
    assert [each.split(" ")[1] for each in owners.requests] == [f"{PUBLIC}:443"]


def threads_of_proxies() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "network proxy"]


def asking(address: tuple[str, int], server: socket.socket) -> socket.socket:
    """A client whose request for a page of the server was sent."""
    client = socket.create_connection(address, LIMIT)
    client.sendall(b"GET http://127.0.0.1:%d/ HTTP/1.1\r\n\r\n" % server.getsockname()[1])
    return client


def test_the_end_of_a_run_ends_its_connections_also_to_a_server_that_never_answers(server: socket.socket) -> None:
    proxy, address = started(Gateway(NetworkAccess("host"), {}))
    with asking(address, server), server.accept()[0] as connection:
        connection.settimeout(LIMIT)
        assert connection.recv(65536).startswith(b"GET / ")
        proxy.close()
        wait_until(lambda: not threads_of_proxies())
        assert connection.recv(65536) == b""


class SlowGateway(Gateway):
    """Connects to nothing until it is released."""

    def __init__(self) -> None:
        super().__init__(NetworkAccess("host"), {})
        self.asked: list[str] = []
        self.released = threading.Event()

    def connect(self, host: str, port: int) -> socket.socket:
        self.asked.append(host)
        self.released.wait(LIMIT)
        return super().connect(host, port)


def test_the_end_of_a_run_waits_for_no_connection_and_sends_nothing_afterwards(server: socket.socket) -> None:
    gateway = SlowGateway()
    proxy, address = started(gateway)
    with ExitStack() as stack:
        for _ in range(MAX_CONNECTIONS):
            stack.enter_context(asking(address, server))
        wait_until(lambda: len(gateway.asked) == MAX_CONNECTIONS)
        proxy.close()
        assert len(threads_of_proxies()) >= MAX_CONNECTIONS
        gateway.released.set()
        for _ in range(MAX_CONNECTIONS):
            with server.accept()[0] as connection:
                connection.settimeout(LIMIT)
                assert connection.recv(65536) == b""
    wait_until(lambda: not threads_of_proxies())
