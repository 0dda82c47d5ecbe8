"""One signed message to one receiver: to the checked address, within a time limit, without following redirects."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from standardwebhooks import Webhook as Signer

from control_plane.automation.task_templates import one_line
from control_plane.automation.webhook_addresses import Target, Unsent, read_url, resolve
from shared.errors import Invalid
from shared.terminal.command_line import version

SECONDS = 15.0
MAX_ANSWER = 64 * 1024
GONE = 410


@dataclass(frozen=True)
class WebhookMessage:
    """One webhook message and its receiver."""

    id: str
    event: str
    at: datetime
    data: Mapping[str, Any]
    url: str
    secret: str


@dataclass(frozen=True)
class DeliveryResult:
    """How one delivery ended: the receiver's status, or the reason why it did not answer."""

    status: int | None
    error: str
    """Empty if the receiver accepted the message."""
    body: bytes = b""
    """The beginning of the answer to an accepted message."""


@dataclass(frozen=True)
class OutgoingRequest:
    """A POST to an address that a user named."""

    url: str
    headers: Mapping[str, str]
    body: bytes


def post(message: WebhookMessage, now: datetime, *, inside_allowed: bool, seconds: float = SECONDS) -> DeliveryResult:
    """Send the message once. Every failure is reported in the result."""
    body = json.dumps({"type": message.event, "timestamp": message.at.isoformat(), "data": message.data})
    request = OutgoingRequest(message.url, _headers(message, now, body), body.encode())
    return send(request, inside_allowed=inside_allowed, seconds=seconds)


def send(request: OutgoingRequest, *, inside_allowed: bool, seconds: float = SECONDS) -> DeliveryResult:
    """Send the request once. Every failure is reported in the result."""
    try:
        target = read_url(request.url)
        addresses = resolve(target, inside_allowed=inside_allowed)
        headers = {"Host": target.authority, **_OWN_HEADERS, "User-Agent": f"Dronefleet/{version()}", **request.headers}
        with _connected(target, addresses, seconds) as connection:
            connection.request("POST", target.path, request.body, headers)
            response = connection.getresponse()
            return _answer(response.status, response.getheader("Location"), _beginning(response))
    except TimeoutError:
        return DeliveryResult(None, f"no response within {seconds:g} s")
    except (Unsent, Invalid) as error:
        return DeliveryResult(None, str(error))
    # ValueError: http.client raises it for an invalid header or status line.
    except (OSError, http.client.HTTPException, ValueError) as error:
        return DeliveryResult(
            None, f"no response: {getattr(error, 'strerror', None) or error or type(error).__name__}"[:300]
        )


def _beginning(response: http.client.HTTPResponse) -> bytes:
    """The beginning of the body. The status has already decided, so a failed read changes nothing."""
    try:
        return response.read(MAX_ANSWER)
    except (OSError, http.client.HTTPException, ValueError):
        return b""


_OWN_HEADERS = {"Accept-Encoding": "identity", "Connection": "close"}


def _headers(message: WebhookMessage, now: datetime, body: str) -> dict[str, str]:
    return {
        "Content-Type": "application/json",
        "webhook-id": message.id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Signer(message.secret).sign(message.id, now, body),
    }


def _answer(status: int, location: str | None, content: bytes) -> DeliveryResult:
    if 200 <= status < 300:
        return DeliveryResult(status, "", content)
    if 300 <= status < 400:
        where = f" to {one_line(location)}" if location else ""
        return DeliveryResult(status, f"HTTP {status}: the redirect{where} was not followed")
    said = one_line(content.decode("utf-8", "replace"))
    return DeliveryResult(status, f"HTTP {status}: {said}" if said else f"HTTP {status}")


@contextmanager
def _connected(target: Target, addresses: list[str], seconds: float) -> Iterator[http.client.HTTPConnection]:
    """A connection to the first address that accepts one. Everything done with it ends after `seconds`."""
    began = time.monotonic()
    line = _Line(_connect(target, addresses, seconds))
    timer = threading.Timer(max(0.0, began + seconds - time.monotonic()), line.cut)
    timer.daemon = True
    timer.start()
    connection = http.client.HTTPConnection(target.host, target.port, timeout=seconds)
    # Otherwise it would reconnect automatically, to whatever address the name then has.
    connection.auto_open = 0
    try:
        if target.scheme == "https":
            line.secure(target.host)
        connection.sock = line.socket
        yield connection
    except (OSError, http.client.HTTPException, ValueError) as error:
        if line.late:
            raise TimeoutError from error
        raise
    finally:
        timer.cancel()
        connection.close()
        line.socket.close()


class _Line:
    """A connected socket that can be cut from another thread."""

    def __init__(self, plain: socket.socket) -> None:
        self.socket = plain
        self.late = False

    def secure(self, host: str) -> None:
        """Use TLS from here on; the certificate is checked against the host name, not the connected address."""
        context = ssl.create_default_context()
        secured = context.wrap_socket(self.socket, server_hostname=host, do_handshake_on_connect=False)
        self.socket = secured
        secured.do_handshake()

    def cut(self) -> None:
        """Wake up the reader: a receiver that sends one byte per second would keep it waiting forever."""
        self.late = True
        try:
            # Not the TLS socket's own shutdown, which would remove the session while the reader uses it.
            socket.socket.shutdown(self.socket, socket.SHUT_RDWR)
        except OSError:
            return


def _connect(target: Target, addresses: list[str], seconds: float) -> socket.socket:
    tried = addresses[:4]
    failure: OSError = OSError("the host has no address")
    for address in tried:
        try:
            made = socket.create_connection((address, target.port), timeout=seconds / len(tried))
        except OSError as error:
            failure = error
            continue
        made.settimeout(seconds)
        return made
    raise failure
