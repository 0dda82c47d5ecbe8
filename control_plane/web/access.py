"""The caller's identity: bearer tokens, session cookies, and the rule that keeps other sites' forms out."""

from __future__ import annotations

from http.cookies import CookieError, SimpleCookie
from typing import Annotated
from urllib.parse import quote, urlsplit

from anyio import to_thread
from fastapi import APIRouter, Depends, Query, Request
from fastapi.security import HTTPBearer
from starlette.datastructures import Headers
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from control_plane.contract.validation.issued_secrets import DRONE_PREFIX
from control_plane.core import AuthenticatedDrone, Caller, Core
from control_plane.core.lookups.organizations import in_organization
from control_plane.core.origin import current_origin
from control_plane.operations.access import tokens
from control_plane.operations.access.last_uses import LastUses
from control_plane.operations.drones import registration
from control_plane.web.problems import wants_page
from shared.errors import Forbidden, NotFound, Unauthenticated

API = "/api/v1"
METRICS = "/metrics"
"""It has a token of its own, which is checked without the database."""
OPEN = frozenset(
    {
        ("GET", METRICS),
        ("GET", f"{API}/health"),
        ("POST", f"{API}/registrations"),
        ("GET", "/openapi.json"),
        ("GET", "/login"),
        ("POST", "/login"),
        ("GET", "/login/openid"),
        ("GET", "/login/openid/callback"),
        ("POST", "/login/openid"),
        ("GET", "/favicon.ico"),
    }
)
"""All requests that are answered without a token, besides static files."""
ANSWERS = "/answer/"
"""One-use answer links are authenticated by the secret in their address."""
HOOKS = "/hooks/"
"""Requests of code hosts under this path are authenticated by their signature."""
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


class Gate:
    """Admits only requests with a token or a session, for every address: a forgotten route stays closed.

    It runs before the body is read and before the route is looked up, so that an unauthenticated client learns nothing
    from either.
    """

    def __init__(self, app: ASGIApp, core: Core) -> None:
        self._app = app
        self._core = core

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        # Other credentials than a bearer token, of a proxy for example, leave it to the cookie who the caller is.
        if scope["method"] not in SAFE and not bearer_of(headers):
            refuse_other_sites(headers, self._core.settings.url)
        if not is_open(scope["method"], scope["path"]):
            try:
                identity = await to_thread.run_sync(identify, self._core, scope)
            except Unauthenticated as error:
                if scope["method"] != "GET" or not wants_page(scope):
                    raise
                current_origin().refused_with = error.code
                await RedirectResponse(f"/login?next={quote(_address(scope))}", 303)(scope, receive, send)
                return
            scope.setdefault("state", {})["identity"] = identity
        await self._app(scope, receive, send)


def identify(core: Core, scope: Scope) -> Caller | AuthenticatedDrone:
    """The caller of a request, by its bearer token, else by its session, whose use is noted. Raises Unauthenticated."""
    bearer = bearer_of(Headers(scope=scope))
    if bearer.startswith(f"{DRONE_PREFIX}_"):
        return registration.authenticate_drone(core, bearer)
    caller = _caller_with(core, bearer, session_secret(core, scope))
    uses: LastUses = scope["app"].state.last_uses
    uses.note(core.clock.now(), caller, client_address(scope))
    return caller


def _caller_with(core: Core, bearer: str, session: str | None) -> Caller:
    if bearer:
        return tokens.authenticate(core, bearer)
    if session:
        return tokens.authenticate_session(core, session)
    raise Unauthenticated(
        "a token is required",
        code="E-TOKEN-MISSING",
        why="the request has neither a bearer token nor a session",
        next="fleet api-token add --role operator    then send it as: Authorization: Bearer fa_...",
    )


def bearer_of(headers: Headers) -> str:
    """The bearer token of the request, or nothing."""
    kind, _, credentials = headers.get("authorization", "").partition(" ")
    return credentials.strip() if kind.lower() == "bearer" else ""


def client_address(scope: Scope) -> str:
    """The network address of the client."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def is_open(method: str, path: str) -> bool:
    """Whether this is answered without a token."""
    method = "GET" if method == "HEAD" else method
    return (
        (method, path) in OPEN
        or (method == "GET" and path.startswith("/static/"))
        or (method in {"GET", "POST"} and path.startswith(ANSWERS))
        or (method == "POST" and path.startswith(HOOKS))
    )


def cookie_name(core: Core, scope: Scope, what: str = "session") -> str:
    """The session cookie, or that of a log-in. The port keeps two fleets apart: cookies belong to all ports of a host.

    Over TLS, its prefix makes browsers refuse one that another server of the host or of the domain sets.
    """
    name = f"fleet_{what}_{core.settings.port}"
    return f"__Host-{name}" if is_https(core, scope) else name


def organization_cookie(core: Core, scope: Scope) -> str:
    """The cookie that remembers which organization this browser's pages show."""
    return cookie_name(core, scope, "organization")


