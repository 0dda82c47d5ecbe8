"""What commands in a sandbox can reach, and through what."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psutil
import pytest

from drone.sandbox import CommandResult, CommandSpec, Sandbox, choose
from drone.sandbox.network import AccessKind, NetworkAccess
from drone.sandbox.network.gateway import Gateway
from drone.sandbox.network.namespace import Network
from drone.sandbox.opened import close_all
from shared.errors import FleetFault
from shared.names import new_id
from tests.support import needs
from tests.support.sandboxes import sandbox_of, shell

HELLO = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n"


class Server:
    """Answers each connection with HELLO and closes it; remembers the requests."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = int(self.socket.getsockname()[1])
        self.requests: list[bytes] = []
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            with connection:
                self.requests.append(connection.recv(65536))
                connection.sendall(HELLO)

    def close(self) -> None:
        self.socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self.socket.close()


@pytest.fixture
def server() -> Iterator[Server]:
    with closing(Server()) as found:
        yield found


def run(
    walled: Sandbox, command: str, workspace: Path, kind: AccessKind = "public", *hosts: str, **environ: str
) -> CommandResult:
    """Run a command in this kind of sandbox, with this access."""
    access = NetworkAccess(kind, hosts, chosen=True)
    sandbox = choose(walled.kind, {**os.environ, **environ}, access, trial=False)
    return sandbox.run(CommandSpec(command, workspace=workspace, timeout=60))


def test_the_way_out_stays_open_when_the_thread_of_the_first_command_has_ended(walled: Sandbox, tmp_path: Path) -> None:
    access = NetworkAccess("public", chosen=True)
    sandbox = choose(walled.kind, os.environ, access, trial=False)
    results: list[CommandResult] = []
    for _ in range(2):
        thread = threading.Thread(
            target=lambda: results.append(sandbox.run(CommandSpec("echo hello", workspace=tmp_path, timeout=60)))
        )
        thread.start()
        thread.join()
    assert [(result.return_code, result.output) for result in results] == [(0, "hello\n")] * 2


@contextmanager
def mounts_that_come_and_go() -> Iterator[None]:
    """A mount of this machine that vanishes and appears all the time, as with containers."""
    name, end = f"t{new_id()[:8]}", threading.Event()

    def change() -> None:
        while not end.is_set():
            for verb in ("add", "del"):
                subprocess.run(["ip", "netns", verb, name], check=False, capture_output=True)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


def test_a_way_out_is_made_although_mounts_of_the_machine_come_and_go(tmp_path: Path) -> None:
    needs("ip")
    if os.geteuid() != 0:
        pytest.skip("network namespaces can be made by root alone")
    sandbox_of("bwrap")
    with mounts_that_come_and_go():
        for _ in range(15):
            network = Network(Gateway(NetworkAccess("public", chosen=True), {}))
            assert network.connected()[0]
            network.close()


def test_what_worked_when_the_drone_started_is_never_replaced_by_the_machines_own_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho no more namespaces >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    before, never = (Network(Gateway(NetworkAccess("public", works=works), {})) for works in (True, False))
    for _ in range(2):
        with pytest.raises(FleetFault) as refused:
            before.connected()
        assert "no more namespaces" in refused.value.why
    assert (before.access.kind, never.connected(), never.access.kind) == ("public", ([], [], {}), "host")


