"""What the HTTP client raises: the server's refusals as the fleet's own errors, no response as Unreachable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shared.errors import FleetError, FleetFault, Unauthenticated, Unreachable
from shared.problems import error_of, kind_of
from shared.tls import failed_handshake

if TYPE_CHECKING:
    import httpx

TRUST = "export FLEET_CA_FILE=FILE        with the certificate of its authority, if you trust it"
CUT_OFF = "E-SERVER-SILENT"
"""The server received the request but never finished the response: the request may have been carried out."""

_NO_ANSWER = {502, 503, 504}


def refusal(url: str, response: httpx.Response, token_from: str = "") -> FleetError:
    """The error that a problem document describes: the class from its status, the text from the server.

    If the token was refused, the error says where it came from.
    """
    try:
        document = response.json()
    except ValueError:
        document = None
    error = error_of(response.status_code, document) or not_a_fleet(url, response)
    if isinstance(error, Unauthenticated) and token_from and not error.why:
        error.why = f"the token is from {token_from}"
    return error


def unreachable(url: str, error: Exception) -> Unreachable:
    """The error for a request without a response: refused, too slow, cut off, or an invalid address."""
    import httpx

    if isinstance(error, httpx.InvalidURL | httpx.UnsupportedProtocol):
        return Unreachable(
            f"{url!r} is not the address of a control plane",
            code="E-SERVER-URL",
            why=str(error),
            next="set FLEET_URL, for example to http://127.0.0.1:8420",
        )
    if failed := failed_handshake(url, error, trust=TRUST):
        return failed
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return Unreachable(
            f"no control plane answers at {url}",
            code="E-SERVER-DOWN",
            why=str(error) or "the connection timed out",
            next="fleet up    or   set FLEET_URL to its address",
        )
    return Unreachable(
        f"the control plane at {url} sent an incomplete answer",
        code=CUT_OFF,
        why=str(error) or type(error).__name__,
        next="fleet doctor",
    )


def not_a_fleet(url: str, response: httpx.Response) -> FleetError:
    """The error for an answer that is no control plane's: a proxy's that got none, or another program's."""
    if response.status_code in _NO_ANSWER:
        return Unreachable(
            f"a proxy at {url} answered {response.status_code}: it got no answer from the control plane",
            code=CUT_OFF,
            next="fleet doctor",
        )
    kind = FleetFault if response.is_success else kind_of(response.status_code)
    return kind(
        f"{url} answered {response.status_code}, but is not a control plane",
        code="E-SERVER-STRANGE",
        why=f"the content type of the answer is {response.headers.get('content-type', 'missing')}",
        next="fleet doctor    or   set FLEET_URL to the control plane's address",
    )
