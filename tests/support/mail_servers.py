"""A mail server that keeps what it receives: a stand-in for the server of FLEET_SMTP_URL, over real SMTP."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from tests.support import wait_until

USER, PASSWORD = "fleet", "correct horse"


@dataclass
class MailServerStandIn:
    """A server on loopback, in a thread of its own. It sends the `answers` in order, and the last one repeatedly."""

    answers: list[str] = field(default_factory=lambda: ["250 OK"])
    tls: ssl.SSLContext | None = None
    """With it, the server offers STARTTLS, and accepts nothing before it."""
    wants_log_in: bool = False
    accepts: threading.Event = field(default_factory=threading.Event)
    """While it is not set, messages wait for their answer."""
    received: list[EmailMessage] = field(default_factory=list)
    """Accepted messages."""
    recipients: list[str] = field(default_factory=list)
    attempts: int = 0
    port: int = 0
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)

    def start(self) -> None:
        self.accepts.set()
        self._thread = threading.Thread(target=self._serve, name="mail server", daemon=True)
        self._thread.start()
        wait_until(lambda: self.port)

    def close(self) -> None:
        self.accepts.set()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()

    @property
    def url(self) -> str:
        """As in FLEET_SMTP_URL."""
        user = f"{USER}:{PASSWORD.replace(' ', '%20')}@" if self.wants_log_in else ""
        return f"smtp://{user}127.0.0.1:{self.port}?tls={'starttls' if self.tls else 'none'}"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        """Called by aiosmtpd with each message."""
        self.attempts += 1
        while not self.accepts.is_set():
            await asyncio.sleep(0.02)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if answer.startswith("250"):
            content = envelope.original_content or b""
            self.received.append(message_from_bytes(content, policy=policy.default))  # type: ignore[arg-type]
            self.recipients += envelope.rcpt_tos
        return answer

    def _protocol(self) -> SMTP:
        return SMTP(
            self,
            hostname="mail.example",
            tls_context=self.tls,
            require_starttls=self.tls is not None,
            auth_required=self.wants_log_in,
            auth_require_tls=self.tls is not None,
            authenticator=_check if self.wants_log_in else None,
            loop=self._loop,
        )

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(self._loop.create_server(self._protocol, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        self._loop.run_forever()
        server.close()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))


def _check(_server: SMTP, _session: Session, _envelope: Envelope, _mechanism: str, data: Any) -> AuthResult:
    right = isinstance(data, LoginPassword) and data == LoginPassword(USER.encode(), PASSWORD.encode())
    # Not handled: the server itself answers that it was wrong.
    return AuthResult(success=right, handled=False)


@pytest.fixture
def mail_server() -> Iterator[MailServerStandIn]:
    """A server that accepts everything, without encryption."""
    server = MailServerStandIn()
    server.start()
    yield server
    server.close()
