"""A small HTTP server in place of the control plane's registration API, for answers that a real one never gives.

It seals real credentials with a real key, and can be configured to use another identity, to refuse, to send nonsense or
to have a wrong clock.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from shared.envelope import Binding, key_id, new_private_key, public_key, seal
from shared.registration import Credentials, JoinTokenString, RegistrationAnswer

DRONE_ID = "0123456789ab"


@dataclass
class Registrar:
    """The server's state and behaviour; the test changes it while the server runs."""

    key: bytes = field(default_factory=new_private_key)
    url: str = ""
    bound_to: str = DRONE_ID
    """The drone that the credentials are sealed for."""
    problem: tuple[int, dict[str, Any]] | None = None
    """Answer everything with this status and document."""
    nonsense: bool = False
    clock_ahead: timedelta = timedelta(0)
    answers: threading.Event = field(default_factory=threading.Event)
    """While it is cleared, requests are accepted and wait for their answer."""
    requests: list[dict[str, Any]] = field(default_factory=list)
    """Every request: method, path, authorization, body."""

    def __post_init__(self) -> None:
        self.answers.set()

    @property
    def token(self) -> str:
        """A join token that names this server's key."""
        return str(JoinTokenString(secret="s3cret", fingerprint=key_id(public_key(self.key))))

    def answer(self, request: dict[str, Any]) -> RegistrationAnswer:
        """The answer to a registration, with credentials sealed to the key in the request."""
        credentials = Credentials(broker_url="redis://d:pw@127.0.0.1:1/0", api_token="fd_token")
        return RegistrationAnswer(
            drone_id=DRONE_ID,
            name=request["name"],
            public_key=base64.b64encode(public_key(self.key)).decode(),
            credentials=seal(
                credentials.model_dump_json(),
                Binding(direction="credentials", drone=self.bound_to),
                sender=self.key,
                recipient=base64.b64decode(request["public_key"]),
                issued_at=datetime.now(UTC),
            ),
            labels={**request["labels"], "fixed": "yes"},
        )


@contextmanager
def registrar() -> Iterator[Registrar]:
    """A running registrar on a free loopback port."""
    state = Registrar()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Door", (_Door,), {"registrar": state}))
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Door(BaseHTTPRequestHandler):
    """Answers as configured in its registrar."""

    registrar: Registrar

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._note(body)
        self._reply(201, self.registrar.answer(body).model_dump(mode="json"))

    def do_GET(self) -> None:
        self._note(None)
        self._reply(200, {"status": "ok"})

    def do_DELETE(self) -> None:
        self._note(None)
        self._reply(200, {})

    def date_time_string(self, timestamp: float | None = None) -> str:
        return format_datetime(datetime.now(UTC) + self.registrar.clock_ahead, usegmt=True)

    def log_message(self, *_: Any) -> None:
        """Log nothing, to keep the test's output clean."""

    def _note(self, body: Any) -> None:
        authorization = self.headers.get("Authorization")
        seen = {"method": self.command, "path": self.path, "authorization": authorization, "body": body}
        self.registrar.requests.append(seen)

    def _reply(self, status: int, document: dict[str, Any]) -> None:
        self.registrar.answers.wait(timeout=60)
        if self.registrar.problem:
            status, document = self.registrar.problem
        nonsense = self.registrar.nonsense
        text = b"<html>a router's page</html>" if nonsense else json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html" if nonsense else "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
