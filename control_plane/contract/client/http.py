"""HTTP for the command line: sends a request, returns a document or raises the fleet's own error.

httpx is imported by the first request, so that `fleet --help` stays fast.
"""

from __future__ import annotations

import secrets
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast
from urllib.parse import quote

from control_plane.contract.client.refusals import CUT_OFF, not_a_fleet, refusal, unreachable
from shared.backoff import delay
from shared.clock import Clock, SystemClock
from shared.errors import FleetFault, Invalid, NotFound, TooOften, Unauthenticated, Unreachable
from shared.loopback import http_options
from shared.terminal.boundary import version

if TYPE_CHECKING:
    import httpx

    from control_plane.contract.declarations.operation import Operation
    from control_plane.contract.documents.base import Request

Doc = dict[str, Any]
USER_AGENT = "dronefleet"
"""How the command line names itself, for the audit log."""
REPEATS_S = 15.0
"""How long a request that was cut off is repeated while no server answers."""


class HttpCalls:
    """One control plane at one address, for one caller and one organization."""

    def __init__(  # noqa: PLR0913 - what is to be known about a server
        self,
        url: str,
        token: str | None = None,
        organization: str = "default",
        *,
        timeout_s: float = 30.0,
        token_from: str = "",
        ca_file: str = "",
        traceparent: str = "",
        clock: Clock | None = None,
    ) -> None:
        """`token_from` says where the token was found, for the error of a wrong one.

        `ca_file`: authorities to trust besides the machine's. `traceparent`: the span that the requests belong to.
        """
        self.url = url.rstrip("/")
        self.organization = organization
        self._token = token
        self._timeout_s = timeout_s
        self._token_from = token_from
        self._ca_file = ca_file
        self._traceparent = traceparent
        self._clock = clock or SystemClock()
        self._http: httpx.Client | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; the client opens new ones if it is used again."""
        if self._http is not None:
            self._http.close()
            self._http = None

    def call(
        self,
        operation: Operation,
        request: Request | None = None,
        *,
        idempotency_key: str | None = None,
        **names: str,
    ) -> Any:
        """Call an operation: returns its document, or list of documents, as parsed JSON.

        `names` are those in its path. A request that takes an idempotency key and was cut off is repeated for some
        seconds with the same key, so that it never counts twice; if no server answers, the error names the key.
        """
        values = {name: part(value) for name, value in {"organization": self.organization, **names}.items()}
        path = operation.path.format_map(values)
        options: dict[str, Any] = {}
        if request is not None:
            fields = request.model_dump(mode="json", by_alias=True, exclude_unset=True)
            filters = {name: value for name, value in fields.items() if value is not None}
            options = {"params": filters} if operation.takes_filters else {"json": fields}
        if operation.answers_within is not None:
            options["timeout"] = answer_timeout(operation.answers_within)
        if not operation.idempotent:
            return self._json(operation.method, path, **options)
        key = _checked_key(idempotency_key) if idempotency_key else secrets.token_hex(16)
        options["headers"] = {"Idempotency-Key": key}
        try:
            return self._json(operation.method, path, **options)
        except Unreachable as error:
            if error.code != CUT_OFF:
                raise
            error.next = f"fleet {_words(operation)} … --idempotency-key {key}    repeats it safely"
            return self._repeated(error, operation.method, path, **options)

    def _repeated(self, cut_off: Unreachable, method: str, path: str, **options: Any) -> Any:
        """The answer to the request that was cut off; raises that error if no server answers within some seconds.

        A server that crashed is not back at once, and then its database may not be.
        """
        until, attempt = self._clock.monotonic() + REPEATS_S, 0
        while True:
            try:
                return self._json(method, path, **options)
            except (FleetFault, TooOften):
                if self._clock.monotonic() >= until:
                    raise cut_off from None
            attempt += 1
            self._clock.sleep(delay(attempt, base=0.25))

    def _object(self, method: str, path: str, **options: Any) -> Doc:
        return cast("Doc", self._json(method, path, **options))

    def _json(self, method: str, path: str, **options: Any) -> Any:
        response = self._request(method, path, **options)
        try:
            return response.json()
        except ValueError as error:
            raise not_a_fleet(self.url, response) from error

    def _request(self, method: str, path: str, **options: Any) -> httpx.Response:
        import httpx

        params = {**options.pop("params", {}), "org": self.organization}
        try:
            response = self._connection().request(method, f"/api/v1{path}", params=params, **options)
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise unreachable(self.url, error) from error
        if not response.is_success:
            raise refusal(self.url, response, self._token_from)
        return response

    def _connection(self) -> httpx.Client:
        if self._http is None:
            import httpx

            self._http = httpx.Client(
                base_url=self.url,
                timeout=answer_timeout(self._timeout_s),
                headers=self._headers(),
                **http_options(self.url, self._ca_file),
            )
        return self._http

    def _headers(self) -> dict[str, str]:
        named = {"User-Agent": f"{USER_AGENT}/{version()}"}
        if self._traceparent:
            named["traceparent"] = self._traceparent
        if not self._token:
            return named
        if not _fits_header(self._token):
            raise Unauthenticated(
                "this is no API token: a token has letters, digits and underscores only",
                code="E-TOKEN-UNKNOWN",
                why=f"the token is from {self._token_from}" if self._token_from else "",
                next="ask an admin for: fleet api-token add --role ROLE    then set FLEET_API_TOKEN",
            )
        return {**named, "Authorization": f"Bearer {self._token}"}


def _checked_key(key: str) -> str:
    if not _fits_header(key):
        raise Invalid(
            "the idempotency key may have printable ASCII characters only",
            code="E-REQUEST",
            next="choose another key, of letters, digits and hyphens",
        )
    return key


def _fits_header(text: str) -> bool:
    return text.isascii() and text.isprintable()


def _words(operation: Operation) -> str:
    """The command of an operation."""
    command = operation.command
    return getattr(command, "words", "") or getattr(command, "name", "")


def answer_timeout(seconds: float) -> httpx.Timeout:
    """So long for the answer, but at most 10 s for the connection."""
    import httpx

    return httpx.Timeout(seconds, connect=min(10.0, seconds))


def part(name: str) -> str:
    """`name` as one path segment; an empty one would turn `show` into `ls`."""
    if not name or name in {".", ".."}:
        raise NotFound(f"{name!r} is not a valid name", code="E-NAME")
    return quote(name, safe="")
