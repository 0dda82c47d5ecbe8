"""Identity providers: a real one as a process of its own, and one that lies, both on loopback."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import quote

import httpx
from joserfc import jwt
from joserfc.jwk import RSAKey

from tests.support import free_port, wait_until

Doc = dict[str, Any]
CLIENT = "dronefleet"


@dataclass
class MockProvider:
    """The program `oidc-provider-mock`: people log in at it by their id alone."""

    issuer: str
    process: subprocess.Popen[bytes]

    def add(self, subject: str, **claims: object) -> None:
        httpx.put(f"{self.issuer}/users/{quote(subject)}", json=claims).raise_for_status()

    def approve(self, url: str, subject: str) -> str:
        """The address to which it sends the browser of this person."""
        answer = httpx.post(url, data={"sub": subject})
        assert answer.status_code == 302, answer.text
        return answer.headers["location"]

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(timeout=60)


@contextmanager
def mock_provider() -> Iterator[MockProvider]:
    port = free_port()
    command = [sys.executable, "-m", "oidc_provider_mock", "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    provider = MockProvider(f"http://localhost:{port}", process)
    try:
        wait_until(lambda: answers(provider.issuer))
        yield provider
    finally:
        provider.stop()


def answers(issuer: str) -> bool:
    try:
        return httpx.get(f"{issuer}/.well-known/openid-configuration").is_success
    except httpx.HTTPError:
        return False


@dataclass
class LyingProvider:
    """A provider whose answers a test bends; it exchanges every code for an ID token with `claims`."""

    server: ThreadingHTTPServer
    metadata: Doc = field(default_factory=dict)
    claims: Doc = field(default_factory=dict)
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, parameters={"kid": "1"}))
    signing_key: RSAKey | None = None
    """Another key than the published one."""
    header: Doc = field(default_factory=lambda: {"alg": "RS256", "kid": "1"})
    id_token: str | None = None
    """Instead of a signed one."""
    asked: list[str] = field(default_factory=list)
    """The bodies of requests for tokens."""
    faults: dict[str, str] = field(default_factory=dict)
    """What happens at an address instead of an answer: `cut`, `500`, `hang`, else the text that it answers."""
    released: threading.Event = field(default_factory=threading.Event)
    """Ends what hangs."""
    hanging: list[str] = field(default_factory=list)
    """The addresses of requests that hang or hung."""

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    def answer(self, path: str) -> Doc:
        if path == "/.well-known/openid-configuration":
            ends = {"authorization_endpoint": "/authorize", "token_endpoint": "/token", "jwks_uri": "/keys"}
            urls = {name: f"{self.issuer}{end}" for name, end in ends.items()}
            return {"issuer": self.issuer, **urls, **self.metadata}
        if path == "/keys":
            return {"keys": [self.key.as_dict(private=False)]}
        return {"access_token": "a", "token_type": "Bearer", "expires_in": 60, "id_token": self._id_token()}

    def _id_token(self) -> str:
        now = int(time.time())
        usual = {"iss": self.issuer, "aud": CLIENT, "sub": "kim", "iat": now, "exp": now + 60}
        person = {"email": "kim@example.org", "email_verified": True}
        claims = {name: value for name, value in {**usual, **person, **self.claims}.items() if value is not None}
        return self.id_token or jwt.encode(self.header, claims, self.signing_key or self.key)


@contextmanager
def lying_provider() -> Iterator[LyingProvider]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _LyingHandler)
    provider = LyingProvider(server)
    server.provider = provider  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        provider.released.set()
        server.shutdown()
        server.server_close()
        thread.join(timeout=60)


class _LyingHandler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        provider: LyingProvider = self.server.provider  # type: ignore[attr-defined]
        fault = provider.faults.get(self.path)
        if fault == "hang":
            provider.hanging.append(self.path)
            provider.released.wait(60)
        if fault in {"hang", "cut"}:
            self.close_connection = True
            return
        body = (fault or json.dumps(provider.answer(self.path))).encode()
        self.send_response(500 if fault == "500" else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.provider.asked.append(asked)  # type: ignore[attr-defined]
        self.do_GET()

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""
