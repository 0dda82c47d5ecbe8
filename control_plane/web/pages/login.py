"""Logging a browser in and out: by an API token that is pasted, or by a one-use address."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Form, Query, Request
from starlette.responses import RedirectResponse, Response

from control_plane.core import Core
from control_plane.operations.access import tokens
from control_plane.operations.access.logins import SESSION_LASTS, Browser
from control_plane.web.access import CoreDep, client_address, cookie_name, is_https, organization_cookie, session_secret
from control_plane.web.destinations import local_page
from control_plane.web.problems import problem_of
from control_plane.web.rendering import BARE, page
from control_plane.web.throttle import throttled
from shared.errors import Invalid, Refused

router = APIRouter(include_in_schema=False)
MOST_NEXT = 1000


@router.get("/login")
def login_page(
    core: CoreDep,
    token: Annotated[str, Query(max_length=200)] = "",
    next: str = "/",
) -> Response:
    """The form; it leads to the inbox instead of to an address that is too long.

    This GET does not use a one-use token in the address: programs that preview links would burn it.
    The page's button sends it, and nothing else does: any site can open this address, and would have its visitors work
    as another user unnoticed.
    """
    return login_form(core, link=token, next_page=next if len(next) <= MOST_NEXT else "/")


@router.post("/login", dependencies=[Depends(throttled("log-in"))])
def login(  # noqa: PLR0913, PLR0917 - one per field of the form
    core: CoreDep,
    request: Request,
    token: Annotated[str, Form(max_length=200)] = "",
    link: Annotated[str, Form(max_length=200)] = "",
    next: Annotated[str, Form(max_length=MOST_NEXT)] = "/",
    browser_key: Annotated[str, Form(max_length=200)] = "",
    without_key: Annotated[bool, Form()] = False,
) -> Response:
    """Start a session and go to `next`; if refused, show the form again with the reason."""
    browser = Browser(client_address(request.scope), browser_key, without_key)
    try:
        secret = _session(core, request, browser, token.strip(), link.strip())
    except Refused as error:
        problem = problem_of(request.scope, error)
        return login_form(core, next_page=next, problem=problem.model_dump(), status=problem.status)
    response = session_response(core, request, secret, next)
    if link.strip():
        # The link was made in an organization; the one that this browser chose earlier may be another.
        name, secure = organization_cookie(core, request.scope), is_https(core, request.scope)
        response.delete_cookie(name, httponly=True, samesite="lax", secure=secure)
    return response


def session_response(core: Core, request: Request, secret: str, next_page: str) -> Response:
    """Go to a page of ours with the cookie of a new session."""
    response = RedirectResponse(local_page(next_page), 303)
    response.set_cookie(
        cookie_name(core, request.scope),
        secret,
        max_age=int(SESSION_LASTS.total_seconds()),
        httponly=True,
        samesite="lax",
        secure=is_https(core, request.scope),
    )
    return response


@router.post("/logout")
def logout(core: CoreDep, request: Request) -> Response:
    """End the session here and in the database."""
    if secret := session_secret(core, request.scope):
        tokens.end_session(core, secret)
    response = RedirectResponse("/login", 303)
    name, secure = cookie_name(core, request.scope), is_https(core, request.scope)
    response.delete_cookie(name, httponly=True, samesite="lax", secure=secure)
    return response


def _session(core: Core, request: Request, browser: Browser, token: str, link: str) -> str:
    if link:
        return tokens.use_login_link(core, link, browser)[0]
    if not token:
        raise Invalid("a token is required", code="E-TOKEN-MISSING", next="fleet api-token add --role operator")
    caller = tokens.authenticate(core, token)
    request.app.state.last_uses.note(core.clock.now(), caller, browser.address)
    return tokens.start_session(core, caller, browser)


def login_form(core: Core, *, next_page: str = "/", status: int = 200, **given: object) -> Response:
    """The form, with a login link or an identity provider's answer to send, or with the reason of a refusal."""
    nothing = {**BARE, "link": "", "openid": None, "problem": None}
    shown = {"next": local_page(next_page), "provider": core.settings.oidc_issuer}
    return page("login.html", {**nothing, **shown, **given}, status)
