"""Keeps others from acting through a user's browser: by scripts in a page, by a rebound name, by its cookies.

The forms of other sites are refused in `access`.
"""

from __future__ import annotations

import re
import socket
from functools import partial
from ipaddress import ip_address
from urllib.parse import parse_qs, urlsplit

from anyio import to_thread
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from control_plane.core import Caller, Core
from control_plane.core.settings import FleetSettings
from control_plane.operations.access.logins import require_browser_key
from control_plane.web.access import API, HOOKS, METRICS, bearer_of
from control_plane.web.middleware import replay
from shared.errors import Forbidden

ANY_NAME = frozenset({f"{API}/health", f"{API}/registrations"})
"""Load balancers know no name, and a drone that registers has a secret that no page has."""
_NAME = re.compile(r"[a-z0-9_]([a-z0-9_.-]{0,251}[a-z0-9_])?")
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "manifest-src 'self'",
        "connect-src 'self'",
        "worker-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With no-referrer, browsers would send `Origin: null` with our own forms, which would then be refused.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class SecurityHeaders:
    """Adds headers that restrict browsers to every answer; answers are not cached unless they say so themselves."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        await self._app(scope, receive, with_headers if scope["type"] == "http" else send)


class OwnNames:
    """Admits only requests that were sent to a name of the control plane, or to a numeric address.

    A page whose name is rebound to this address after it was loaded (DNS rebinding) is of the same origin as the pages
    for its browser, but still sends its own name as `Host`.

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


# --- the key of a browser -------------------------------------------------------------------------
#
# Browsers send a cookie to every port of a host, so every other server there receives it: one that a model started to
# try its work, for example. The key stays in the storage of the pages' origin, which includes the port, and scripts of
# the pages add it to each form. No page contains it: otherwise the holder of the cookie could read it there.

HEADER = "X-Fleet-Browser-Key"
FIELD = "browser_key"
FORM = "application/x-www-form-urlencoded"
MOST_FIELDS = 1000
LINKED = re.compile(r"/api/v1/orders/[^/]+/(?:events|export|patch|trajectory|(?:log|raw)/[^/]+)")
"""Addresses of the API that pages link to: a browser opens them as it opens a page, without the key."""

TOPICS = re.compile(r"/live/[^/]+/topics")
"""The shared worker that sends this cannot read the key: workers have no storage of that kind. It changes nothing."""


class BrowserKey:
    """Refuses requests of a session without the key of the browser that logged in; requests with a token need none.

    Without the key, a session cookie may only read pages, and log out.
    """

    def __init__(self, app: ASGIApp, core: Core) -> None:
        self._app = app
        self._core = core

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        identity = scope.get("state", {}).get("identity")
        if isinstance(identity, Caller) and identity.login_session_id and not cookie_suffices(scope):
            key, receive = await _key_of(scope, receive)
            check = partial(require_browser_key, self._core, identity.login_session_id, key, is_form=_is_form(scope))
            await to_thread.run_sync(check)
        await self._app(scope, receive, send)


def cookie_suffices(scope: Scope) -> bool:
    """Whether the session cookie alone is enough: to read a page or what it links to, to choose what a stream of the
    same session tells, and to log out.
    """
    if scope["method"] not in {"GET", "HEAD"}:
        return scope["method"] == "POST" and (scope["path"] == "/logout" or bool(TOPICS.fullmatch(scope["path"])))
    return not scope["path"].startswith("/api/") or LINKED.fullmatch(scope["path"]) is not None


def _is_form(scope: Scope) -> bool:
    kind = Headers(scope=scope).get("content-type", "")
    return kind.startswith(FORM) and not scope["path"].startswith("/api/")


async def _key_of(scope: Scope, receive: Receive) -> tuple[str, Receive]:
    """The key in the header, else in the form; and the request's body for the application."""
    headers = Headers(scope=scope)
    if (key := headers.get(HEADER)) or not headers.get("content-type", "").startswith(FORM):
        return key or "", receive
    # The layer around this one has read the whole body, so that it arrives in one piece.
    body = (await receive()).get("body", b"")
    return _field(body), replay(body, receive)


def _field(body: bytes) -> str:
    try:
        return parse_qs(body.decode("utf-8", "replace"), max_num_fields=MOST_FIELDS).get(FIELD, [""])[0]
    except ValueError:
        return ""
