"""What the HTTP client raises: the server's refusals as the fleet's own errors, and silence as Unreachable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shared.errors import (
    Conflict,
    FleetError,
    FleetFault,
    Forbidden,
    Invalid,
    NotFound,
    Precondition,
    Refused,
    TooLarge,
    TooOften,
    Unauthenticated,
    Unreachable,
)

if TYPE_CHECKING:
    import httpx

CUT_OFF = "E-SERVER-SILENT"
"""The server took the request and never finished the answer: it may have been carried out."""
_BY_STATUS: dict[int, type[FleetError]] = {
    kind.http_status: kind
    for kind in (Unauthenticated, Forbidden, NotFound, Conflict, Precondition, TooLarge, Invalid, TooOften, FleetFault)
}


def refusal(url: str, response: httpx.Response) -> FleetError:
    """The error that a problem document stands for: the class by its status, the words by the server."""
    try:
        problem = response.json()
    except ValueError:
        return not_a_fleet(url, response)
    if not isinstance(problem, dict) or not isinstance(problem.get("code"), str):
        return not_a_fleet(url, response)
    kind = _BY_STATUS.get(response.status_code) or (Refused if response.is_client_error else FleetFault)
    what = str(problem.get("detail") or problem.get("title") or f"{url} answered {response.status_code}")
    return kind(
        what,
        code=problem["code"],
        why=str(problem.get("why") or ""),
        next=str(problem.get("next") or ""),
        help=str(problem.get("help") or ""),
    )


def unreachable(url: str, error: Exception) -> Unreachable:
    """What to tell of a request that got no answer: refused, too slow, cut off, or no address at all."""
    import httpx

    if isinstance(error, httpx.InvalidURL | httpx.UnsupportedProtocol):
        return Unreachable(
            f"{url!r} is not the address of a control plane",
            code="E-SERVER-URL",
            why=str(error),
            next="set FLEET_URL to something like http://127.0.0.1:8420",
        )
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        return Unreachable(
            f"no control plane answers at {url}",
            code="E-SERVER-DOWN",
            why=str(error) or "the connection was not made in time",
            next="fleet up    or   set FLEET_URL to where it runs",
        )
    return Unreachable(
        f"the control plane at {url} did not finish its answer",
        code=CUT_OFF,
        why=str(error) or type(error).__name__,
        next="fleet doctor",
    )


def not_a_fleet(url: str, response: httpx.Response) -> FleetError:
    kind = FleetFault if response.is_success else _BY_STATUS.get(response.status_code, FleetFault)
    return kind(
        f"{url} answered {response.status_code}, but not as a control plane does",
        code="E-SERVER-STRANGE",
        why=f"the answer is {response.headers.get('content-type', 'of no type')}",
        next="fleet doctor    or   set FLEET_URL to where the control plane runs",
    )
