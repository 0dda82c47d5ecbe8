"""Fetches one page over HTTP: redirects, limits, and failures, each in one sentence that tells what to do."""

from __future__ import annotations

import ssl
import time
import zlib
from functools import cached_property
from http.client import HTTPException, HTTPResponse, responses

from drone.sandbox.network import Gateway, Refusal, UnknownHost
from drone.sandbox.protocol import Check
from drone.tools.web.connection import AnswerTooLarge, GatewayConnection, Watch
from drone.tools.web.page_address import PageAddress, address_of, brief, joined
from drone.tools.web.page_body import FetchedPage, page_of, too_large, words_of
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

    def _answer(self, url: str, watch: Watch) -> FetchedPage | str:
        """The page, or where the server redirects to."""
        address = address_of(url)
        tls = self._tls if address.encrypted else None
        connection = GatewayConnection(address.host, address.port, self._gateway, watch, tls)
        try:
            connection.request("GET", address.target, headers=_HEADERS)
            with connection.getresponse() as response:
                return _judged(url, response)
        except UnknownHost as unknown:
            raise WrongUse(f"{unknown}; check the address") from unknown
        except Refusal as refusal:
            raise WrongUse(f"{refusal} (network policy of this drone); use another source") from refusal
        except AnswerTooLarge as error:
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
