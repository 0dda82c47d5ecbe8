"""Fetches one page over HTTP: redirects, limits, and failures, each in one sentence that tells what to do."""

from __future__ import annotations

import io
import socket
import ssl
import time
import zlib
from collections.abc import Callable
from functools import cached_property
from http.client import HTTPConnection, HTTPException, HTTPResponse, responses
from typing import Any, TypeVar, cast

from drone.sandbox.network import Gateway, Refusal, UnknownHost
from drone.sandbox.protocol import Check
from drone.tools.web.page_address import PageAddress, address_of, brief, joined
from drone.tools.web.page_body import FetchedPage, page_of, too_large, words_of
from drone.tools.web.watched import TICK, watched
from drone.tools.wrong_use import WrongUse
from shared.redaction import cut_short
from shared.tls import client_context, failed_handshake

SECONDS = 30.0
"""For a page with all its redirects."""
MOST_REDIRECTS = 5
_MOVED = frozenset({301, 302, 303, 307, 308})
_SHOWN = 200
"""Characters of a server's words in an error."""
_HEADERS = {
    "User-Agent": "dronefleet",
    "Accept": "text/markdown, text/html;q=0.9, text/plain;q=0.8, application/json;q=0.8, */*;q=0.5",
    "Accept-Encoding": "gzip",
    "Connection": "close",
}
_WHAT_TO_DO = {
    401: "it requires a login, which web_fetch has not; use another source",
    403: "it refuses web_fetch; use another source",
    404: "check the address, or look for a link on another page",
    410: "it was removed; use another source",
    429: "it refuses more requests for now; use another source",
}


class PageRequests:
    """Fetches pages through a gateway."""

    def __init__(self, gateway: Gateway, check: Check, seconds: float = SECONDS) -> None:
        """`check` is called while a server is waited for, and may raise to end the run."""
        self._gateway, self._check, self._seconds = gateway, check, seconds

    def get(self, url: str) -> FetchedPage:
        """The page at `url`, after redirects. Raises WrongUse if there is none to show, and what `check` raises."""
        if self._gateway.access.kind == "none":
            raise WrongUse("this run has no network: the drone's owner allows none; use what is in the workspace")
        at, deadline = url, time.monotonic() + self._seconds

        def watch() -> None:
            self._check()
            if time.monotonic() > deadline:
                raise WrongUse(f"{brief(at)} did not answer completely within {self._seconds:g} s; use another source")

        for _ in range(MOST_REDIRECTS + 1):
            answer = self._answer(at, watch)
            if isinstance(answer, FetchedPage):
                return answer
            at = joined(at, answer)
        raise WrongUse(
            f"more than {MOST_REDIRECTS} redirects from {brief(url)}, at last to {brief(at)}; use another source"
        )

    def _answer(self, url: str, watch: _Watch) -> FetchedPage | str:
        """The page, or where the server redirects to."""
        address = address_of(url)
        tls = self._tls if address.encrypted else None
        connection = _GatewayConnection(address.host, address.port, self._gateway, watch, tls)
        try:
            connection.request("GET", address.target, headers=_HEADERS)
            with connection.getresponse() as response:
                return _judged(url, response)
        except UnknownHost as unknown:
            raise WrongUse(f"{unknown}; check the address") from unknown
        except Refusal as refusal:
            raise WrongUse(f"{refusal} (network policy of this drone); use another source") from refusal
        except _AnswerTooLarge as error:
            raise too_large(url) from error
        except (HTTPException, OSError, ValueError, zlib.error) as error:  # ValueError: a chunk of -5 bytes
            raise WrongUse(_failure(address, error)) from error
        finally:
            connection.close()

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        return client_context()


def _judged(url: str, response: HTTPResponse) -> FetchedPage | str:
    moved = response.getheader("Location")
    if response.status in _MOVED and moved:
        # http.client reads headers as Latin-1; some servers send UTF-8.
        return moved.encode("latin-1", "replace").decode(errors="replace")
    if not 200 <= response.status < 300:
        raise WrongUse(_status(url, response))
    return page_of(url, response)


