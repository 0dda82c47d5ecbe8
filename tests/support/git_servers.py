"""git over http, https and ssh on loopback: git's own http-backend behind Python's server, and a real sshd."""

from __future__ import annotations

import base64
import getpass
import os
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.support import free_port, needs, wait_until
from tests.support.certificates import Authority


class _GitHandler(BaseHTTPRequestHandler):
    """Passes each request to `git http-backend`, as a web server would through CGI."""

    protocol_version = "HTTP/1.1"
    server: GitHttpServer

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def log_message(self, format: str, *arguments: Any) -> None:
        """Keep the test's output clean."""

    def _serve(self) -> None:
        body = self._body()
        if self.server.status:
            self._answer(self.server.status, {}, b"")
            return
        if self.server.moved_to:
            self._answer(302, {"Location": self.server.moved_to + self.path}, b"")
            return
        is_private = self.server.login and self.path.startswith(f"/{self.server.private}")
        if is_private and self.headers.get("Authorization") != self.server.expected:
            self._answer(401, {"WWW-Authenticate": 'Basic realm="git"'}, b"")
            return
        done = subprocess.run(
            ["git", "http-backend"], input=body, env=self._environment(len(body)), capture_output=True, check=False
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        self._answer(int(headers.pop("Status", "200").split()[0]), headers, content)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        pieces = []
        while size := int(self.rfile.readline().strip(), 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def _environment(self, length: int) -> dict[str, str]:
        address = urlsplit(self.path)
        return {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.server.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "REQUEST_METHOD": self.command,
            "PATH_INFO": address.path,
            "QUERY_STRING": address.query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(length),
            "REMOTE_USER": "tester",
        }

    def _answer(self, status: int, headers: dict[str, str], content: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


class GitHttpServer(ThreadingHTTPServer):
    """Serves all repositories below `root`, for reading and writing; with `login` ("user:password") only to that user.

    `private` is the beginning of the paths for which the login is needed. With `status` it answers every request with
    that status: a failing server. With `moved_to` it redirects every request to that address.
    """

    daemon_threads = True

    def __init__(self, root: Path, login: str = "", *, port: int = 0, status: int = 0) -> None:
        super().__init__(("127.0.0.1", port or free_port()), _GitHandler)
        self.root = root
        self.status = status
        self.moved_to = ""
        self.private = ""
        self.login = login
        self.expected = f"Basic {base64.b64encode(login.encode()).decode()}"
        self.scheme = "http"

    def url(self, name: str, login: str = "") -> str:
        """The URL of a repository, optionally with a user and a password."""
        return f"{self.scheme}://{login and login + '@'}127.0.0.1:{self.server_port}/{name}"

    def encrypt(self, certificate: Path, key: Path) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self.scheme = "https"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors: a client may disconnect, for example because it does not trust the certificate."""


@contextmanager
def serving(server: GitHttpServer) -> Iterator[GitHttpServer]:
    """Run the server in a thread during the `with` block."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def self_signed(directory: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 and its key."""
    pair = Authority.self_signed(directory, "127.0.0.1")
    return pair.certificate, pair.key


class SshServer:
    """An sshd on a free loopback port, with its own host key and one authorized key."""

    def __init__(self, directory: Path) -> None:
        needs("sshd")
        directory.mkdir()
        self.directory = directory
        self.port = free_port()
        for name in ("host", "user"):
            command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(directory / name)]
            subprocess.run(command, check=True, capture_output=True)
        shutil.copy(directory / "user.pub", directory / "authorized_keys")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def command(self) -> str:
        """The core.sshCommand of the owner of a drone's machine."""
        known, key = self.directory / "known_hosts", self.directory / "user"
        return f"ssh -F none -i '{key}' -o IdentitiesOnly=yes -o 'UserKnownHostsFile=\"{known}\"'"

    def url(self, repository: Path) -> str:
        return f"ssh://{getpass.getuser()}@127.0.0.1:{self.port}{repository}"

    def know(self) -> None:
        """Add the host key to the owner's known hosts."""
        host = (self.directory / "host.pub").read_text()
        (self.directory / "known_hosts").write_text(f"[127.0.0.1]:{self.port} {host}")

    def start(self) -> None:
        config = self.directory / "sshd_config"
        config.write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {self.directory / 'host'}\nPidFile none\n"
            f"AuthorizedKeysFile {self.directory / 'authorized_keys'}\nStrictModes no\nUsePAM no\n"
            "PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n"
        )
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        program = shutil.which("sshd") or "/usr/sbin/sshd"
        with (self.directory / "log").open("wb") as log:
            self._process = subprocess.Popen([program, "-D", "-e", "-f", config], stdout=log, stderr=log)
        wait_until(lambda: _answers(self.port))

    def stop(self) -> None:
        if self._process:
            self._process.terminate()
            self._process.wait(60)


@pytest.fixture
def ssh_server(tmp_path: Path) -> Iterator[SshServer]:
    server = SshServer(tmp_path / "sshd")
    server.start()
    yield server
    server.stop()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
