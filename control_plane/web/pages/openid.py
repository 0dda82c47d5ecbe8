"""Logging in with the identity provider: to the provider, and back with its code.

The provider sends the browser back by a GET from its own site. The page there posts the code together with the key that
the browser keeps, as the page of a login link does.
"""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta
from hmac import compare_digest
from typing import TYPE_CHECKING, Annotated

from anyio import to_thread
from fastapi import APIRouter, Depends, Form, Query, Request
from pydantic import BaseModel, ValidationError
from starlette.responses import RedirectResponse, Response

from control_plane.core import Core
from control_plane.operations.access.logins import Browser
from control_plane.operations.access.provider_logins import log_in
from control_plane.services.openid_identity import CALLBACK, Attempt
from control_plane.web.access import CoreDep, client_address, cookie_name, cookie_of, is_https
from control_plane.web.destinations import local_page
from control_plane.web.pages.login import login_form, session_response
from control_plane.web.problems import problem_of
from control_plane.web.throttle import throttled
from shared.errors import FleetError, FleetFault, Forbidden, Invalid, Refused

if TYPE_CHECKING:
    from control_plane.services.openid import OpenIdProvider

router = APIRouter(include_in_schema=False)

BEGIN = "/login/openid"
MOST_MINUTES = 10
"""For the log-in at the provider."""


class _Begun(BaseModel):
    """The content of the sealed cookie."""

    state: str
    nonce: str
    verifier: str
    next: str
    at: datetime


@router.get(BEGIN, dependencies=[Depends(throttled("log-in"))])
async def begin(core: CoreDep, request: Request, next: Annotated[str, Query(max_length=1000)] = "/") -> Response:
    """Send the browser to the provider, with a sealed cookie that ties the answer to it."""
    return await to_thread.run_sync(_sent_to_provider, core, request, next, limiter=request.app.state.provider_calls)


def _sent_to_provider(core: Core, request: Request, next: str) -> Response:
    begun = _Begun(
        state=secrets.token_urlsafe(32),
        nonce=secrets.token_urlsafe(32),
        verifier=secrets.token_urlsafe(48),
        next=local_page(next),
        at=core.clock.now(),
    )
    try:
        url = _provider(core).login_url(_attempt(begun))
    except (Refused, FleetFault) as error:
        return _form(core, request, error)
    response = RedirectResponse(url, 303)
    response.set_cookie(
        _cookie(core, request),
        core.vault.seal_at_rest(begun.model_dump_json(), "login cookie"),
        max_age=MOST_MINUTES * 60,
        httponly=True,
        # Sent with the provider's redirect, which is a navigation from another site, and with nothing else from there.
        samesite="lax",
        secure=is_https(core, request.scope),
    )
    return response


@router.get(CALLBACK)
def come_back(
    core: CoreDep,
    request: Request,
    code: Annotated[str, Query(max_length=4000)] = "",
    state: Annotated[str, Query(max_length=200)] = "",
    error: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """The page that posts the code; this GET does not use it."""
    if error or not code:
        problem = Forbidden(
            "the identity provider did not log you in", code="E-OPENID-ANSWER", why=error, next="log in again"
        )
        return _form(core, request, problem)
    return login_form(core, openid={"code": code, "state": state})


@router.post(BEGIN, dependencies=[Depends(throttled("log-in"))])
async def finish(  # noqa: PLR0913, PLR0917 - one per field of the form
    core: CoreDep,
    request: Request,
    code: Annotated[str, Form(max_length=4000)],
    state: Annotated[str, Form(max_length=200)],
    browser_key: Annotated[str, Form(max_length=200)] = "",
    without_key: Annotated[bool, Form()] = False,
) -> Response:
    """Exchange the code for the identity, and start the user's session."""
    limiter, browser = (
        request.app.state.provider_calls,
        Browser(client_address(request.scope), browser_key, without_key),
    )
    return await to_thread.run_sync(_logged_in, core, request, code, state, browser, limiter=limiter)


def _logged_in(core: Core, request: Request, code: str, state: str, browser: Browser) -> Response:
    try:
        begun = _begun(core, request, state)
        identity = _provider(core).identity(_attempt(begun), code)
        secret = log_in(core, identity, browser)
    except (Refused, FleetFault) as error:
        return _form(core, request, error)
    response = session_response(core, request, secret, begun.next)
    secure = is_https(core, request.scope)
    response.delete_cookie(_cookie(core, request), httponly=True, samesite="lax", secure=secure)
    return response


def _begun(core: Core, request: Request, state: str) -> _Begun:
    """The log-in that this browser began. Raises Invalid if it began none, or another one."""
    sealed = cookie_of(request.scope, _cookie(core, request)) or ""
    try:
        begun = _Begun.model_validate_json(core.vault.open_at_rest(sealed, "login cookie"))
    except (ValidationError, FleetError):
        begun = None
    in_time = begun is not None and core.clock.now() - begun.at < timedelta(minutes=MOST_MINUTES)
    if begun is None or not in_time or not compare_digest(begun.state.encode(), state.encode()):
        raise Invalid(
            "this log-in was not begun in this browser, or took too long",
            code="E-OPENID-STATE",
            why=f"it must end within {MOST_MINUTES} minutes, where it began, and needs cookies",
            next="log in again",
        )
    return begun


def _provider(core: Core) -> OpenIdProvider:
    # Its libraries take 7 MB, which a fleet without an identity provider does not need.
    from control_plane.services.openid import OpenIdProvider

    return OpenIdProvider(core.settings, core.clock)


def _attempt(begun: _Begun) -> Attempt:
    return Attempt(begun.state, begun.nonce, begun.verifier)


def _cookie(core: Core, request: Request) -> str:
    return cookie_name(core, request.scope, "openid")


def _form(core: Core, request: Request, error: FleetError) -> Response:
    problem = problem_of(request.scope, error)
    return login_form(core, problem=problem.model_dump(), status=problem.status)
