"""The drone's HTTP client for joining and leaving a fleet (blobs have a separate module)."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import httpx

from shared.errors import FleetError, Invalid, Unreachable
from shared.loopback import http_options
from shared.problems import error_of
from shared.registration import NewKeyAnswer, NewKeyRequest, RegistrationAnswer, RegistrationRequest
from shared.tls import failed_handshake

TRUST = "drone register --ca FILE        with the certificate of its authority, if you trust it"
_TIMEOUT = httpx.Timeout(15, connect=5)


class ControlPlane:
    """A control plane at a URL. Close it, or use it in a `with`."""

    def __init__(self, url: str, *, api_token: str | None = None, ca_file: str = "") -> None:
        """`ca_file`: authorities to trust besides the machine's. Raises Precondition if it cannot be used."""
        self.url = server_url(url)
        headers = {"Authorization": f"Bearer {api_token}"} if api_token else {}
        self._http = httpx.Client(
            base_url=f"{self.url}/api/v1", headers=headers, timeout=_TIMEOUT, **http_options(self.url, ca_file)
        )

    def __enter__(self) -> ControlPlane:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def register(self, request: RegistrationRequest) -> RegistrationAnswer:
        """Join the fleet. Raises Unauthenticated or Forbidden for a bad token, Conflict for a name that is taken."""
        return RegistrationAnswer.model_validate(
            self._send("POST", "/registrations", json=request.model_dump(mode="json")).json()
        )

    def renew_keys(self, envelope: str) -> NewKeyAnswer:
        """Get credentials for the key in the envelope. Raises Conflict if no admin asked for new keys."""
        request = NewKeyRequest(envelope=envelope)
        answer = self._send("POST", "/registrations/self/keys", json=request.model_dump(mode="json"))
        return NewKeyAnswer.model_validate(answer.json())

    def unregister(self) -> None:
        """Leave the fleet; the drone's keys are revoked there at once."""
        self._send("DELETE", "/registrations/self")

    def confirm_registration(self) -> None:
        """Check that this drone is still registered. Raises Unauthenticated if it was removed."""
        self._send("GET", "/registrations/self")

    def server_time(self) -> datetime | None:
        """Check that the server answers; return its clock from the `Date` header, None if there is no valid one."""
        answer = self._send("GET", "/health")
        date = answer.headers.get("Date")
        try:
            return parsedate_to_datetime(date).astimezone(UTC) if date else None
        except ValueError:
            return None

    def _send(self, method: str, path: str, *, json: Any = None) -> httpx.Response:
        """Send a request and return the answer, or raise the error in the answer.

        Raises Unreachable if there is no answer, or if the server is not a control plane.
        """
        try:
            answer = self._http.request(method, path, json=json)
        except httpx.HTTPError as error:
            raise failed_handshake(self.url, error, trust=TRUST) or _unreachable(self.url, error) from error
        if answer.is_success and "json" in answer.headers.get("Content-Type", "json"):
            return answer
        raise _problem(answer, self.url)


def server_url(text: str) -> str:
    """A control plane's URL in normal form: scheme, host, port and path, without a trailing slash.

    Raises Invalid if it is not an http or https URL, or contains a user, a password, a query or a fragment.
    """
    parts = urlsplit(text.strip())
    try:
        sound = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        sound = False
    if not sound or parts.username or parts.password or parts.query or parts.fragment:
        raise Invalid(
            "invalid control plane URL",
            code="E-URL",
            why="expected http:// or https:// with a host, without user, password or query",
            next="drone register --url https://fleet.example.org --token TOKEN",
        )
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))


def _unreachable(url: str, error: httpx.HTTPError) -> Unreachable:
    return Unreachable(
        f"no control plane answers at {url}",
        code="E-NO-SERVER",
        why=str(error) or type(error).__name__,
        next=f"curl {url}/api/v1/health        check the URL, and that `fleet up` is running there",
    )


def _problem(answer: httpx.Response, url: str) -> FleetError:
    """The error in an `application/problem+json` answer, as the class for its status."""
    try:
        document = answer.json()
    except ValueError:
        document = None
    return error_of(answer.status_code, document) or Unreachable(
        f"{url} is not a control plane",
        code="E-NOT-A-FLEET",
        why=f"it answered HTTP {answer.status_code} {answer.reason_phrase}",
        next=f"curl {url}/api/v1/health",
    )