def is_https(core: Core, scope: Scope) -> bool:
    """Whether the browser uses TLS. Behind a proxy that ends it, the public address decides."""
    return scope["scheme"] == "https" or core.settings.url.startswith("https://")


def session_secret(core: Core, scope: Scope) -> str | None:
    """The secret in the session cookie, if there is one."""
    return cookie_of(scope, cookie_name(core, scope))


def cookie_of(scope: Scope, name: str) -> str | None:
    """The value of this cookie, if there is one."""
    try:
        cookie = SimpleCookie(Headers(scope=scope).get("cookie", "")).get(name)
    except CookieError:
        return None
    return cookie.value if cookie else None


def refuse_other_sites(headers: Headers, public_url: str) -> None:
    """Raise Forbidden if a page of another site sends this request with the visitor's cookies.

    Browsers say so in `Sec-Fetch-Site`, older ones and plain http in `Origin`; a client that sends neither is not a
    browser.
    """
    fetch_site = headers.get("sec-fetch-site")
    if fetch_site is not None:
        own = fetch_site in {"same-origin", "none"}
    else:
        origin = headers.get("origin")
        own = origin is None or _netloc(origin) in {headers.get("host"), _netloc(public_url)}
    if not own:
        raise Forbidden(
            "request refused: it was sent by a page of another site",
            code="E-OTHER-SITE",
            next=f"open {public_url} and repeat the action there",
        )


def _netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return origin


def _address(scope: Scope) -> str:
    query = scope["query_string"].decode("ascii", "ignore")
    return f"{scope['path']}?{query}" if query else str(scope["path"])


# --- dependencies of handlers ------------------------------------------------------------------------


async def core_of(request: Request) -> Core:
    core: Core = request.app.state.core
    return core


async def caller_of(
    request: Request,
    org: Annotated[str | None, Query(description="Organization (default: the token's own).", max_length=64)] = None,
) -> Caller:
    """The calling person or script. Raises Forbidden for a drone, NotFound for an organization that it may not see.

    Pages act in the organization that was chosen in this browser.
    """
    if org is None and not request.scope["path"].startswith(API):
        return await _caller_in_chosen(request)
    return await _caller_in(request, org)


async def _caller_in_chosen(request: Request) -> Caller:
    chosen = cookie_of(request.scope, organization_cookie(request.app.state.core, request.scope))
    identity = request.state.identity
    try:
        # Where the choice makes no difference, it is no reason to refuse a page either.
        return await _caller_in(request, chosen if isinstance(identity, Caller) and identity.everywhere else None)
    except NotFound:
        return await _caller_in(request, None)


async def person_of(request: Request) -> Caller:
    """The caller, in the organization of their own token, regardless of `?org=`. Raises Forbidden for a drone."""
    return await _caller_in(request, None)


async def _caller_in(request: Request, organization: str | None) -> Caller:
    identity = request.state.identity
    if not isinstance(identity, Caller):
        raise Forbidden("a drone's token cannot be used here: an API token is required", code="E-TOKEN-KIND")
    if organization is None or organization == identity.organization:
        return identity
    # Only a caller who may act everywhere causes a database query, which must not block the event loop.
    return await to_thread.run_sync(in_organization, request.app.state.core, identity, organization)


async def drone_of(request: Request) -> AuthenticatedDrone:
    """The calling drone. Raises Forbidden for a person."""
    identity = request.state.identity
    if not isinstance(identity, AuthenticatedDrone):
        raise Forbidden(
            "an API token cannot be used here: a drone's token is required", code="E-TOKEN-KIND", next="drone register"
        )
    return identity


CoreDep = Annotated[Core, Depends(core_of)]
CallerDep = Annotated[Caller, Depends(caller_of)]
PersonDep = Annotated[Caller, Depends(person_of)]
"""For addresses where the request itself names the organization."""
DroneDep = Annotated[AuthenticatedDrone, Depends(drone_of)]
_BEARER = HTTPBearer(auto_error=False, scheme_name="token", description="fa_... (users), fd_... (drones)")


def api_router(tag: str, prefix: str = "", *, is_open: bool = False) -> APIRouter:
    """A router for a resource of the API. The token is documented there, and enforced only by the gate.

    Its routes are complete: FastAPI would analyze each of them again for every router that includes it.
    """
    return APIRouter(prefix=API + prefix, tags=[tag], dependencies=[] if is_open else [Depends(_BEARER)])
