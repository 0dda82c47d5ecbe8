"""A host's HTTP API with a token or a password. Neither is ever sent to another host, whatever the answer says."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from urllib.parse import urljoin, urlsplit

import httpx

from drone.sandbox.network import NetworkAccess, Refusal
from drone.sandbox.network.access import Resolve, resolve
from drone.services.pull_request.api import MAX_TEXT, HostRefused, Json, NotLetIn, refusal_of
from shared.loopback import http_options, is_loopback

ANSWER_SECONDS = 30.0
MOST_REDIRECTS = 3
_MOVED = frozenset({301, 302, 307, 308})


@dataclass(frozen=True)
class HttpApi:
    """One API at `root`, with one login."""

    root: str
    """`https://api.github.com`, `https://host/api/v4`."""
    headers: dict[str, str] = field(repr=False)
    """The credentials, and the other headers that the host expects."""
    check: Callable[[], None] = field(default=lambda: None)
    seconds: float = ANSWER_SECONDS
    via: str = "http"
    access: NetworkAccess = field(default_factory=NetworkAccess)
    """Where a redirect to another server may lead."""
    resolve: Resolve = resolve

    def call(self, method: str, path: str, body: dict[str, Json] | None = None) -> Json:
        """Like `HostApi.call`. A redirect within the same server is followed, for example of a renamed repository."""
        address = f"{self.root}/{path}"
        host = urlsplit(self.root).netloc
        with self._client() as http:
            for _ in range(MOST_REDIRECTS):
                self.check()
                try:
                    answer = http.request(method, address, json=body)
                except httpx.HTTPError as error:
                    raise HostRefused(f"{host} cannot be reached: {error or type(error).__name__}") from error
                if answer.status_code not in _MOVED:
                    return _judged(host, answer)
                address = self._moved_to(address, answer)
        raise HostRefused(f"too many redirects from {host}")

    def text(self, path: str) -> str:
        """Like `HostApi.text`. A redirect to another server, as for GitHub's logs, is followed without the login.

        It leads to the public web and what `access` lists, and for an API on this machine also to this machine.
        """
        address = f"{self.root}/{path}"
        host = urlsplit(self.root).netloc
        own = self.headers
        for _ in range(MOST_REDIRECTS):
            self.check()
            with httpx.Client(
                headers=own, timeout=self.seconds, follow_redirects=False, **http_options(address)
            ) as http:
                status, moved, content = _streamed(http, self._checked(http, address), host)
            if status not in _MOVED:
                return content
            there = urljoin(address, moved)
            if not _same_server(address, there):
                own = {}
                if urlsplit(there).scheme != "https" and not is_loopback(there):
                    raise HostRefused(f"{host} redirects to an address that is not encrypted")
            address = there
        raise HostRefused(f"too many redirects from {host}")

    def _checked(self, http: httpx.Client, address: str) -> httpx.Request:
        """The request for a text; to another server, at the address that was checked. Raises HostRefused."""
        request = http.build_request("GET", address)
        if _same_server(self.root, address) or (is_loopback(self.root) and is_loopback(address)):
            return request
        name, port = request.url.host, request.url.port or 443
        try:
            found = self.access.addresses(name, port, self.resolve)
        except Refusal as refusal:
            raise HostRefused(f"{urlsplit(self.root).netloc} redirects elsewhere: {refusal}") from refusal
        # The header Host and the certificate are still those of the name.
        request.url = request.url.copy_with(host=found[0])
        request.extensions["sni_hostname"] = name
        return request

    def _client(self) -> httpx.Client:
        return httpx.Client(
            headers=self.headers, timeout=self.seconds, follow_redirects=False, **http_options(self.root)
        )

    def _moved_to(self, address: str, answer: httpx.Response) -> str:
        """The new address. Raises HostRefused if it is on another server: the credentials are not sent there."""
        moved = urljoin(address, answer.headers.get("location", ""))
        if not _same_server(self.root, moved):
            here, there = urlsplit(self.root).netloc, urlsplit(moved).netloc
            raise HostRefused(f"{here} redirects to {there or 'no host'}; nothing was sent there")
        return str(moved)


def asks_nobody(root: str, path: str, seconds: float = 10.0) -> tuple[int, Json]:
    """Status and answer of a request without any login, which shows the kind of a host; 0 if nothing answers."""
    try:
        with httpx.Client(timeout=seconds, follow_redirects=False, **http_options(root)) as http:
            answer = http.get(f"{root}/{path}")
    except (httpx.HTTPError, httpx.InvalidURL):
        return 0, None
    return answer.status_code, _json(answer)


def _streamed(http: httpx.Client, request: httpx.Request, host: str) -> tuple[int, str, str]:
    """Status, new address and end of the text of an answer. Raises NotLetIn and HostRefused."""
    try:
        with closing(http.send(request, stream=True)) as answer:
            if answer.status_code in _MOVED:
                return answer.status_code, answer.headers.get("location", ""), ""
            if not answer.is_success:
                answer.read()
                _judged(host, answer)
            end = b""
            for piece in answer.iter_bytes():
                end = (end + piece)[-MAX_TEXT:]
            return answer.status_code, "", end.decode(errors="replace")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise HostRefused(f"{host} cannot be reached: {error or type(error).__name__}") from error


def _same_server(one: str, other: str) -> bool:
    return urlsplit(one)[:2] == urlsplit(other)[:2]


def _judged(host: str, answer: httpx.Response) -> Json:
    if answer.status_code == 401:
        raise NotLetIn(f"{host} rejected the login")
    if not answer.is_success:
        raise refusal_of(host, answer.status_code, _json(answer))
    return _json(answer)


def _json(answer: httpx.Response) -> Json:
    try:
        return answer.json()
    except ValueError:
        return None
