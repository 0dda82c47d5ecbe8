"""The names under which the control plane answers, so that no name of another site can be pointed at it.

A page whose name is rebound to this address after it was loaded (DNS rebinding) is of the same origin as the pages for
its browser, but still sends its own name as `Host`.
"""

from __future__ import annotations

import re
import socket
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from control_plane.core import Core
from control_plane.core.settings import FleetSettings
from control_plane.web.access import API, HOOKS, METRICS, bearer_of
from shared.errors import Forbidden

ANY_NAME = frozenset({f"{API}/health", f"{API}/registrations"})
"""Load balancers know no name, and a drone that registers has a secret that no page has."""
_NAME = re.compile(r"[a-z0-9_]([a-z0-9_.-]{0,251}[a-z0-9_])?")


class OwnNames:
    """Admits only requests that were sent to a name of the control plane, or to a numeric address.

    A numeric address cannot be rebound. What browsers do not send for a page (a bearer token, the signature of a code
    host) is accepted under any name, so that machines may reach the control plane by a name of their own.
    """

    def __init__(self, app: ASGIApp, core: Core) -> None:
        self._app = app
        self._names = names_of(core.settings, socket.gethostname())
        self._url = core.settings.url

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not _needs_no_name(scope):
            refuse_other_names(Headers(scope=scope).get("host", ""), self._names, self._url)
        await self._app(scope, receive, send)


def names_of(settings: FleetSettings, machine: str) -> frozenset[str]:
    """The names of the control plane: of this machine, of its addresses, and those of `FLEET_ALLOWED_HOSTS`."""
    machine = machine.lower()
    own = {"localhost", settings.host.lower(), machine, f"{machine.partition('.')[0]}.local"}
    return frozenset({*own, hostname_of(settings.url), *settings.allowed_host_names} - {"", ".local"})


def refuse_other_names(host: str, names: frozenset[str], url: str) -> None:
    """Raise Forbidden unless this `Host` has one of the names or a numeric address."""
    name = hostname_of(f"//{host}")
    if name in names or _is_address(name):
        return
    shown = f"FLEET_ALLOWED_HOSTS={name}" if _NAME.fullmatch(name) else "FLEET_ALLOWED_HOSTS"
    raise Forbidden(
        f"the request was sent to {host[:100]!r}, which is not a name of this control plane",
        code="E-HOST",
        why="a page of another site can have its name point here, to act with your session",
        next=f"use {url}, or set {shown} for the control plane and restart it",
    )


def hostname_of(url: str) -> str:
    """The host in lower case, without the dot that may end a name; empty if there is none."""
    try:
        return (urlsplit(url).hostname or "").removesuffix(".")
    except ValueError:
        return ""


def _needs_no_name(scope: Scope) -> bool:
    """Whether the request is answered without a browser's credentials; beside a token, the session does not count."""
    path = scope["path"]
    if path in ANY_NAME or path.startswith(HOOKS):
        return True
    return path.startswith((f"{API}/", METRICS)) and bool(bearer_of(Headers(scope=scope)))


def _is_address(name: str) -> bool:
    try:
        return bool(ip_address(name))
    except ValueError:
        return False