def test_the_machines_own_ports_are_out_of_reach(walled: Sandbox, server: Server, tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{server.port}"
    direct = f"curl -sS --noproxy '*' {url} && echo reached; echo > /dev/tcp/127.0.0.1/{server.port} && echo reached"
    through = f"curl -fsS --noproxy '' {url} && echo reached; curl -fsS -p --noproxy '' {url} && echo reached"
    result = run(walled, f"{direct}; {through}", tmp_path)
    assert ("reached" in result.output, server.requests) == (False, [])
    assert result.refused == (f"port {server.port} is not allowed, only HTTP on port 80 and HTTPS on port 443",)


def test_abstract_sockets_and_other_protocols_do_not_lead_out(walled: Sandbox, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind("\0dronefleet-test-wall")
        abstract.listen()
        connect = 'import socket; socket.socket(socket.AF_UNIX).connect("\\0dronefleet-test-wall")'
        result = run(walled, f"python3 -c '{connect}'; echo > /dev/udp/192.0.2.1/53", tmp_path)
    assert "ConnectionRefusedError" in result.output
    assert "unreachable" in result.output


def test_a_host_of_the_owners_list_is_reached_by_request_and_by_tunnel(
    walled: Sandbox, server: Server, tmp_path: Path
) -> None:
    curl = f"curl -sS --noproxy '' http://127.0.0.1:{server.port}/path?x=1"
    assert run(walled, f"{curl}; {curl} -p", tmp_path, "hosts", f"127.0.0.1:{server.port}").output == "hello\n" * 2
    assert [request.startswith(b"GET /path?x=1 HTTP/1.1\r\n") for request in server.requests] == [True] * 2
    assert b"Proxy-" not in b"".join(server.requests)


def test_a_commands_own_server_can_be_reached(walled: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "page").write_text("mine\n")
    serve = "python3 -m http.server 8765 >/dev/null 2>&1 &"
    ask = "until curl -s localhost:8765/page; do sleep 0.1; done"
    assert run(walled, f"{serve} {ask}", tmp_path).output == "mine\n"


NO_REQUESTS = (
    *(b"GET / HTTP/1.1", b"GET http:///x HTTP/1.1", b"CONNECT HTTP/1.1", b"FETCH ftp://127.0.0.1/ HTTP/1.1"),
    *(b"\x00\xff", b"A" * 70000),
)


def test_two_hosts_through_one_connection_are_two_requests_and_what_is_none_for_a_proxy_is_refused(
    bwrap: Sandbox, server: Server, tmp_path: Path
) -> None:
    access = NetworkAccess("hosts", (f"127.0.0.1:{server.port}",), chosen=True)
    sandbox = choose("bwrap", os.environ, access, trial=False)
    urls = f"http://127.0.0.1:{server.port}/one http://127.0.0.2:{server.port}/two"

    result = shell(sandbox, tmp_path, f"curl -sS --noproxy '' {urls}")
    for number, request in enumerate(NO_REQUESTS):
        (tmp_path / str(number)).write_bytes(request + b"\r\n\r\n")
    asked = "exec 3<>/dev/tcp/127.0.0.1/3128; cat $i >&3; head -1 <&3"
    odd = shell(sandbox, tmp_path, f"for i in $(seq 0 {len(NO_REQUESTS) - 1}); do {asked}; done")

    assert [request.split()[1] for request in server.requests] == [b"/one"]
    assert result.refused == (f"127.0.0.2:{server.port} is not among the hosts that the drone's owner allows",)
    assert odd.output.splitlines() == ["HTTP/1.1 403 Forbidden"] * len(NO_REQUESTS)


def test_the_owners_proxy_is_used_and_its_password_stays_outside(
    walled: Sandbox, server: Server, tmp_path: Path
) -> None:
    proxy = f"http://me:pa55word@127.0.0.1:{server.port}"
    result = run(walled, "env; curl -sS https://93.184.216.34/", tmp_path, https_proxy=proxy)
    assert "pa55word" not in result.output
    assert server.requests[0].startswith(b"CONNECT 93.184.216.34:443 HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic bWU6cGE1NXdvcmQ=" in server.requests[0]


def test_nothing_is_left_of_a_network_that_was_closed(bwrap: Sandbox, tmp_path: Path) -> None:
    before = set(psutil.Process().children())
    shell(bwrap, tmp_path, "true")
    (holder,) = set(psutil.Process().children()) - before
    close_all()
    assert not holder.is_running()
    assert [each.name for each in threading.enumerate() if "proxy" in each.name] == []
