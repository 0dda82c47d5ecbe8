"""What a session cookie may do without the key of its browser: read pages, and log out.

Browsers send a cookie to every port of a host, so every other server there receives it: one that a model started to try
its work, for example. The key stays in the storage of the pages' origin, which includes the port, and scripts of the
pages add it to each form. No page contains it: otherwise the holder of the cookie could read it there.
"""

from __future__ import annotations

import re
from functools import partial
from urllib.parse import parse_qs

from anyio import to_thread
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from control_plane.core import Caller, Core
from control_plane.operations.access.logins import require_browser_key
from control_plane.web.middleware import replay

HEADER = "X-Fleet-Browser-Key"
FIELD = "browser_key"
FORM = "application/x-www-form-urlencoded"
MOST_FIELDS = 1000
LINKED = re.compile(r"/api/v1/orders/[^/]+/(?:events|patch|log/[^/]+)")
"""Addresses of the API that pages link to: a browser opens them as it opens a page, without the key."""

TOPICS = re.compile(r"/live/[^/]+/topics")
"""The shared worker that sends this cannot read the key: workers have no storage of that kind. It changes nothing."""


class BrowserKey:
    """Refuses requests of a session without the key of the browser that logged in; requests with a token need none."""

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