def _status(url: str, response: HTTPResponse) -> str:
    status = response.status
    what_to_do = _WHAT_TO_DO.get(
        status, "use another source" if status < 500 else "try it later, or use another source"
    )
    words = cut_short(words_of(response), _SHOWN)
    says = f" ({words})" if words else ""
    return f"{brief(url)} answered {status} {responses.get(status, '')}{says}; {what_to_do}"


def _failure(address: PageAddress, error: Exception) -> str:
    place = f"{address.host}:{address.port}"
    if failed := failed_handshake(f"//{place}", error, trust=""):
        return f"{failed.what} ({failed.why}); use another source"
    if isinstance(error, OSError) and not isinstance(error, HTTPException):
        return f"{place} cannot be reached: {error.strerror or error}; check the address, or use another source"
    words = cut_short(str(error) or type(error).__name__, _SHOWN)
    return f"the answer of {place} is broken ({words}); use another source"


# --- a connection through the gateway: every wait ends when the run or the time limit does ----------

_Watch = Callable[[], None]
"""Called many times a second; raises when the wait has to end."""
_T = TypeVar("_T")
_MOST_BYTES = 6 * 1000 * 1000
"""Of a whole answer. http.client alone would read without limit where a chunk's size is negative."""
_SEND_SECONDS = 10.0
_BUFFER = 64 * 1024


class _AnswerTooLarge(Exception):
    """The answer has more than `_MOST_BYTES`."""


class _GatewayConnection(HTTPConnection):
    """Connects only through the gateway. With `tls`, it encrypts, and verifies the certificate for the host's name."""

    def __init__(self, host: str, port: int, gateway: Gateway, watch: _Watch, tls: ssl.SSLContext | None) -> None:
        super().__init__(host, port)
        self.default_port = 443 if tls else 80
        """The header Host does not name it."""
        self._gateway, self._watch, self._tls = gateway, watch, tls

    def connect(self) -> None:
        """Raises Refusal, OSError (also for TLS), and what the watch raises."""
        sock = watched(lambda: self._gateway.connect(self.host, self.port), self._watch, socket.socket.close)
        if self._tls is not None:
            sock = _encrypted(sock, self._tls, self.host, self._watch)
        sock.settimeout(TICK)
        self.sock = cast("Any", _WatchedSocket(sock, self._watch))


def _encrypted(plain: socket.socket, tls: ssl.SSLContext, host: str, watch: _Watch) -> socket.socket:
    with plain:  # wrapping takes its descriptor away; otherwise it is closed here
        sock = tls.wrap_socket(plain, server_hostname=host, do_handshake_on_connect=False)
    try:
        sock.settimeout(TICK)
        _patiently(sock.do_handshake, watch)
    except BaseException:
        sock.close()
        raise
    return sock


class _WatchedSocket:
    """The part of a socket that http.client uses."""

    def __init__(self, sock: socket.socket, watch: _Watch) -> None:
        self._sock, self._watch = sock, watch
        self._is_read = False

    def sendall(self, data: bytes) -> None:
        # A request is smaller than the system's buffer: this waits only for a server that accepts nothing at all.
        self._sock.settimeout(_SEND_SECONDS)
        self._sock.sendall(data)
        self._sock.settimeout(TICK)

    def makefile(self, _mode: str) -> io.BufferedReader:
        self._is_read = True
        return io.BufferedReader(_WatchedReads(self._sock, self._watch), _BUFFER)

    def close(self) -> None:
        # http.client closes its connection before the body is read; the reader closes it afterwards.
        if not self._is_read:
            self._sock.close()


class _WatchedReads(io.RawIOBase):
    def __init__(self, sock: socket.socket, watch: _Watch) -> None:
        self._sock, self._watch = sock, watch
        self._left = _MOST_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        received = _patiently(lambda: self._sock.recv_into(buffer), self._watch)
        self._left -= received
        if self._left < 0:
            raise _AnswerTooLarge
        return received

    def close(self) -> None:
        self._sock.close()
        super().close()


def _patiently(act: Callable[[], _T], watch: _Watch) -> _T:
    """Repeat an action on a socket with a short time limit until it is done."""
    while True:
        watch()
        try:
            return act()
        except TimeoutError:
            continue
